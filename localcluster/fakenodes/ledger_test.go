// SPDX-License-Identifier: Apache-2.0

package fakenodes

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/localcluster/admission"
)

func cores(n string) v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: resource.MustParse(n)}
}

func node(name, cpu string) *v1.Node {
	allocatable := cores(cpu)
	allocatable[v1.ResourcePods] = resource.MustParse("100")
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Allocatable: allocatable}}
}

func pod(uid, nodeName, cpu string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid)},
		Spec: v1.PodSpec{
			NodeName:   nodeName,
			Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: cores(cpu)}}},
		},
		Status: v1.PodStatus{Phase: v1.PodPending},
	}
}

func inPhase(p *v1.Pod, phase v1.PodPhase) *v1.Pod {
	p = p.DeepCopy()
	p.Status.Phase = phase
	return p
}

func wantState(t *testing.T, l *ledger, uid string, want podState) {
	t.Helper()
	v, ok := l.look(types.UID(uid))
	if !ok || v.state != want {
		t.Errorf("pod %s is in state %d (known: %v), want %d", uid, v.state, ok, want)
	}
}

// The pod that is bound first is admitted first, and only an end or a deletion frees capacity.
// Mutant: releasing on a deletion timestamp.
func TestLedgerAdmitsInOrderOfBinding(t *testing.T) {
	l := newLedger()
	var refusals []string
	l.rejected = func(p *v1.Pod, _ admission.Verdict) { refusals = append(refusals, p.Name) }
	l.SetNode(node("n", "2"))
	l.SetPod(pod("a", "n", "1"))
	l.SetPod(pod("b", "n", "1"))
	l.SetPod(pod("c", "n", "1"))
	wantState(t, l, "a", admitted)
	wantState(t, l, "b", admitted)
	wantState(t, l, "c", refused)

	deleting := inPhase(pod("a", "n", "1"), v1.PodRunning)
	deleting.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	l.SetPod(deleting)
	l.SetPod(pod("d", "n", "1"))
	wantState(t, l, "d", refused)

	l.DropPod("a")
	l.SetPod(pod("e", "n", "1"))
	wantState(t, l, "e", admitted)
	l.SetPod(inPhase(pod("b", "n", "1"), v1.PodSucceeded))
	wantState(t, l, "b", over)
	l.SetPod(pod("f", "n", "1"))
	wantState(t, l, "f", admitted)

	// A verdict is final: later events and free capacity change nothing.
	l.SetPod(pod("c", "n", "1"))
	wantState(t, l, "c", refused)
	if want := []string{"c", "d"}; !slices.Equal(refusals, want) {
		t.Errorf("refusals: %v, want %v, each once", refusals, want)
	}
}

// A pod may be bound to a node that does not exist; it waits, and is decided
// when the node comes.
func TestLedgerWaitsForNode(t *testing.T) {
	l := newLedger()
	l.SetPod(pod("late", "n", "3"))
	if _, ok := l.look("late"); ok {
		t.Error("a pod without a node has a kubelet")
	}
	l.SetNode(node("n", "2"))
	wantState(t, l, "late", refused)
}

// A node that goes keeps its pods' shares: it may come back with them running.
func TestLedgerKeepsUsageOfLostNode(t *testing.T) {
	l := newLedger()
	l.SetNode(node("n", "2"))
	l.SetPod(pod("a", "n", "2"))
	l.DropNode("n")
	l.SetPod(pod("b", "n", "1"))
	l.SetNode(node("n", "2"))
	wantState(t, l, "a", admitted)
	wantState(t, l, "b", refused)
	l.DropNode("n")
	l.DropPod("a")
	l.DropPod("b")
	if len(l.hosts) != 0 || len(l.pods) != 0 {
		t.Errorf("left behind: %d hosts, %d pods", len(l.hosts), len(l.pods))
	}
}

// After a restart running pods keep their place, whatever the list's order.
// Mutant: admitting a list as it comes.
func TestLedgerListPutsRunningFirst(t *testing.T) {
	l := newLedger()
	l.SetNode(node("n", "2"))
	early := pod("early", "n", "1")
	early.CreationTimestamp = metav1.Unix(1, 0)
	late := pod("late", "n", "1")
	late.CreationTimestamp = metav1.Unix(2, 0)
	runs := inPhase(pod("runs", "n", "1"), v1.PodRunning)
	runs.CreationTimestamp = metav1.Unix(3, 0)
	l.ReplacePods([]*v1.Pod{late, early, runs})
	wantState(t, l, "runs", admitted)
	wantState(t, l, "early", admitted)
	wantState(t, l, "late", refused)
	l.ReplacePods([]*v1.Pod{late})
	if _, ok := l.look("runs"); ok {
		t.Error("a pod that is not in the new list is still known")
	}
}

func TestLedgerAsksAgainBeforeItRefuses(t *testing.T) {
	l := newLedger()
	labelled := node("n", "2")
	labelled.Labels = map[string]string{"disk": "ssd"}
	l.refetch = func(string) *v1.Node { return labelled }
	l.SetNode(node("n", "2"))
	p := pod("a", "n", "1")
	p.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	l.SetPod(p)
	wantState(t, l, "a", admitted)
}

// A critical pod is admitted on a full node; the pod it pushes out ends.
func TestLedgerEvictsForCritical(t *testing.T) {
	l := newLedger()
	var refusals []string
	l.rejected = func(p *v1.Pod, v admission.Verdict) { refusals = append(refusals, p.Name+" "+v.Reason) }
	l.SetNode(node("n", "3"))
	for _, uid := range []string{"a", "b"} {
		p := inPhase(pod(uid, "n", "1"), v1.PodRunning)
		p.Status.QOSClass = v1.PodQOSBurstable
		l.SetPod(p)
	}
	important := pod("critical", "n", "2")
	priority := int32(2_000_000_000)
	important.Spec.Priority = &priority
	l.SetPod(important)
	wantState(t, l, "critical", admitted)
	// Of equals the last one goes, as in upstream.
	wantState(t, l, "a", admitted)
	wantState(t, l, "b", evicted)
	if want := []string{"b Preempting"}; !slices.Equal(refusals, want) {
		t.Errorf("refusals %v, want %v", refusals, want)
	}
	v, _ := l.look("b")
	if got := (Stages{}).next(v, now).status; got == nil || got.Phase != v1.PodFailed || got.Reason != "Preempting" {
		t.Errorf("status of the victim: %+v", got)
	}
	// The eviction is final, though events of the running pod still come in.
	l.SetPod(v.pod)
	wantState(t, l, "b", evicted)
}

// resized is a running pod with the given cores that now asks for others.
func resized(uid, has, wants string) *v1.Pod {
	p := inPhase(pod(uid, "n", wants), v1.PodRunning)
	p.Status.ContainerStatuses = []v1.ContainerStatus{{
		Name: "c", AllocatedResources: cores(has), Resources: &v1.ResourceRequirements{Requests: cores(has)},
	}}
	return p
}

// A pod that grows holds its previous amount until the node has capacity for the new one; then
// the resize is granted, and the status says so. Mutant: a ledger that does not look again when
// a pod ends.
func TestLedgerResizeWaitsForCapacity(t *testing.T) {
	l := newLedger()
	var notified []types.UID
	l.changed = func(uid types.UID) { notified = append(notified, uid) }
	l.SetNode(node("n", "4"))
	l.SetPod(resized("grows", "1", "1"))
	l.SetPod(resized("other", "2", "2"))
	l.SetPod(resized("grows", "1", "3"))
	v, _ := l.look("grows")
	if v.resize.state != deferred {
		t.Fatalf("resize is %+v, want deferred", v.resize)
	}
	status := Stages{}.next(v, now).status
	if status == nil || status.Conditions[0].Type != v1.PodResizePending || status.Conditions[0].Reason != "Deferred" || status.Conditions[0].Message == "" {
		t.Fatalf("status does not say that the resize waits: %+v", status)
	}
	written := v.pod.DeepCopy()
	written.Status = *status
	l.SetPod(written)
	v, _ = l.look("grows")
	if step := (Stages{}).next(v, now); step.status != nil {
		t.Errorf("the same condition is written again: %+v", step.status)
	}
	// One core is free, and stays so while the resize waits.
	l.SetPod(pod("small", "n", "1"))
	wantState(t, l, "small", admitted)

	l.DropPod("small")
	notified = nil
	l.DropPod("other")
	if !slices.Contains(notified, "grows") {
		t.Error("the pod is not checked again after capacity was freed")
	}
	v, _ = l.look("grows")
	status = Stages{}.next(v, now).status
	if v.resize.state != granted || status == nil || status.ContainerStatuses[0].AllocatedResources.Cpu().String() != "3" || len(status.Conditions) != 0 {
		t.Fatalf("resize is %+v, status %+v; want it granted with 3 cores", v.resize, status)
	}
	// What is granted is held before the status is written.
	l.SetPod(pod("late", "n", "2"))
	wantState(t, l, "late", refused)
	written = v.pod.DeepCopy()
	written.Status = *status
	l.SetPod(written)
	if v, _ = l.look("grows"); v.resize.state != noResize {
		t.Errorf("resize is %+v after it was done", v.resize)
	}
}

func TestLedgerWithoutAdmission(t *testing.T) {
	l := newLedger()
	l.enforce = false
	l.SetNode(node("n", "1"))
	l.SetPod(pod("a", "n", "9"))
	wantState(t, l, "a", admitted)
}

// Whatever happens in whatever order, the admitted pods of a node never hold
// more than it has, and the ledger's sums are those of its admitted pods.
func TestLedgerNeverOversells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLedger()
		// known: uid -> last object sent.
		known := map[string]*v1.Pod{}
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := fmt.Sprintf("n%d", rapid.IntRange(0, 2).Draw(t, "node"))
			uids := make([]string, 0, len(known))
			for uid := range known {
				uids = append(uids, uid)
			}
			slices.Sort(uids)
			switch op := rapid.IntRange(0, 5).Draw(t, "op"); {
			case op == 0:
				l.SetNode(node(name, "4"))
			case op == 1:
				l.DropNode(name)
			case op >= 4 || len(uids) == 0:
				uid := fmt.Sprintf("p%d", i)
				known[uid] = pod(uid, name, fmt.Sprintf("%dm", rapid.IntRange(0, 2500).Draw(t, "cpu")))
				l.SetPod(known[uid])
			case op == 2:
				uid := rapid.SampledFrom(uids).Draw(t, "gone")
				l.DropPod(types.UID(uid))
				delete(known, uid)
			case op == 3:
				uid := rapid.SampledFrom(uids).Draw(t, "ended")
				known[uid] = inPhase(known[uid], v1.PodSucceeded)
				l.SetPod(known[uid])
			}
			for host, h := range l.hosts {
				sum, count := int64(0), 0
				for uid := range h.pods {
					if e := l.pods[uid]; e.state == admitted {
						sum += e.pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
						count++
					}
				}
				if sum > 4000 {
					t.Fatalf("%s holds %dm of 4000m", host, sum)
				}
				if h.usage.Pods() != count {
					t.Fatalf("%s: usage counts %d pods, %d are admitted", host, h.usage.Pods(), count)
				}
			}
		}
	})
}
