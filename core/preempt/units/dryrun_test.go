// SPDX-License-Identifier: Apache-2.0

package units_test

import (
	"fmt"
	"maps"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/preempt/simulated"
	"github.com/kumiki-scheduler/kumiki/core/preempt/units"
)

// unitRuns are questions about 200 nodes of four cores in ten zones, each full of pods by themselves, with what the
// answer takes in dry runs at most and what it costs.
var unitRuns = []struct {
	name        string
	scene       func(w *gangWorld)
	ask         func() wish
	most        int
	units, pods int // of the victims; 0 for none
}{
	{"amounts alone", nil, func() wish { return alikes(50, 1, nil) }, 1, 50, 50},
	{"whole nodes", nil, func() wish { return alikes(10, 4, nil) }, 1, 40, 40},
	{"one gang instead of many pods", func(w *gangWorld) {
		for i := range 8 {
			w.SetNode(fmt.Sprint("big", i), 4, 10, "z0")
			w.Bind(fmt.Sprint("big", i), of("g", simulated.Pod(fmt.Sprint("g", i), 0, 4)))
		}
	}, func() wish { return alikes(30, 1, nil) }, 1, 1, 8},
	{"ports", func(w *gangWorld) {
		for i := range 10 {
			w.SetNode(fmt.Sprint("port", i), 4, 10, "z0")
			p := simulated.Pod(fmt.Sprint("port", i), 0, 0)
			p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80}}
			w.Bind(fmt.Sprint("port", i), p)
		}
	}, func() wish {
		return alikes(10, 0, func(p *v1.Pod) {
			p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80}}
			p.Spec.NodeSelector = map[string]string{"zone": "z0"}
			p.Spec.Containers[0].Resources.Requests = simulated.Pod("", 0, 1).Spec.Containers[0].Resources.Requests
		})
	}, 40, 10, 10},
	{"one per node", nil, func() wish {
		return alikes(20, 1, func(p *v1.Pod) { p.Spec.Affinity = apartFrom("boss") })
	}, 2, 20, 20},
	{"spread over zones", nil, func() wish {
		return alikes(10, 1, func(p *v1.Pod) {
			p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: v1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "boss"}}}}
		})
	}, 6, 10, 10},
	{"in one zone", nil, func() wish {
		ask := alikes(60, 1, nil)
		ask.topology = []cluster.GangTopology{{Key: "zone", Required: true}}
		return ask
	}, 2, 60, 60},
	{"too large for a zone", nil, func() wish {
		ask := alikes(81, 1, nil)
		ask.topology = []cluster.GangTopology{{Key: "zone", Required: true}}
		return ask
	}, 0, 0, 0},
	{"in the zone of a member", nil, func() wish {
		ask := alikes(81, 1, nil)
		ask.topology, ask.bound = []cluster.GangTopology{{Key: "zone", Required: true}}, []cluster.NodeIdx{3}
		return ask
	}, 0, 0, 0},
	{"one that is in the zone of members", func(w *gangWorld) {
		for i := range 40 { // a zone with more capacity
			w.SetNode(fmt.Sprint("wide", i), 4, 10, "z99")
			for k := range 4 {
				w.Bind(fmt.Sprint("wide", i), simulated.Pod(fmt.Sprint("wide", i, "-", k), 0, 1))
			}
		}
	}, func() wish {
		ask := alikes(100, 1, nil)
		ask.topology, ask.bound = []cluster.GangTopology{{Key: "zone", Required: true}}, []cluster.NodeIdx{3}
		return ask
	}, 0, 0, 0},
	{"too large for all", nil, func() wish { return alikes(801, 1, nil) }, 0, 0, 0},
	{"large ones on nodes that are too small", nil, func() wish { return alikes(1, 5, nil) }, 0, 0, 0},
}

// alikes are n members of so many cores.
func alikes(n int, cores int64, change func(p *v1.Pod)) wish {
	p := of("boss", simulated.Pod("boss", 10, cores))
	p.Labels = map[string]string{"app": "boss"}
	if change != nil {
		change(p)
	}
	return wish{pods: times(n, p), power: 10}
}

// apartFrom keeps a pod off nodes with pods of an app.
func apartFrom(app string) *v1.Affinity {
	return &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
		{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, TopologyKey: v1.LabelHostname}}}}
}

// playRuns is empty when a question takes no more than it should, and the answer is what it should be.
func playRuns(name string) string {
	for _, r := range unitRuns {
		if r.name != name {
			continue
		}
		w := newGangWorld()
		for i := range 200 {
			w.SetNode(fmt.Sprint("n", i), 4, 10, fmt.Sprint("z", i/20))
			for k := range 4 {
				w.Bind(fmt.Sprint("n", i), simulated.Started(simulated.Pod(fmt.Sprint("p", i, "-", k), int32(k%2), 1), int64(1+(i*31+k*17)%1000)))
			}
		}
		if r.scene != nil {
			r.scene(w)
		}
		ask := r.ask()
		var f units.Finder
		a, ok := w.units(&f, ask, nil)
		if !ok || a.Tried > r.most || a.Loss.Units != r.units || a.Loss.Pods != r.pods || len(a.Considered) > units.MaxConsidered || len(a.Considered) == 0 {
			return fmt.Sprintf("%s: %d units, %d pods, %d dry runs, want %d, %d, %d at most; %s; %d considered", name, a.Loss.Units, a.Loss.Pods, a.Tried, r.units, r.pods, r.most, a.Message, len(a.Considered))
		}
		if why := w.unlawful(ask, a); why != "" {
			return name + ": " + why
		}
	}
	return ""
}

// TestUnitRuns: bounds leave few dry runs to make.
func TestUnitRuns(t *testing.T) {
	for _, r := range unitRuns {
		t.Run(r.name, func(t *testing.T) {
			if wrong := playRuns(r.name); wrong != "" {
				t.Error(wrong)
			}
		})
	}
}

// staysAreTold: the answer says why each unit stays: it does not help, it is not needed, or it may not be evicted.
func staysAreTold(t fataler) {
	w := newGangWorld()
	w.SetNode("n0", 2, 10, "z0")
	w.SetNode("n1", 4, 10, "z1")
	w.never["daemon"] = "a DaemonSet's pod"
	w.Bind("n0", simulated.Pod("small", 1, 2))
	w.Bind("n1", of("g", simulated.Pod("g0", 2, 1)))
	w.Bind("n1", of("g", simulated.Pod("g1", 2, 1)))
	w.Bind("n1", simulated.Pod("low", 1, 2))
	w.Bind("n0", simulated.Pod("daemon", 1, 0))
	w.Bind("n0", simulated.Pod("equal", 10, 0))
	node := v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{
		{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "zone", Operator: v1.NodeSelectorOpIn, Values: []string{"z1"}}}}}}}}
	want := map[string]string{
		"small":  "1 of 1: nothing that it holds is where it would help",
		"g0":     "g2 of 2: there is room for all without its going",
		"daemon": "1 of 1: a DaemonSet's pod",
		"equal":  "1 of 10: it is of no lower priority",
	}
	var lone, asGang units.Finder
	asGang.AsForGangs()
	for _, f := range []*units.Finder{&lone, &asGang} {
		a, _ := w.units(f, alikes(1, 2, func(p *v1.Pod) { p.Spec.Affinity = &node }), nil)
		told := map[string]string{}
		for _, c := range a.Considered {
			told[c.Pod.Name] = fmt.Sprint(c.Gang.Name, c.Pods, " of ", c.Priority, ": ", c.Why)
		}
		if got := toldUnits(a); got != "low" || !maps.Equal(told, want) {
			t.Fatalf("%s goes, and %v, want %v", got, told, want)
		}
	}
	w.SetNode("n1", 6, 10, "z1")
	w.Bind("n1", going(simulated.Pod("leaves", 1, 2)))
	for _, f := range []*units.Finder{&lone, &asGang} {
		a, _ := w.units(f, alikes(1, 2, func(p *v1.Pod) { p.Spec.Affinity = &node }), nil)
		for _, c := range a.Considered {
			if c.Pod.Name == "low" && c.Why != "there is room for all without its going" {
				t.Fatalf("of low, which stays since there is room to come: %s", c.Why)
			}
		}
	}
}

// TestStaysAreTold: see staysAreTold.
func TestStaysAreTold(t *testing.T) { staysAreTold(t) }
