// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/sampling"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// change is one event on both sides.
type change struct {
	event    fwk.ClusterEvent
	old, new any
	ours     plugin.Change
}

// change lets something happen.
func (w *world) change(number int, pod *v1.Pod) change {
	m := w.m
	if m.chance(20) {
		after, _ := m.pod(one(m, "pending", "other"), number)
		after.Spec = pod.Spec
		return change{fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.UpdatePodGeneratedResourceClaim}, pod, after,
			plugin.Change{OldPod: w.in.Pod(pod), NewPod: w.in.Pod(after)}}
	}
	name := one(m, "c0-0", "c0-1", "taken0", "new")
	before := w.api.claim(ns, name)
	after := m.claim(name)
	switch {
	case before == nil:
		if m.chance(50) {
			m.allocate(after)
		}
	case m.chance(30):
		after = before.DeepCopy()
		after.Labels = map[string]string{"new": "label"}
	case m.chance(50) && before.Status.Allocation != nil:
		after.Status = resourceapi.ResourceClaimStatus{}
	case before.Status.Allocation == nil:
		m.allocate(after)
	default:
		after = before.DeepCopy()
		after.Status.ReservedFor = append(after.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: "x", UID: "x"})
	}
	w.api.put(after)
	c := change{event: fwk.ClusterEvent{Resource: fwk.ResourceClaim, ActionType: fwk.Add}, new: after, ours: plugin.Change{NewObject: after}}
	if before != nil {
		c.event.ActionType, c.old, c.ours.OldObject = fwk.Update, before, before
	}
	return c
}

// The hints about random changes are upstream's, and so is what is registered.
func TestHintsLikeUpstream(t *testing.T) {
	oracle.New().Close()
	seed, cases := sampling.SeedOr(t, defaultSeed), sampling.Cases(t, defaultCases)
	seen := map[string]int{}
	for i := range cases {
		w := newWorld(t, &maker{Rand: rand.New(rand.NewPCG(seed+1, uint64(i))), taken: map[string]bool{}})
		pod, claims := w.m.pod("pending", 0)
		for _, c := range claims {
			if w.m.chance(80) {
				w.api.put(c)
			}
		}
		ours := w.in.Pod(pod)
		registered, err := w.up.EventsToRegister(context.Background())
		wakes := w.ours.Wakes()
		if err != nil || len(wakes) != len(registered) {
			t.Fatalf("registered for %d events, upstream for %d: %v", len(wakes), len(registered), err)
		}
		for k, r := range registered {
			if e := wakes[k].Event; string(e.Resource) != string(r.Event.Resource) || uint64(e.Action) != uint64(r.Event.ActionType) || (wakes[k].Hint == nil) != (r.QueueingHintFn == nil) {
				t.Fatalf("registered for %v, upstream for %v", e, r.Event)
			}
		}
		for range 4 {
			c := w.change(0, pod)
			c.ours.Event = plugin.Event{Resource: plugin.Resource(c.event.Resource), Action: plugin.Action(c.event.ActionType)}
			c.ours.State = w.store.Snapshot()
			up, kumiki := "unheard", "unheard"
			for k, r := range registered {
				if framework.MatchClusterEvents(r.Event, c.event) {
					hint, err := r.QueueingHintFn(klog.Background(), pod, c.old, c.new)
					up = fmt.Sprint(hint == fwk.Queue || err != nil)
				}
				if wakes[k].Event.Matches(c.ours.Event) {
					kumiki = fmt.Sprint(wakes[k].Hint(ours, c.ours) == plugin.QueueHint)
				}
			}
			if up != kumiki {
				t.Fatalf("case %d of seed %d, %s: upstream wakes: %s, kumiki: %s\npod %+v\nold %+v\nnew %+v", i, seed+1, c.event.Label(), up, kumiki, pod.Spec.ResourceClaims, c.old, c.new)
			}
			seen[string(c.event.Resource)+" "+up]++
		}
	}
	t.Logf("%d cases of seed %d: %v", cases, seed+1, seen)
}
