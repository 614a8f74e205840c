// SPDX-License-Identifier: Apache-2.0

package basic

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

const (
	noSchedule = v1.TaintEffectNoSchedule
	noExecute  = v1.TaintEffectNoExecute
	rather     = v1.TaintEffectPreferNoSchedule
	equal      = v1.TolerationOpEqual
	exists     = v1.TolerationOpExists
)

// Which taints keep a pod away. Mutants: taint-effect-ignored, taint-no-execute-free, taint-empty-key-equal.
func TestTaintTolerationFilters(t *testing.T) {
	db := plugintest.Taint("dedicated", "db", noSchedule)
	for _, story := range []struct {
		name string
		node *v1.Node
		pod  *v1.Pod
		fits bool
	}{
		{"no taint", plugintest.Node("n"), plugintest.Pod("p"), true},
		{"a taint", plugintest.Node("n", db), plugintest.Pod("p"), false},
		{"NoExecute keeps pods away too", plugintest.Node("n", plugintest.Taint("dedicated", "db", noExecute)), plugintest.Pod("p"), false},
		{"PreferNoSchedule does not", plugintest.Node("n", plugintest.Taint("dedicated", "db", rather)), plugintest.Pod("p"), true},
		{"tolerated by value", plugintest.Node("n", db), plugintest.Pod("p", plugintest.Toleration("dedicated", equal, "db", noSchedule)), true},
		{"no operator means Equal", plugintest.Node("n", db), plugintest.Pod("p", plugintest.Toleration("dedicated", "", "db", noSchedule)), true},
		{"another value", plugintest.Node("n", db), plugintest.Pod("p", plugintest.Toleration("dedicated", equal, "web", noSchedule)), false},
		{"another key", plugintest.Node("n", db), plugintest.Pod("p", plugintest.Toleration("owner", equal, "db", noSchedule)), false},
		{"another effect", plugintest.Node("n", db), plugintest.Pod("p", plugintest.Toleration("dedicated", equal, "db", noExecute)), false},
		{"any effect", plugintest.Node("n", db), plugintest.Pod("p", plugintest.Toleration("dedicated", equal, "db", "")), true},
		{"any value", plugintest.Node("n", db), plugintest.Pod("p", plugintest.Toleration("dedicated", exists, "", noSchedule)), true},
		{"anything", plugintest.Node("n", db), plugintest.Pod("p", plugintest.Toleration("", exists, "", "")), true},
		{"any key of this value", plugintest.Node("n", db), plugintest.Pod("p", plugintest.Toleration("", equal, "db", "")), true},
		{"two taints, one tolerated", plugintest.Node("n", db, plugintest.Taint("broken", "", noExecute)), plugintest.Pod("p", plugintest.Toleration("dedicated", exists, "", "")), false},
		{"two taints, both tolerated", plugintest.Node("n", db, plugintest.Taint("broken", "", noExecute)), plugintest.Pod("p", plugintest.Toleration("dedicated", exists, "", ""), plugintest.Toleration("broken", exists, "", "")), true},
		{"comparing numbers is not on in 1.37", plugintest.Node("n", plugintest.Taint("sla", "5", noSchedule)), plugintest.Pod("p", plugintest.Toleration("sla", v1.TolerationOpGt, "3", "")), false},
	} {
		t.Run(story.name, func(t *testing.T) {
			got, unresolvable := plugintest.NewCluster().With(story.node).Reasons(t, TaintToleration{}, story.pod, "n")
			if story.fits {
				if len(got) != 0 {
					t.Errorf("got %q, want that it fits", got)
				}
			} else if want := []string{"node(s) had untolerated taint(s)"}; !slices.Equal(got, want) || !unresolvable {
				t.Errorf("got %q (unresolvable %v), want %q, unresolvable", got, unresolvable, want)
			}
		})
	}
}

// The raw score counts PreferNoSchedule taints that are not tolerated. Mutant: taint-score-all-effects.
func TestTaintTolerationScores(t *testing.T) {
	n := plugintest.Node("n", plugintest.Taint("slow", "", rather), plugintest.Taint("far", "1", rather), plugintest.Taint("dedicated", "db", noSchedule))
	for _, story := range []struct {
		name string
		pod  *v1.Pod
		want int64
	}{
		{"nothing tolerated", plugintest.Pod("p"), 2},
		{"one tolerated", plugintest.Pod("p", plugintest.Toleration("slow", exists, "", rather)), 1},
		{"tolerated for another effect", plugintest.Pod("p", plugintest.Toleration("slow", exists, "", noSchedule)), 2},
		{"all tolerated", plugintest.Pod("p", plugintest.Toleration("", exists, "", "")), 0},
	} {
		if got, ok := plugintest.NewCluster().With(n).Score(t, TaintToleration{}, story.pod, "n"); !ok || got != story.want {
			t.Errorf("%s: %d (scored: %v), want %d", story.name, got, ok, story.want)
		}
	}
}

// Mutant: taint-hint-any-node.
func TestTaintTolerationWakes(t *testing.T) {
	in := convert.NewIntake()
	waiting := in.Pod(plugintest.Pod("waiting", plugintest.Toleration("dedicated", exists, "", "")))
	clean, dedicated, broken := plugintest.Node("n"), plugintest.Node("n", plugintest.Taint("dedicated", "db", noSchedule)), plugintest.Node("n", plugintest.Taint("broken", "", noExecute))
	for _, story := range []struct {
		name     string
		event    plugin.Event
		old, new any
		want     plugin.Hint
	}{
		{"a clean node", plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, nil, clean, plugin.QueueHint},
		{"a node it tolerates", plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, nil, dedicated, plugin.QueueHint},
		{"a node it does not", plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, nil, broken, plugin.SkipHint},
		{"a taint goes", plugin.Event{Resource: plugin.NodeObject, Action: plugin.UpdateNodeTaint}, broken, clean, plugin.QueueHint},
		{"a tolerated taint goes", plugin.Event{Resource: plugin.NodeObject, Action: plugin.UpdateNodeTaint}, dedicated, clean, plugin.SkipHint},
		{"a taint comes", plugin.Event{Resource: plugin.NodeObject, Action: plugin.UpdateNodeTaint}, clean, broken, plugin.SkipHint},
		{"the pod tolerates more", plugin.Event{Resource: plugin.TargetPod, Action: plugin.UpdatePodToleration}, plugintest.Pod("waiting"), plugintest.Pod("waiting"), plugin.QueueHint},
	} {
		if got, asked := plugintest.HintOf(TaintToleration{}, waiting, plugintest.ChangeOf(in, story.event, story.old, story.new)); !asked || got != story.want {
			t.Errorf("%s: hint %v (asked: %v), want %v", story.name, got, asked, story.want)
		}
	}
}

// A cordon keeps out all pods but those that tolerate its taint. Mutant: cordon-always-tolerated.
func TestNodeUnschedulable(t *testing.T) {
	w := plugintest.NewCluster().With(plugintest.Node("open"), plugintest.Node("closed", plugintest.Cordon))
	tolerant := plugintest.Toleration(v1.TaintNodeUnschedulable, exists, "", noSchedule)
	for _, story := range []struct {
		pod  *v1.Pod
		on   string
		fits bool
	}{
		{plugintest.Pod("p"), "open", true},
		{plugintest.Pod("p"), "closed", false},
		{plugintest.Pod("p", tolerant), "closed", true},
		{plugintest.Pod("p", plugintest.Toleration("", exists, "", "")), "closed", true},
		{plugintest.Pod("p", plugintest.Toleration(v1.TaintNodeUnschedulable, exists, "", noExecute)), "closed", false},
	} {
		got, unresolvable := w.Reasons(t, NodeUnschedulable{}, story.pod, story.on)
		if fits := len(got) == 0; fits != story.fits || !fits && (!unresolvable || got[0] != "node(s) were unschedulable") {
			t.Errorf("%v on the %s node: %q (unresolvable %v), want fits %v", story.pod.Spec.Tolerations, story.on, got, unresolvable, story.fits)
		}
	}
	in := convert.NewIntake()
	waiting := in.Pod(plugintest.Pod("waiting"))
	for _, story := range []struct {
		name     string
		event    plugin.Event
		old, new any
		want     plugin.Hint
	}{
		{"an open node", plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, nil, plugintest.Node("n"), plugin.QueueHint},
		{"a closed node", plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, nil, plugintest.Node("n", plugintest.Cordon), plugin.SkipHint},
		{"a node opens", plugin.Event{Resource: plugin.NodeObject, Action: plugin.UpdateNodeTaint}, plugintest.Node("n", plugintest.Cordon), plugintest.Node("n"), plugin.QueueHint},
		{"a node stays open", plugin.Event{Resource: plugin.NodeObject, Action: plugin.UpdateNodeTaint}, plugintest.Node("n"), plugintest.Node("n"), plugin.SkipHint},
		{"the pod comes to tolerate it", plugin.Event{Resource: plugin.TargetPod, Action: plugin.UpdatePodToleration}, plugintest.Pod("waiting"), plugintest.Pod("waiting", tolerant), plugin.QueueHint},
		{"the pod tolerates something else", plugin.Event{Resource: plugin.TargetPod, Action: plugin.UpdatePodToleration}, plugintest.Pod("waiting"), plugintest.Pod("waiting", plugintest.Toleration("x", exists, "", "")), plugin.SkipHint},
	} {
		if got, asked := plugintest.HintOf(NodeUnschedulable{}, waiting, plugintest.ChangeOf(in, story.event, story.old, story.new)); !asked || got != story.want {
			t.Errorf("%s: hint %v (asked: %v), want %v", story.name, got, asked, story.want)
		}
	}
}

// Mutant: name-any-node.
func TestNodeName(t *testing.T) {
	w := plugintest.NewCluster().With(plugintest.Node("here"), plugintest.Node("there"))
	if got, _ := w.Reasons(t, NodeName{}, plugintest.Pod("p", plugintest.OnNode("here")), "here"); len(got) != 0 {
		t.Errorf("the node it insists on: %q", got)
	}
	if got, _ := w.Reasons(t, NodeName{}, plugintest.Pod("p"), "there"); len(got) != 0 {
		t.Errorf("a pod that insists on nothing: %q", got)
	}
	for _, wish := range []string{"here", "nowhere"} {
		got, unresolvable := w.Reasons(t, NodeName{}, plugintest.Pod("p", plugintest.OnNode(wish)), "there")
		if want := []string{"node(s) didn't match the requested node name"}; !slices.Equal(got, want) || !unresolvable {
			t.Errorf("insists on %s: %q (unresolvable %v), want %q", wish, got, unresolvable, want)
		}
	}
	in := convert.NewIntake()
	if got, asked := plugintest.HintOf(NodeName{}, in.Pod(plugintest.Pod("p")), plugintest.ChangeOf(in, plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, nil, plugintest.Node("n"))); !asked || got != plugin.QueueHint {
		t.Errorf("a new node: hint %v (asked: %v)", got, asked)
	}
}

// Ports conflict on the same port and protocol, when the addresses are the same or one of them is all addresses.
// Mutants: ports-no-wildcard, ports-no-protocol.
func TestNodePorts(t *testing.T) {
	sidecarPort := func(p *v1.Pod) {
		always := v1.ContainerRestartPolicyAlways
		p.Spec.InitContainers = []v1.Container{{RestartPolicy: &always, Ports: []v1.ContainerPort{{HostPort: 80}}}}
	}
	initPort := func(p *v1.Pod) {
		p.Spec.InitContainers = []v1.Container{{Ports: []v1.ContainerPort{{HostPort: 80}}}}
	}
	for _, story := range []struct {
		name        string
		taken, want plugintest.PodOption
		fits        bool
	}{
		{"the same port", plugintest.HostPort("", "", 80), plugintest.HostPort("", "", 80), false},
		{"another port", plugintest.HostPort("", "", 80), plugintest.HostPort("", "", 81), true},
		{"another protocol", plugintest.HostPort("", v1.ProtocolUDP, 80), plugintest.HostPort("", v1.ProtocolTCP, 80), true},
		{"no protocol means TCP", plugintest.HostPort("", "", 80), plugintest.HostPort("", v1.ProtocolTCP, 80), false},
		{"another address", plugintest.HostPort("127.0.0.1", "", 80), plugintest.HostPort("10.0.0.1", "", 80), true},
		{"the same address", plugintest.HostPort("127.0.0.1", "", 80), plugintest.HostPort("127.0.0.1", "", 80), false},
		{"all addresses wanted", plugintest.HostPort("127.0.0.1", "", 80), plugintest.HostPort("0.0.0.0", "", 80), false},
		{"all addresses taken", plugintest.HostPort("", "", 80), plugintest.HostPort("127.0.0.1", "", 80), false},
		{"no host port", plugintest.HostPort("", "", 80), plugintest.Requests(), true},
		{"taken by a sidecar", sidecarPort, plugintest.HostPort("", "", 80), false},
		{"an init container is gone by then", initPort, plugintest.HostPort("", "", 80), true},
	} {
		t.Run(story.name, func(t *testing.T) {
			w := plugintest.NewCluster().With(plugintest.Node("n"), plugintest.Pod("there", story.taken, plugintest.OnNode("n")))
			got, unresolvable := w.Reasons(t, NodePorts{}, plugintest.Pod("p", story.want), "n")
			if fits := len(got) == 0; fits != story.fits || unresolvable {
				t.Errorf("%q (unresolvable %v), want fits %v", got, unresolvable, story.fits)
			}
			if !story.fits && got[0] != "node(s) didn't have free ports for the requested pod ports" {
				t.Errorf("reason %q", got)
			}
		})
	}
}

// Mutant: ports-hint-any-delete.
func TestNodePortsWakes(t *testing.T) {
	in := convert.NewIntake()
	waiting := in.Pod(plugintest.Pod("waiting", plugintest.HostPort("", "", 80)))
	gone := func(options ...plugintest.PodOption) plugin.Change {
		return plugintest.ChangeOf(in, plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Delete}, plugintest.Pod("gone", options...), nil)
	}
	for _, story := range []struct {
		name   string
		change plugin.Change
		want   plugin.Hint
	}{
		{"a new node", plugintest.ChangeOf(in, plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, nil, plugintest.Node("n")), plugin.QueueHint},
		{"the port becomes free", gone(plugintest.HostPort("", "", 80), plugintest.OnNode("n")), plugin.QueueHint},
		{"a nominated pod gives the port up", gone(plugintest.HostPort("", "", 80), plugintest.Nominated("n")), plugin.QueueHint},
		{"another port becomes free", gone(plugintest.HostPort("", "", 81), plugintest.OnNode("n")), plugin.SkipHint},
		{"a pod without ports goes", gone(plugintest.Requests(), plugintest.OnNode("n")), plugin.SkipHint},
		{"a pending pod goes", gone(plugintest.HostPort("", "", 80)), plugin.SkipHint},
	} {
		if got, asked := plugintest.HintOf(NodePorts{}, waiting, story.change); !asked || got != story.want {
			t.Errorf("%s: hint %v (asked: %v), want %v", story.name, got, asked, story.want)
		}
	}
}

// A pod with gates waits, and its own update that removes the last one wakes it. Mutant: gates-open.
func TestSchedulingGates(t *testing.T) {
	in := convert.NewIntake()
	gated := plugintest.Pod("gated", plugintest.Requests())
	gated.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "quota"}, {Name: "network"}}
	if reason, ok := (SchedulingGates{}).Gated(cluster.Snapshot{}, in.Pod(gated)); ok || reason != "waiting for scheduling gates: [quota network]" {
		t.Errorf("gated pod: %q, %v", reason, ok)
	}
	if reason, ok := (SchedulingGates{}).Gated(cluster.Snapshot{}, in.Pod(plugintest.Pod("free"))); !ok {
		t.Errorf("free pod: %q", reason)
	}
	opened := plugin.Event{Resource: plugin.TargetPod, Action: plugin.UpdatePodSchedulingGatesEliminated}
	if got, asked := plugintest.HintOf(SchedulingGates{}, in.Pod(gated), plugintest.ChangeOf(in, opened, gated, plugintest.Pod("gated"))); !asked || got != plugin.QueueHint {
		t.Errorf("own gates removed: %v (asked: %v)", got, asked)
	}
}

// Mutant: priority-reversed.
func TestPrioritySort(t *testing.T) {
	in := convert.NewIntake()
	urgent, equalTo := plugintest.Pod("urgent"), plugintest.Pod("equal")
	urgent.Spec.Priority, equalTo.Spec.Priority = new(int32), new(int32)
	*urgent.Spec.Priority = 10
	u, e, none := in.Pod(urgent), in.Pod(equalTo), in.Pod(plugintest.Pod("none"))
	var sort PrioritySort
	if !sort.Before(u, e) || sort.Before(e, u) || sort.Before(e, none) || sort.Before(none, e) {
		t.Errorf("priorities 10, 0 and none do not sort as 10 before 0 and none, which are equal")
	}
}
