// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/conformance/diff"
	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/kumiki"
	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/sampling"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/host/framework"
	"github.com/kumiki-scheduler/kumiki/kube/intake"
	"github.com/kumiki-scheduler/kumiki/record"
)

// helped is what came of PostFilter.
type helped struct {
	message string
	// node is the nominated one; override is false if the pod keeps the one that it had.
	node     string
	override bool
	calls    string
}

// whole is the engine with the cluster of a scenario.
type whole struct {
	engine *engine.Engine
	intake *convert.Intake
}

func newWhole(t *testing.T, s *scenario.Scenario, hosted []framework.Registration) *whole {
	t.Helper()
	cfg, err := kumiki.ConfigWith(&s.Profile, hosted)
	if err != nil {
		t.Fatal(err)
	}
	w := &whole{engine.New(cfg), convert.NewIntake()}
	w.intake.KeepFull()
	w.engine.Step(engine.Tick{Now: record.Second})
	for _, o := range s.Objects {
		w.engine.Step(engine.ObjectSet{Object: intake.Trim(o.APIObject)})
	}
	for _, n := range s.Nodes {
		w.engine.Step(engine.NodeSet{Node: w.intake.Node(n)})
	}
	for _, p := range s.Bound {
		w.engine.Step(engine.PodSet{Pod: w.intake.Pod(p)})
	}
	w.engine.Step(engine.Synced{})
	return w
}

// reject tries a pod that fits nowhere, and removes it.
func (w *whole) reject(t *testing.T, pod *v1.Pod) helped {
	t.Helper()
	p := w.intake.PendingPod(pod)
	w.engine.Step(engine.PodSet{Pod: p})
	var out helped
	decided := 0
	for _, f := range w.engine.Step(engine.Cycle{}) {
		switch f := f.(type) {
		case engine.Decided:
			decided++
			out.message = f.Decision.Message
		case engine.Condition:
			out.node, out.override = f.Nominate, f.Nominate != "" || f.ClearNomination
		}
	}
	if decided != 1 {
		t.Fatalf("%d decisions about pod %s", decided, pod.Name)
	}
	w.engine.Step(engine.PodGone{Pod: p.Ref()})
	return out
}

// postFilters returns three random plugins among upstream's filters. DynamicResources is left out: what it gives up
// goes through the API.
func postFilters() []scenario.Plugin {
	plugins := slices.DeleteFunc(gen.DefaultPlugins(), func(p scenario.Plugin) bool {
		return p.Name == "DynamicResources"
	})
	for i := range 3 {
		plugins = slices.Insert(plugins, i*len(plugins)/3, scenario.Plugin{Name: fmt.Sprintf("Random%d", i), Weight: 1})
	}
	return plugins
}

// TestConformancePostFilter asks three random plugins at PostFilter in upstream's framework and in kumiki's engine
// about pods that fit nowhere: the message, the nomination and the calls are equal.
func TestConformancePostFilter(t *testing.T) {
	var now Calls
	up := oracle.New()
	t.Cleanup(up.Close)
	var hosted []framework.Registration
	for i := range 3 {
		name := fmt.Sprintf("Random%d", i)
		factory := Factory(name, sampling.Seed(t), func() Calls { return now })
		up.Register(name, factory)
		hosted = append(hosted, framework.Registration{Name: name, Factory: factory})
	}
	want, cases, nominated, failures := sampling.Cases(t, 1000), 0, 0, 0
	for n := 0; cases < want && failures < 3; n++ {
		s := gen.MakeWith(sampling.Seed(t), n, gen.Sizes{Pods: 12}, postFilters())
		s.Nominated = nil
		theirs, err := up.Cluster(s)
		if err != nil {
			continue // upstream refuses the profile
		}
		var ours *whole
		for i := range s.Asks {
			pod := s.Asks[i].Pod
			if diff.StatesOverflow(pod) {
				continue // see diff.Exceptions
			}
			now = nil
			out := theirs.Decide(pod)
			now = Calls{}
			message, node, override, asked := theirs.PostFilter(pod, out)
			if !asked {
				continue
			}
			if node == "" && pod.Status.NominatedNodeName == "" {
				override = false // nothing is cleared
			}
			theirCalls := now.at("PostFilter") + now.at("DryRun")
			if ours == nil {
				now = nil
				ours = newWhole(t, s, hosted)
			}
			now = Calls{}
			got := ours.reject(t, pod)
			got.calls = now.at("PostFilter") + now.at("DryRun")
			cases++
			if override {
				nominated++
			}
			if expected := (helped{message, node, override, theirCalls}); got != expected {
				failures++
				t.Errorf("%s, pod %s: kumiki %+v, upstream %+v", s.Name, pod.Name, got, expected)
			}
		}
		theirs.Close()
	}
	if nominated < want/20 {
		t.Errorf("%d of %d cases nominate", nominated, cases)
	}
}
