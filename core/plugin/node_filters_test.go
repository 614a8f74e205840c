// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
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
	db := taint("dedicated", "db", noSchedule)
	for _, story := range []struct {
		name string
		node *v1.Node
		pod  *v1.Pod
		fits bool
	}{
		{"no taint", node("n"), pod("p"), true},
		{"a taint", node("n", db), pod("p"), false},
		{"NoExecute keeps pods away too", node("n", taint("dedicated", "db", noExecute)), pod("p"), false},
		{"PreferNoSchedule does not", node("n", taint("dedicated", "db", rather)), pod("p"), true},
		{"tolerated by value", node("n", db), pod("p", tolerate("dedicated", equal, "db", noSchedule)), true},
		{"no operator means Equal", node("n", db), pod("p", tolerate("dedicated", "", "db", noSchedule)), true},
		{"another value", node("n", db), pod("p", tolerate("dedicated", equal, "web", noSchedule)), false},
		{"another key", node("n", db), pod("p", tolerate("owner", equal, "db", noSchedule)), false},
		{"another effect", node("n", db), pod("p", tolerate("dedicated", equal, "db", noExecute)), false},
		{"any effect", node("n", db), pod("p", tolerate("dedicated", equal, "db", "")), true},
		{"any value", node("n", db), pod("p", tolerate("dedicated", exists, "", noSchedule)), true},
		{"anything", node("n", db), pod("p", tolerate("", exists, "", "")), true},
		{"any key of this value", node("n", db), pod("p", tolerate("", equal, "db", "")), true},
		{"two taints, one tolerated", node("n", db, taint("broken", "", noExecute)), pod("p", tolerate("dedicated", exists, "", "")), false},
		{"two taints, both tolerated", node("n", db, taint("broken", "", noExecute)), pod("p", tolerate("dedicated", exists, "", ""), tolerate("broken", exists, "", "")), true},
		{"comparing numbers is not on in 1.36", node("n", taint("sla", "5", noSchedule)), pod("p", tolerate("sla", v1.TolerationOpGt, "3", "")), false},
	} {
		t.Run(story.name, func(t *testing.T) {
			got, unresolvable := newWorld().with(story.node).says(t, TaintToleration{}, story.pod, "n")
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
	n := node("n", taint("slow", "", rather), taint("far", "1", rather), taint("dedicated", "db", noSchedule))
	for _, story := range []struct {
		name string
		pod  *v1.Pod
		want int64
	}{
		{"nothing tolerated", pod("p"), 2},
		{"one tolerated", pod("p", tolerate("slow", exists, "", rather)), 1},
		{"tolerated for another effect", pod("p", tolerate("slow", exists, "", noSchedule)), 2},
		{"all tolerated", pod("p", tolerate("", exists, "", "")), 0},
	} {
		if got, ok := newWorld().with(n).scores(t, TaintToleration{}, story.pod, "n"); !ok || got != story.want {
			t.Errorf("%s: %d (scored: %v), want %d", story.name, got, ok, story.want)
		}
	}
}

// Mutant: taint-hint-any-node.
func TestTaintTolerationWakes(t *testing.T) {
	in := cluster.NewIntake()
	waiting := in.Pod(pod("waiting", tolerate("dedicated", exists, "", "")))
	clean, dedicated, broken := node("n"), node("n", taint("dedicated", "db", noSchedule)), node("n", taint("broken", "", noExecute))
	for _, story := range []struct {
		name     string
		event    Event
		old, new any
		want     Hint
	}{
		{"a clean node", Event{Resource: NodeObject, Action: Add}, nil, clean, QueueHint},
		{"a node it tolerates", Event{Resource: NodeObject, Action: Add}, nil, dedicated, QueueHint},
		{"a node it does not", Event{Resource: NodeObject, Action: Add}, nil, broken, SkipHint},
		{"a taint goes", Event{Resource: NodeObject, Action: UpdateNodeTaint}, broken, clean, QueueHint},
		{"a tolerated taint goes", Event{Resource: NodeObject, Action: UpdateNodeTaint}, dedicated, clean, SkipHint},
		{"a taint comes", Event{Resource: NodeObject, Action: UpdateNodeTaint}, clean, broken, SkipHint},
		{"the pod tolerates more", Event{Resource: UnscheduledPod, Action: UpdatePodToleration}, pod("waiting"), pod("waiting"), QueueHint},
		{"another pod tolerates more", Event{Resource: UnscheduledPod, Action: UpdatePodToleration}, pod("other"), pod("other"), SkipHint},
	} {
		if got, asked := wakes(TaintToleration{}, waiting, changeOf(in, story.event, story.old, story.new)); !asked || got != story.want {
			t.Errorf("%s: hint %v (asked: %v), want %v", story.name, got, asked, story.want)
		}
	}
}

// A cordon keeps out all pods but those that tolerate its taint. Mutant: cordon-always-tolerated.
func TestNodeUnschedulable(t *testing.T) {
	w := newWorld().with(node("open"), node("closed", cordon))
	tolerant := tolerate(v1.TaintNodeUnschedulable, exists, "", noSchedule)
	for _, story := range []struct {
		pod  *v1.Pod
		on   string
		fits bool
	}{
		{pod("p"), "open", true},
		{pod("p"), "closed", false},
		{pod("p", tolerant), "closed", true},
		{pod("p", tolerate("", exists, "", "")), "closed", true},
		{pod("p", tolerate(v1.TaintNodeUnschedulable, exists, "", noExecute)), "closed", false},
	} {
		got, unresolvable := w.says(t, NodeUnschedulable{}, story.pod, story.on)
		if fits := len(got) == 0; fits != story.fits || !fits && (!unresolvable || got[0] != "node(s) were unschedulable") {
			t.Errorf("%v on the %s node: %q (unresolvable %v), want fits %v", story.pod.Spec.Tolerations, story.on, got, unresolvable, story.fits)
		}
	}
	in := cluster.NewIntake()
	waiting := in.Pod(pod("waiting"))
	for _, story := range []struct {
		name     string
		event    Event
		old, new any
		want     Hint
	}{
		{"an open node", Event{Resource: NodeObject, Action: Add}, nil, node("n"), QueueHint},
		{"a closed node", Event{Resource: NodeObject, Action: Add}, nil, node("n", cordon), SkipHint},
		{"a node opens", Event{Resource: NodeObject, Action: UpdateNodeTaint}, node("n", cordon), node("n"), QueueHint},
		{"a node stays open", Event{Resource: NodeObject, Action: UpdateNodeTaint}, node("n"), node("n"), SkipHint},
		{"the pod comes to tolerate it", Event{Resource: UnscheduledPod, Action: UpdatePodToleration}, pod("waiting"), pod("waiting", tolerant), QueueHint},
		{"the pod tolerates something else", Event{Resource: UnscheduledPod, Action: UpdatePodToleration}, pod("waiting"), pod("waiting", tolerate("x", exists, "", "")), SkipHint},
		{"another pod tolerates it", Event{Resource: UnscheduledPod, Action: UpdatePodToleration}, pod("other"), pod("other", tolerant), SkipHint},
	} {
		if got, asked := wakes(NodeUnschedulable{}, waiting, changeOf(in, story.event, story.old, story.new)); !asked || got != story.want {
			t.Errorf("%s: hint %v (asked: %v), want %v", story.name, got, asked, story.want)
		}
	}
}

// Mutant: name-any-node.
func TestNodeName(t *testing.T) {
	w := newWorld().with(node("here"), node("there"))
	if got, _ := w.says(t, NodeName{}, pod("p", onNode("here")), "here"); len(got) != 0 {
		t.Errorf("the node it insists on: %q", got)
	}
	if got, _ := w.says(t, NodeName{}, pod("p"), "there"); len(got) != 0 {
		t.Errorf("a pod that insists on nothing: %q", got)
	}
	for _, wish := range []string{"here", "nowhere"} {
		got, unresolvable := w.says(t, NodeName{}, pod("p", onNode(wish)), "there")
		if want := []string{"node(s) didn't match the requested node name"}; !slices.Equal(got, want) || !unresolvable {
			t.Errorf("insists on %s: %q (unresolvable %v), want %q", wish, got, unresolvable, want)
		}
	}
	in := cluster.NewIntake()
	if got, asked := wakes(NodeName{}, in.Pod(pod("p")), changeOf(in, Event{Resource: NodeObject, Action: Add}, nil, node("n"))); !asked || got != QueueHint {
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
		taken, want podOption
		fits        bool
	}{
		{"the same port", hostPort("", "", 80), hostPort("", "", 80), false},
		{"another port", hostPort("", "", 80), hostPort("", "", 81), true},
		{"another protocol", hostPort("", v1.ProtocolUDP, 80), hostPort("", v1.ProtocolTCP, 80), true},
		{"no protocol means TCP", hostPort("", "", 80), hostPort("", v1.ProtocolTCP, 80), false},
		{"another address", hostPort("127.0.0.1", "", 80), hostPort("10.0.0.1", "", 80), true},
		{"the same address", hostPort("127.0.0.1", "", 80), hostPort("127.0.0.1", "", 80), false},
		{"all addresses wanted", hostPort("127.0.0.1", "", 80), hostPort("0.0.0.0", "", 80), false},
		{"all addresses taken", hostPort("", "", 80), hostPort("127.0.0.1", "", 80), false},
		{"no host port", hostPort("", "", 80), asks(), true},
		{"taken by a sidecar", sidecarPort, hostPort("", "", 80), false},
		{"an init container is gone by then", initPort, hostPort("", "", 80), true},
	} {
		t.Run(story.name, func(t *testing.T) {
			w := newWorld().with(node("n"), pod("there", story.taken, onNode("n")))
			got, unresolvable := w.says(t, NodePorts{}, pod("p", story.want), "n")
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
	in := cluster.NewIntake()
	waiting := in.Pod(pod("waiting", hostPort("", "", 80)))
	gone := func(options ...podOption) Change {
		return changeOf(in, Event{Resource: AssignedPod, Action: Delete}, pod("gone", options...), nil)
	}
	for _, story := range []struct {
		name   string
		change Change
		want   Hint
	}{
		{"a new node", changeOf(in, Event{Resource: NodeObject, Action: Add}, nil, node("n")), QueueHint},
		{"the port becomes free", gone(hostPort("", "", 80), onNode("n")), QueueHint},
		{"a nominated pod gives the port up", gone(hostPort("", "", 80), nominated("n")), QueueHint},
		{"another port becomes free", gone(hostPort("", "", 81), onNode("n")), SkipHint},
		{"a pod without ports goes", gone(asks(), onNode("n")), SkipHint},
		{"a pending pod goes", gone(hostPort("", "", 80)), SkipHint},
	} {
		if got, asked := wakes(NodePorts{}, waiting, story.change); !asked || got != story.want {
			t.Errorf("%s: hint %v (asked: %v), want %v", story.name, got, asked, story.want)
		}
	}
}

// A pod with gates waits, and its own update that removes the last one wakes it. Mutant: gates-open.
func TestSchedulingGates(t *testing.T) {
	in := cluster.NewIntake()
	gated := pod("gated", asks())
	gated.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "quota"}, {Name: "network"}}
	if reason, ok := (SchedulingGates{}).Gated(cluster.Snapshot{}, in.Pod(gated)); ok || reason != "waiting for scheduling gates: [quota network]" {
		t.Errorf("gated pod: %q, %v", reason, ok)
	}
	if reason, ok := (SchedulingGates{}).Gated(cluster.Snapshot{}, in.Pod(pod("free"))); !ok {
		t.Errorf("free pod: %q", reason)
	}
	opened := Event{Resource: UnscheduledPod, Action: UpdatePodSchedulingGatesEliminated}
	if got, asked := wakes(SchedulingGates{}, in.Pod(gated), changeOf(in, opened, gated, pod("gated"))); !asked || got != QueueHint {
		t.Errorf("own gates removed: %v (asked: %v)", got, asked)
	}
	if got, _ := wakes(SchedulingGates{}, in.Pod(gated), changeOf(in, opened, pod("other"), pod("other"))); got != SkipHint {
		t.Errorf("another pod's gates removed: %v", got)
	}
}

// Mutant: priority-reversed.
func TestPrioritySort(t *testing.T) {
	in := cluster.NewIntake()
	urgent, equalTo := pod("urgent"), pod("equal")
	urgent.Spec.Priority, equalTo.Spec.Priority = new(int32), new(int32)
	*urgent.Spec.Priority = 10
	u, e, none := in.Pod(urgent), in.Pod(equalTo), in.Pod(pod("none"))
	var sort PrioritySort
	if !sort.Before(u, e) || sort.Before(e, u) || sort.Before(e, none) || sort.Before(none, e) {
		t.Errorf("priorities 10, 0 and none do not sort as 10 before 0 and none, which are equal")
	}
}
