// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/conformance/gen"
)

// Known behaviour of upstream's queue, by hand, so that the driver itself is
// tested: a driver that never ticks would agree with anything.
func TestUpstreamDriver(t *testing.T) {
	w := gen.NewWorld(1, 1)
	node := w.Node(1)
	node.Spec = v1.NodeSpec{}
	pod := w.Pending("p", nil)
	pod.Spec = v1.PodSpec{SchedulerName: "default-scheduler", Containers: pod.Spec.Containers[:1]}
	pod.Spec.Containers[0].Resources.Requests = nil
	pod.Labels = nil
	pod.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "hold"}}
	open := pod.DeepCopy()
	open.Spec.SchedulingGates, open.ResourceVersion = nil, "2"
	uid := string(pod.UID)

	u := NewUpstream(Start)
	defer u.Close()
	at := func(d time.Duration) { u.Advance(Start.Add(d)) }
	is := func(want SubQueue) {
		t.Helper()
		if got := u.Places()[uid]; got.In != want {
			t.Fatalf("pod is in %s, want %s", got, want)
		}
	}
	u.PodSet(nil, pod)
	is(Gated)
	at(10 * time.Minute)
	is(Gated) // the five-minute flush leaves gated pods alone
	u.PodSet(pod, open)
	is(Active)
	if u.Pop() != uid || u.Pop() != "" {
		t.Fatal("the one active pod must pop, once")
	}
	is(InFlight)
	u.Fail(uid, open, Rejection{Plugins: []string{"NodeResourcesFit"}})
	is(Unschedulable)
	u.NodeSet(nil, node)
	is(Backoff) // the new node may fit, and the first second is not over
	at(10*time.Minute + 2*time.Second)
	is(Active)
	u.Pop()
	u.Fail(uid, open, Rejection{})
	is(ErrorBackoff)
	if u.Pop() != "" {
		t.Fatal("an error backoff must not be cut short")
	}
	at(10*time.Minute + 4*time.Second)
	is(Active)
	u.Pop()
	u.Fail(uid, open, Rejection{Plugins: []string{"NodeName"}})
	at(16 * time.Minute)
	is(Active) // moved by the flush after five minutes
	u.PodGone(open)
	if len(u.Places()) != 0 {
		t.Fatalf("a deleted pod stays: %v", u.Places())
	}
}

// The same history gives the same places: two upstream queues side by side.
func TestUpstreamAgreesWithItself(t *testing.T) {
	r := Run(func(start time.Time) Queue { return NewUpstream(start) }, Options{Seed: 3, Histories: 20, Steps: 200})
	if r.Failure != nil {
		t.Fatal(r.Difference)
	}
	for _, s := range []SubQueue{Active, Backoff, ErrorBackoff, Unschedulable, Gated, InFlight} {
		if r.Visits[s] == 0 {
			t.Errorf("no pod ever entered %s", s)
		}
	}
}
