// SPDX-License-Identifier: Apache-2.0

package volumebinding

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/conformance/hints"
	"github.com/kumiki-scheduler/kumiki/conformance/release"
	"github.com/kumiki-scheduler/kumiki/conformance/sampling"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// What a run of the tests compares if the environment does not say otherwise.
const (
	defaultCases = 8000
	defaultSeed  = 20261121
)

// Verdicts are upstream's on every node, to the letter; so is what other pods see of a decision, before and after the
// API server shows something new, and after the decision is undone.
func TestDecisionsLikeUpstream(t *testing.T) {
	seen := decisionsLikeUpstream(t, sampling.Cases(t, defaultCases))
	for _, must := range []string{"fits", "didn't match PersistentVolume's node affinity", "didn't find available persistent volumes to bind",
		"did not have enough free storage", "unavailable due to one or more pvc(s) bound to non-existent pv(s)", "reserved", "nothing to reserve"} {
		if seen[must] < 200 {
			t.Errorf("%q happened %d times: the cases say too little", must, seen[must])
		}
	}
}

// The same for the release before, where no node is scored.
func TestDecisionsLikeUpstreamEmulated(t *testing.T) {
	release.Emulate(t, "--emulated-version=1.36")
	if seen := decisionsLikeUpstream(t, sampling.Cases(t, defaultCases)/5); seen["reserved"] < 40 {
		t.Errorf("the cases say too little: %v", seen)
	}
}

// decisionsLikeUpstream compares generated cases and counts what happens in them.
func decisionsLikeUpstream(t *testing.T, cases int) (seen map[string]int) {
	seed := sampling.SeedOr(t, defaultSeed)
	seen = map[string]int{}
	count := func(what string) { seen[what]++ }
	for i := range cases {
		w := newWorld(t, maker{rand.New(rand.NewPCG(seed, uint64(i)))}, nil)
		p := w.m.pod("pending")
		for _, c := range w.m.claimsOf(p) {
			w.set(c)
		}
		which := fmt.Sprintf("case %d of seed %d", i, seed)
		state, fits := w.sameWords(t, which, w.store.Snapshot(), p, count)
		if _, st := w.up.PreFilter(context.Background(), framework.NewCycleState(), p, nil); len(fits) == 0 || st.IsSkip() {
			continue
		}
		w.decide(t, p, which, one(w.m, fits...), state, count)
	}
	t.Logf("%d cases of seed %d:\n%s", cases, seed, tally(seen))
	return seen
}

// decide reserves a node on both sides and takes it back again.
func (w *world) decide(t *testing.T, p *v1.Pod, which, nodeName string, state fwk.CycleState, count func(string)) {
	ctx := context.Background()
	if st := w.up.Reserve(ctx, state, p, nodeName); !st.IsSuccess() {
		t.Fatalf("%s: upstream's Reserve: %v", which, st)
	}
	hold := w.reserve(t, p, nodeName)
	_, st := w.up.PreBindPreFlight(ctx, state, p, nodeName)
	if (hold == nil) != st.IsSkip() {
		t.Fatalf("%s: kumiki holds %v, upstream would bind: %v", which, hold, st)
	}
	if hold == nil {
		count("nothing to reserve")
		return
	}
	count("reserved")
	others := func(when string) {
		for _, name := range claimNames {
			q := &v1.Pod{ObjectMeta: w.m.meta(ns, "other")}
			q.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
			w.sameWords(t, fmt.Sprintf("%s, claim %s, %s", which, name, when), w.store.Snapshot(), q, func(said string) { count("other: " + said) })
		}
	}
	others("after the decision")
	for range 2 {
		w.news()
		others("after news")
	}
	w.up.Unreserve(ctx, state, p, nodeName)
	w.store.Begin()
	trial := w.store.Trial()
	hold.Release(trial, false)
	trial.Commit()
	w.store.Commit()
	others("after it was taken back")
}

func (w *world) reserve(t *testing.T, p *v1.Pod, nodeName string) plugin.Reservation {
	w.store.Begin()
	defer w.store.Commit()
	trial := w.store.Trial()
	defer trial.Commit()
	n, _ := trial.Snapshot().Find(nodeName)
	ours := w.in.PendingPod(p)
	trial.Assume(ours, n)
	got := w.ours.Reserve(trial, ours, n)
	if got.Reject != "" || got.Err != nil {
		t.Fatalf("on %s: %+v", nodeName, got)
	}
	return got.Hold
}

// news is a new version of something, or the same version again.
func (w *world) news() {
	name, pv := one(w.m, claimNames...), fmt.Sprint("pv", w.m.IntN(8))
	switch w.m.IntN(5) {
	case 0:
		obj, _ := w.h.objects.Get(scenario.ObjectRef{Kind: "PersistentVolumeClaim", Namespace: ns, Name: name})
		c := obj.(*v1.PersistentVolumeClaim).DeepCopy()
		if c.ResourceVersion = "20"; w.m.chance(50) {
			bind(c, pv)
		}
		w.set(c)
	case 1:
		v := w.m.volume(int(pv[2] - '0'))
		v.ResourceVersion = "20"
		w.set(v)
	case 2:
		w.remove(cluster.KindVolume, "", pv)
	case 3:
		if obj, ok := w.h.objects.Get(scenario.ObjectRef{Kind: "PersistentVolume", Name: pv}); ok {
			w.set(obj)
		}
	case 4:
		w.set(w.m.csiNode(one(w.m, nodeNames...)))
	}
}

// change is one event on both sides.
type change struct {
	event    fwk.ClusterEvent
	old, new any
	ours     plugin.Change
}

func (w *world) change() change {
	m := w.m
	object := func(r fwk.EventResource, before, after cluster.Object) change {
		switch action := one(m, fwk.Add, fwk.Update, fwk.Update, fwk.Update, fwk.Delete); action {
		case fwk.Add:
			return change{fwk.ClusterEvent{Resource: r, ActionType: action}, nil, after, plugin.Change{NewObject: after}}
		case fwk.Delete:
			return change{fwk.ClusterEvent{Resource: r, ActionType: action}, before, nil, plugin.Change{OldObject: before}}
		default:
			return change{fwk.ClusterEvent{Resource: r, ActionType: action}, before, after, plugin.Change{OldObject: before, NewObject: after}}
		}
	}
	driver := func() *storagev1.CSIDriver {
		d := m.driver()
		d.Name = one(m, driver, driver, "another.example.com")
		return d
	}
	switch m.IntN(7) {
	case 0:
		after := m.claim(one(m, append(claimNames, "pending-v0", "pending-v1")...))
		if m.chance(20) {
			after.Namespace = "far"
		}
		return object(fwk.PersistentVolumeClaim, m.claim(after.Name), after)
	case 1:
		return object(fwk.PersistentVolume, m.volume(1), m.volume(1))
	case 2:
		return object(fwk.StorageClass, m.class("zonal"), m.class(one(m, "zonal", "made")))
	case 3:
		return object(fwk.CSINode, m.csiNode("n0"), m.csiNode("n0"))
	case 4:
		before := driver()
		after := driver()
		after.Name = before.Name
		return object(fwk.CSIDriver, before, after)
	case 5:
		return object(fwk.CSIStorageCapacity, m.room(0), m.room(0))
	}
	before, after := m.node("n0"), m.node("n0")
	c := change{event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: one(m, fwk.Add, fwk.UpdateNodeLabel, fwk.UpdateNodeTaint, fwk.UpdateNodeAllocatable)}, new: after}
	if c.ours.NewNode = w.in.Node(after); c.event.ActionType != fwk.Add {
		c.old, c.ours.OldNode = before, w.in.Node(before)
	}
	return c
}

// The hints about random events are upstream's, and so is what is registered.
func TestHintsLikeUpstream(t *testing.T) {
	seed, cases := sampling.SeedOr(t, defaultSeed), sampling.Cases(t, defaultCases)
	seen := map[string]int{}
	w := newWorld(t, maker{rand.New(rand.NewPCG(seed+1, 0))}, nil)
	registered, err := w.up.EventsToRegister(context.Background())
	if err != nil || len(registered) != len(w.ours.Wakes()) {
		t.Fatalf("upstream registers for %d events, %v; kumiki for %d", len(registered), err, len(w.ours.Wakes()))
	}
	for i := range cases {
		w.m = maker{rand.New(rand.NewPCG(seed+1, uint64(i)))}
		pod := w.m.pod("pending")
		ours := w.in.PendingPod(pod)
		for range 10 {
			c := w.change()
			c.ours.Event = plugin.Event{Resource: plugin.Resource(c.event.Resource), Action: plugin.Action(c.event.ActionType)}
			up, kumiki := hints.Upstream(registered, c.event, pod, c.old, c.new), hints.Kumiki(w.ours.Wakes(), c.ours, ours)
			if up != kumiki {
				t.Fatalf("case %d of seed %d, about %s: upstream %s, kumiki %s\npod %+v\nold %+v\nnew %+v", i, seed+1, c.event.Label(), up, kumiki, pod.Spec.Volumes, c.old, c.new)
			}
			seen[string(c.event.Resource)+" "+string(up)]++
		}
	}
	t.Logf("%d cases of seed %d:\n%s", cases, seed+1, tally(seen))
}
