// SPDX-License-Identifier: Apache-2.0

package shadow_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/internal/probe"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/shadow"
)

// scenarios are scenarios: what the report shows -> how it is caused. Each line of the report has one.
var scenarios = map[string]func(t failer){
	"the best node is the same node": func(t failer) {
		w := newWorld(t)
		w.pod("a", "1")
		w.pass(20 * time.Millisecond)
		w.bind("a", "n1")
		r := w.are("judged 1, compared 1, same 1, quiet 1, timed 1, pending 0, examples 0")
		if r.Agreement.Share != 1 || r.Agreement.Regret.Max != 0 || r.Latency.Theirs.Max != 0.02 ||
			r.Latency.Ours.Max != 0.001 {
			t.Errorf("%+v, %+v", r.Agreement, r.Latency)
		}
		if r.Scheduler != "theirs" || r.Profile != "ours" || !r.Synced || r.Nodes != 2 ||
			r.Started != 1000*record.Second {
			t.Errorf("%+v", r)
		}
	},
	"two nodes of one score are no quarrel": func(t failer) {
		w := newWorld(t)
		w.node("n3", "4") // as empty as n1
		for i := range 12 {
			name := fmt.Sprint("a", i)
			w.pod(name, "1")
			w.bind(name, []string{"n1", "n3"}[i%2])
			w.gone(name)
		}
		if r := w.are("compared 12, worse 0, rejected 0"); r.Agreement.Same == 0 || r.Agreement.Tied == 0 ||
			r.Agreement.Share != 1 {
			t.Errorf("%+v", r.Agreement)
		}
	},
	"a worse node costs, and one plugin is the cause": func(t failer) {
		w := newWorld(t)
		w.pod("a", "1")
		w.bind("a", "n2")
		r := w.are("compared 1, worse 1, quietly-worse 1, examples 1")
		g := r.Agreement.Regret
		if g.Max == 0 || g.P50 != g.Max || r.Agreement.Share != 0 {
			t.Errorf("%+v", r.Agreement)
		}
		if len(g.ByPlugin) == 0 || g.ByPlugin[0].Plugin != "NodeResourcesFit" || g.ByPlugin[0].Pods != 1 ||
			g.ByPlugin[0].Sum < int64(g.Max) {
			t.Errorf("%+v", g.ByPlugin)
		}
		e := r.Examples[0]
		if e.Kind != record.ShadowWorse || !e.Quiet || e.Judgement.Ours.Node != "n1" ||
			e.Judgement.Theirs.Node != "n2" || e.Judgement.Cause != "NodeResourcesFit" {
			t.Errorf("%+v", e)
		}
	},
	"a nominated pod goes where it was nominated": func(t failer) {
		w := newWorld(t)
		w.pod("a", "1", func(p *v1.Pod) { p.Status.NominatedNodeName = "n2" })
		w.bind("a", "n2")
		if r := w.are("compared 1, nominated 1, worse 0"); r.Agreement.Share != 1 || r.Agreement.Regret.Max != 0 {
			t.Errorf("%+v", r.Agreement)
		}
	},
	"a node that has no room is disallowed, when it stays so": func(t failer) {
		w := newWorld(t)
		w.pod("a", "3")
		w.bind("a", "n2")
		w.are("judged 1, compared 0, open 1, disallowed 0, examples 0")
		w.pass(11 * time.Second)
		w.are("open 1, disallowed 0")
		w.pass(time.Second)
		r := w.are("open 0, compared 1, rejected 1, disallowed 1, nowhere 0, examples 1")
		if why := r.RejectedByUs.Reasons; len(why) != 1 ||
			why[0] != (record.ShadowReason{Plugin: "NodeResourcesFit", Reason: "Insufficient cpu", Pods: 1}) {
			t.Errorf("%+v", why)
		}
		if e := r.Examples[0]; e.Kind != record.ShadowRejected || e.Judgement.Ours == nil ||
			e.Judgement.Theirs.Node != "n2" {
			t.Errorf("%+v", e)
		}
	},
	"a pod that fits nowhere by our filters is told apart": func(t failer) {
		w := newWorld(t)
		w.pod("a", "5")
		w.bind("a", "n1")
		w.pass(12 * time.Second)
		r := w.are("disallowed 1, nowhere 1")
		if j := r.Examples[0].Judgement; j.Message != "0/2 nodes are available: 2 Insufficient cpu." {
			t.Errorf("%+v", j)
		}
	},
	"binds that overtook each other settle": func(t failer) {
		w := newWorld(t)
		w.pod("a", "3")
		w.bind("a", "n2") // decided after old had gone, written before we see that
		w.are("open 1")
		w.gone("old")
		w.pass(100 * time.Millisecond)
		w.are("judged 1, compared 0, open 0, settled 1, disallowed 0")
	},
	"a node that has just changed is no ground for a dispute": func(t failer) {
		w := newWorld(t)
		w.pod("a", "1")
		w.node("n1", "4", func(n *v1.Node) { n.Spec.Unschedulable = true })
		w.bind("a", "n1")
		w.are("settled 1, open 0")
		w.pod("b", "1")
		w.pass(2 * time.Second)
		w.bind("b", "n1")
		w.are("settled 1, open 1")
	},
	"a pod that is gone cannot be looked at again": func(t failer) {
		w := newWorld(t)
		w.pod("a", "3")
		w.bind("a", "n2")
		w.gone("a")
		w.pass(20 * time.Second)
		w.are("open 0, lost 1, disallowed 0, settled 0")
	},
	"they refuse what fits, and go on refusing": func(t failer) {
		w := newWorld(t)
		w.pod("a", "1")
		w.refuse("a", "0/2 nodes are available: no")
		w.are("refused-open 1, refused 0, judged 0")
		w.pass(6 * time.Second)
		w.refuse("a", "0/2 nodes are available: still no")
		w.pass(6 * time.Second)
		r := w.are("refused-open 0, refused 1, refused-settled 0, pending 1, examples 1")
		if e := r.Examples[0]; e.Kind != record.ShadowRefused || e.Judgement.Feasible != 2 ||
			e.TheirMessage != "0/2 nodes are available: still no" {
			t.Errorf("%+v", e)
		}
		w.refuse("a", "0/2 nodes are available: once more") // each pod counts once
		w.pass(20 * time.Second)
		w.are("refused 1, refused-open 0")
	},
	"they refuse what does not fit": func(t failer) {
		w := newWorld(t)
		w.pod("a", "5")
		w.refuse("a", "0/2 nodes are available: 2 Insufficient cpu.")
		w.pass(20 * time.Second)
		w.are("refused 0, refused-open 0, refused-settled 0")
	},
	"what they refuse and then bind settles": func(t failer) {
		w := newWorld(t)
		w.pod("a", "1")
		w.refuse("a", "0/2 nodes are available: not yet")
		w.pass(3 * time.Second)
		w.bind("a", "n1")
		w.pass(time.Second)
		w.are("refused 0, refused-settled 1, same 1, timed 0")
	},
	"what was in flight on their side fills the node": func(t failer) {
		w := newWorld(t)
		w.pod("big", "4")
		w.pod("a", "3")
		w.refuse("a", "0/2 nodes are available: 2 Insufficient cpu.")
		w.are("refused-open 1")
		w.bind("big", "n1")
		w.pass(time.Second)
		w.are("refused-open 0, refused-settled 1, refused 0")
	},
	"only what is certain is quiet": func(t failer) {
		w := newWorld(t)
		w.pod("a", "100m")
		w.pod("b", "100m")
		w.bind("a", "n1") // b may be decided already
		w.bind("b", "n1") // decided before a was bound, perhaps
		w.are("compared 2, quiet 0")
		w.pod("huge", "9")
		w.refuse("huge", "0/2 nodes are available: 2 Insufficient cpu.") // at rest until something changes
		w.pod("c", "100m")
		w.bind("c", "n1")
		w.are("compared 3, quiet 1")
		w.pod("gated", "1", func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "g"}} })
		w.gone("huge")
		w.pod("d", "100m")
		w.bind("d", "n1")
		w.are("compared 4, quiet 2")
		w.pod("e", "100m")
		w.node("n3", "1")
		w.bind("e", "n1")
		w.are("compared 5, quiet 2")
		w.pod("tried", "6")
		w.refuse("tried", "0/3 nodes are available: 3 Insufficient cpu.")
		w.node("n4", "8") // by now it may be on its way there
		w.pod("f", "100m")
		w.bind("f", "n4")
		w.are("compared 6, quiet 2")
	},
	"time behind gates is not theirs": func(t failer) {
		w := newWorld(t)
		w.pod("a", "1", func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "g"}} })
		w.pass(time.Hour)
		w.pod("a", "", func(p *v1.Pod) { p.Spec.SchedulingGates = nil })
		w.pass(5 * time.Millisecond)
		w.bind("a", "n1")
		if r := w.are("timed 1"); r.Latency.Theirs.Max != 0.005 {
			t.Errorf("%+v", r.Latency)
		}
	},
	"what was there before us": func(t failer) {
		w := bare(t)
		w.node("n1", "4")
		w.pod("bound", "1")
		w.pod("early", "1")
		w.bind("bound", "n1")
		w.shadow.Step(engine.Synced{})
		w.pass(time.Second)
		w.bind("early", "n1")
		w.are("judged 1, same 1, quiet 0, timed 0, unseen 0")
		w.bind("early", "n1") // a new version of a bound pod
		w.pod("static", "1", func(p *v1.Pod) { p.Spec.NodeName = "n1" })
		w.pod("foreign", "1", func(p *v1.Pod) { p.Spec.SchedulerName = "other" })
		w.bind("foreign", "n1")
		w.are("judged 1, unseen 1, pending 0")
	},
	"a pod that cannot be judged stops nobody": func(t failer) {
		w := newWorld(t)
		w.pod("a", "1", func(p *v1.Pod) {
			p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{
					Weight: 1, Preference: v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{
						{Key: "size", Operator: v1.NodeSelectorOpGt, Values: []string{"large"}}}}}}}}
		})
		w.bind("a", "n1")
		w.are("judged 1, unjudged 1, compared 0")
	},
	"what is kept is bounded": func(t failer) {
		w := newWorld(t)
		for i := range shadow.MaxDoubts + 10 {
			name := fmt.Sprint("a", i)
			w.pod(name, "3")
			w.bind(name, "n2")
		}
		w.are(fmt.Sprintf("open %d, lost 10", shadow.MaxDoubts))
		w = newWorld(t)
		for i := range shadow.MaxReasons + 10 {
			name := fmt.Sprint("a", i)
			w.pod(name, fmt.Sprint(5+i), func(p *v1.Pod) {
				p.Spec.Volumes = []v1.Volume{{Name: "v",
					VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{
						ClaimName: name}}}}
			})
			w.bind(name, "n2")
		}
		w.pass(12 * time.Second)
		r := w.are(fmt.Sprintf("disallowed %d, examples %d", shadow.MaxReasons+10, shadow.MaxExamples))
		if n := len(r.RejectedByUs.Reasons); n != shadow.MaxReasons+1 || r.RejectedByUs.Reasons[0].Pods != 10 {
			t.Errorf("%d reasons, the first %+v", n, r.RejectedByUs.Reasons[0])
		}
	},
	"the worst come first": func(t failer) {
		w := newWorld(t)
		w.node("n3", "8") // the larger the pod, the more it belongs there
		for i := range shadow.MaxExamples + 5 {
			name := fmt.Sprint("a", i)
			w.pod(name, fmt.Sprintf("%dm", 100*(i+1)))
			w.bind(name, "n1")
			w.gone(name)
		}
		r := w.are(fmt.Sprintf("examples %d", shadow.MaxExamples))
		if first, last := r.Examples[0].Judgement.Regret,
			r.Examples[shadow.MaxExamples-1].Judgement.Regret; float64(first) != r.Agreement.Regret.Max ||
			last >= first {
			t.Errorf("from %d to %d of at most %v", first, last, r.Agreement.Regret.Max)
		}
		w.pod("b", "9")
		w.bind("b", "n1")
		w.pass(12 * time.Second)
		if r := w.shadow.Report(); r.Examples[0].Kind != record.ShadowRejected ||
			len(r.Examples) != shadow.MaxExamples {
			t.Errorf("%+v", r.Examples[0])
		}
	},
}

// TestScenarios checks each line of the report by a scenario. They detect the faults in testdata/faults.
func TestScenarios(t *testing.T) {
	for name, scenario := range scenarios {
		t.Run(name, func(t *testing.T) { scenario(t) })
	}
}

// TestAShadowNeverDecides: a caller that asks it to decide has started it wrongly.
func TestAShadowNeverDecides(t *testing.T) {
	w := newWorld(t)
	w.pod("a", "1")
	if w.shadow.Ready() || !w.shadow.Engine.Ready() {
		t.Error("a shadow has nothing to decide, whatever its engine has")
	}
	if !probe.Fails(func(*probe.T) { w.shadow.Step(engine.Cycle{}) }) {
		t.Error("a shadow has decided")
	}
}
