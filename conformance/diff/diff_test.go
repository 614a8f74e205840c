// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"os"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/outcome"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

func upstream(t *testing.T) Upstream {
	t.Helper()
	o := oracle.New()
	t.Cleanup(o.Close)
	return Upstream{o}
}

// Upstream must agree with itself, placements and node changes included, and the
// generator must reach the promised shares.
func TestUpstreamAgreesWithItself(t *testing.T) {
	up := upstream(t)
	r, err := Run(up, up, Options{Seed: 11, Cases: 1500, Sizes: gen.DefaultSizes, MaxFailures: 100, Plugins: gen.AllPlugins()})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Failures {
		if asks := f.Scenario.Asks; exception(f.Scenario, asks[len(asks)-1].Pod) != nil {
			continue // upstream cannot keep our promises
		}
		t.Errorf("%s: %s", f.Scenario.Name, f.Difference)
	}
	if testing.Verbose() {
		r.Print(os.Stdout)
	}
	for _, s := range r.Shortfalls(false) {
		t.Error(s)
	}
}

// liar is upstream with one answer bent.
type liar struct {
	Cluster
	bend func(o *outcome.Outcome)
}

func (l liar) Decide(p *v1.Pod) *outcome.Outcome {
	o := l.Cluster.Decide(p)
	l.bend(o)
	return o
}

type lying struct {
	Subject
	bend func(o *outcome.Outcome)
}

func (l lying) Load(s *scenario.Scenario) (Cluster, error) {
	c, err := l.Subject.Load(s)
	if err != nil {
		return nil, err
	}
	return liar{c, l.bend}, nil
}

// Every field of an outcome is compared: bending any one of them is found, and
// shrinks to a scenario that still shows it.
func TestEveryFieldIsCompared(t *testing.T) {
	up := upstream(t)
	for name, bend := range map[string]func(o *outcome.Outcome){
		"gate":      func(o *outcome.Outcome) { o.Gate = nil },
		"prefilter": func(o *outcome.Outcome) { o.PreFilter = nil },
		"code": func(o *outcome.Outcome) {
			for i := range o.Nodes {
				if o.Nodes[i].Code == outcome.Unresolvable {
					o.Nodes[i].Code = outcome.Unschedulable
				}
			}
		},
		"plugin": func(o *outcome.Outcome) {
			for i := range o.Nodes {
				if o.Nodes[i].Plugin == "NodePorts" {
					o.Nodes[i].Plugin = "NodeName"
				}
			}
		},
		"reason": func(o *outcome.Outcome) {
			for i := range o.Nodes {
				if len(o.Nodes[i].Reasons) > 1 {
					o.Nodes[i].Reasons = o.Nodes[i].Reasons[:1]
				}
			}
		},
		"rejectors": func(o *outcome.Outcome) { o.Rejectors = nil },
		"message":   func(o *outcome.Outcome) { o.Message = "" },
		"raw": func(o *outcome.Outcome) {
			for i := range o.Scores {
				if o.Scores[i].Plugin == "ImageLocality" {
					o.Scores[i].Raw[0]++
				}
			}
		},
		"weighted": func(o *outcome.Outcome) {
			if len(o.Scores) > 0 {
				o.Scores[0].Weighted[0]--
			}
		},
		"total": func(o *outcome.Outcome) {
			if len(o.Total) > 0 {
				o.Total[0]++
			}
		},
		"best": func(o *outcome.Outcome) {
			if len(o.Best) > 1 {
				o.Best = o.Best[:1]
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ours := lying{up, bend}
			r, err := Run(up, ours, Options{Seed: 5, Cases: 2000, Sizes: gen.Sizes{Pods: 12}})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Failures) == 0 {
				t.Fatal("not noticed in 2000 cases")
			}
			before := r.Failures[0].Scenario
			small := Shrink(up, ours, before)
			if Replay(up, ours, small) == "" {
				t.Fatal("the shrunk scenario shows nothing")
			}
			if len(small.Nodes) > 2 || len(small.Asks) > 2 {
				t.Errorf("shrunk from %d to only %d nodes and from %d to %d asks", len(before.Nodes), len(small.Nodes), len(before.Asks), len(small.Asks))
			}
			path := t.TempDir() + "/s.yaml"
			if err := small.Save(path); err != nil {
				t.Fatal(err)
			}
			again, err := scenario.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			if Replay(up, ours, again) == "" {
				t.Error("the scenario read back from its file shows nothing")
			}
		})
	}
}

// A pod that asks for more than int64 holds lands somewhere in upstream; the
// exception holds only for a scheduler that places it nowhere.
func TestOverflowExceptionIsChecked(t *testing.T) {
	up := upstream(t)
	r, err := Run(up, up, Options{Seed: 1, Cases: 12000, Sizes: gen.Sizes{Pods: 12, AtMost: 25}, MaxFailures: 100})
	if err != nil {
		t.Fatal(err)
	}
	if r.Exceptions["quantity overflow"] == 0 || len(r.Failures) == 0 {
		t.Errorf("%d overflowing pods, %d refused answers: upstream itself must fail this check", r.Exceptions["quantity overflow"], len(r.Failures))
	}
}
