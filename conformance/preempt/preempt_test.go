// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/sampling"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/kube/intake"
	"github.com/kumiki-scheduler/kumiki/record"
)

var everything = labels.Everything()

// TestConformancePreemption puts the same questions to both. It detects the faults of core/preempt that its own tests
// detect, for the same reason.
func TestConformancePreemption(t *testing.T) {
	seed, cases := sampling.Seed(t), sampling.Cases(t, 2000)
	seen := map[string]int{}
	for asked, i := 0, uint64(0); asked < cases && !t.Failed(); i++ {
		w := draw(gen.NewRand(seed, i))
		them := newTheirs(t, w)
		want, ok := them.decide(t, w.pod)
		them.stop()
		got, ok2 := newOurs(w).decide(t, w.pod)
		if ok != ok2 {
			t.Fatalf("seed %d, case %d: upstream finds no node: %v; kumiki: %v\n%s", seed, i, ok, ok2, w)
		}
		if !ok {
			seen["fits"]++
			continue
		}
		asked++
		count(seen, want)
		if difference := compare(want, got); difference != "" {
			t.Fatalf("seed %d, case %d: %s\n%s", seed, i, difference, w)
		}
	}
	t.Log(seen)
	for _, what := range []string{"evicts", "several candidates", "several victims", "against a budget", "nothing helps", "may not", "tied"} {
		if seen[what] < cases/200 {
			t.Errorf("%s: %d times in %d cases", what, seen[what], cases)
		}
	}
}

func count(seen map[string]int, c choice) {
	note := func(what string, is bool) {
		if is {
			seen[what]++
		}
	}
	note("evicts", c.node != "")
	note("several candidates", len(c.candidates) > 1)
	note("tied", len(c.best) > 1)
	note("nothing helps", c.node == "" && !c.keeps)
	note("may not", c.keeps)
	several, against := false, false
	for _, who := range c.candidates {
		against = against || who[len(who)-1] != '0'
		several = several || slices.Contains([]byte(who[:slices.Index([]byte(who), ']')]), ' ')
	}
	note("several victims", several)
	note("against a budget", against)
}

// compare tells how the answers differ; empty when they do not.
func compare(want, got choice) string {
	switch {
	case !maps.Equal(want.candidates, got.candidates):
		return fmt.Sprintf("candidates\nupstream %v\nkumiki   %v", want.candidates, got.candidates)
	case (want.node == "") != (got.node == ""), want.keeps != got.keeps:
		return fmt.Sprintf("upstream takes %q, keeps %v, says %q; kumiki %q, %v, %q", want.node, want.keeps, want.message, got.node, got.keeps, got.message)
	case want.message != got.message:
		return fmt.Sprintf("messages\nupstream %q\nkumiki   %q", want.message, got.message)
	case want.node != "" && !want.best[want.node]:
		return fmt.Sprintf("upstream takes %s, which is not in the tied set %v: the test has upstream's order wrong", want.node, want.best)
	case got.node != "" && !want.best[got.node]:
		return fmt.Sprintf("kumiki takes %s, upstream one of %v, of %v", got.node, want.best, want.candidates)
	}
	return ""
}

// smallest are the candidates that upstream's order leaves, by the criteria of its documentation.
func smallest(list []preemption.Candidate) map[string]bool {
	left := list
	for _, score := range []func(preemption.Candidate) int64{
		func(c preemption.Candidate) int64 { return c.Victims().NumPDBViolations },
		func(c preemption.Candidate) int64 { return int64(*c.Victims().Pods[0].Spec.Priority) },
		func(c preemption.Candidate) (sum int64) {
			for _, p := range c.Victims().Pods {
				sum += int64(*p.Spec.Priority) + math.MaxInt32 + 1
			}
			return sum
		},
		func(c preemption.Candidate) int64 { return int64(len(c.Victims().Pods)) },
		func(c preemption.Candidate) int64 { return -oldest(c.Victims().Pods) },
	} {
		best := int64(math.MaxInt64)
		var next []preemption.Candidate
		for _, c := range left {
			switch s := score(c); {
			case s < best:
				best, next = s, []preemption.Candidate{c}
			case s == best:
				next = append(next, c)
			}
		}
		left = next
	}
	names := map[string]bool{}
	for _, c := range left {
		names[c.Name()] = true
	}
	return names
}

func oldest(pods []*v1.Pod) int64 {
	at := int64(math.MaxInt64)
	for _, p := range pods {
		if *p.Spec.Priority == *pods[0].Spec.Priority && p.Status.StartTime != nil {
			at = min(at, p.Status.StartTime.UnixNano())
		}
	}
	return at
}

// ours is kumiki's search on one cluster.
type ours struct {
	store  *cluster.Store
	intake *convert.Intake
	placer *place.Placer
	noms   promised
}

type promised map[string][]*cluster.Pod // node name -> pods nominated there

func (p promised) NominatedOn(node string) []*cluster.Pod { return p[node] }
func (p promised) NominatedNodes() []string               { return slices.Sorted(maps.Keys(p)) }

type noMeter struct{}

func (noMeter) Plugin(plugin.Point, string) {}
func (noMeter) Did(record.Work, int)        {}

func newOurs(w *scene) *ours {
	var prof place.Profile
	for _, name := range filters {
		reg, ok := plugins.Lookup(name)
		if !ok {
			panic("no plugin " + name)
		}
		pl, err := reg.New(nil)
		if err != nil {
			panic(err)
		}
		prof.Filters = append(prof.Filters, pl.(plugin.Filter))
	}
	o := &ours{cluster.NewStore(), convert.NewIntake(), place.New(prof, noMeter{}, place.DefaultClassBytes), promised{}}
	o.store.SetNow(1)
	o.store.Begin()
	for _, n := range w.nodes {
		o.store.SetNode(o.intake.Node(n))
	}
	for _, p := range w.bound {
		o.store.SetPod(o.intake.Pod(p))
	}
	for _, b := range w.budgets {
		o.store.SetObject(intake.Trim(b))
	}
	o.store.Commit()
	for _, p := range w.nominated {
		o.noms[p.Status.NominatedNodeName] = append(o.noms[p.Status.NominatedNodeName], o.intake.Pod(p))
	}
	return o
}

func (o *ours) decide(t testing.TB, pod *v1.Pod) (c choice, ok bool) {
	p, s := o.intake.Pod(pod), o.store.Snapshot()
	out := o.placer.Place(s, p, o.noms, func(int) int { return 0 })
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	if out.Node != cluster.NoNode {
		return c, false
	}
	q := preempt.Question{Pod: p, Nominated: p.Nominated, WhatIf: o.placer.WhatIf(s, out), Draw: func(int) int { return 0 }, All: true}
	var f preempt.Finder
	all := f.Find(s, q)
	q.All = false
	fast := f.Find(s, q)
	if all.Verdict != fast.Verdict || all.Message != fast.Message || all.Best.Loss != fast.Best.Loss ||
		all.Verdict == preempt.Evict && all.Best.Node != fast.Best.Node {
		t.Fatalf("trying all nodes gives %+v, the fast way %+v", all, fast)
	}
	c.candidates = map[string]string{}
	for _, cand := range all.Candidates {
		var who []string
		for _, v := range cand.Victims {
			who = append(who, v.Name)
		}
		c.candidates[s.NodeName(cand.Node)] = fmt.Sprint(who, " ", cand.Loss.Violations)
	}
	c.message, c.keeps = fast.Message, fast.Verdict == preempt.NotEligible || fast.Verdict == preempt.Failed
	if fast.Verdict == preempt.Evict {
		c.node = s.NodeName(fast.Best.Node)
		c.message = preempt.Found(anyNode, len(fast.Best.Victims))
	}
	return c, true
}
