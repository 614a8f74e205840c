// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// reads runs f while the scheduling loop waits for a plugin, with the Handle of that plugin.
func (w *world) reads(f func(h fwk.Handle)) {
	pl := w.profile.plugins[0].filter.(*scripted)
	ran := false
	pl.filter = func(fwk.CycleState, *v1.Pod, fwk.NodeInfo) *fwk.Status {
		if !ran {
			ran = true
			f(&handle{w.profile})
		}
		return nil
	}
	w.place(plugintest.Pod("reader"))
}

// named returns the metadata of an object in a version.
func meta(namespace, name, version string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name), ResourceVersion: version}
}

// TestSharedCSIManager: plugins read the CSINodes of the engine, but only while it waits for them.
func TestSharedCSIManager(t *testing.T) {
	w := newWorld(t, nil, filterPoints, &scripted{name: "A"}).nodes("a")
	w.With(&storagev1.CSINode{ObjectMeta: meta("", "b", "1")}, &storagev1.CSINode{ObjectMeta: meta("", "a", "1")})
	var nodes fwk.CSINodeLister
	w.reads(func(h fwk.Handle) {
		nodes = h.SharedCSIManager().CSINodes()
		list, err := nodes.List()
		if err != nil || len(list) != 2 || list[0].Name != "a" {
			t.Errorf("lists %v: %v", list, err)
		}
		if one, err := nodes.Get("b"); err != nil || one.Name != "b" {
			t.Errorf("gets %v: %v", one, err)
		}
		if _, err := nodes.Get("c"); !apierrors.IsNotFound(err) {
			t.Errorf("one that does not exist: %v", err)
		}
	})
	if _, err := nodes.List(); !errors.Is(err, ErrNotInCall) {
		t.Errorf("between decisions: %v", err)
	}
}

// claimWith returns a claim that has a device, or none if device is empty.
func claimWith(name, version, device string) *resourceapi.ResourceClaim {
	c := &resourceapi.ResourceClaim{ObjectMeta: meta("ns", name, version)}
	if device != "" {
		c.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
			Results: []resourceapi.DeviceRequestAllocationResult{{Driver: "d", Pool: "p", Device: device}}}}
	}
	return c
}

// TestSharedDRAManager: plugins read devices and claims, with what they have noted about claims since.
func TestSharedDRAManager(t *testing.T) {
	w := newWorld(t, nil, filterPoints, &scripted{name: "A"}).nodes("a")
	admin := claimWith("admin", "1", "watched")
	admin.Status.Allocation.Devices.Results[0].AdminAccess = new(true)
	w.With(claimWith("taken", "5", "one"), claimWith("free", "5", ""), admin,
		&resourceapi.DeviceClass{ObjectMeta: meta("", "gpu", "1"),
			Spec: resourceapi.DeviceClassSpec{ExtendedResourceName: new("example.com/gpu")}},
		&resourceapi.ResourceSlice{ObjectMeta: meta("", "s", "1"), Spec: resourceapi.ResourceSliceSpec{Driver: "d"}})
	uid := types.UID("uid-free")
	w.reads(func(h fwk.Handle) {
		m := h.SharedDRAManager()
		claims := m.ResourceClaims()
		expect := func(when string, devices ...string) {
			t.Helper()
			want := sets.New[structured.DeviceID]()
			for _, d := range devices {
				want.Insert(structured.MakeDeviceID("d", "p", d))
			}
			if got, err := claims.ListAllAllocatedDevices(); err != nil || !got.Equal(want) {
				t.Errorf("%s: allocated are %v, want %v: %v", when, got, want, err)
			}
		}
		expect("at first", "one")
		for range 2 {
			if err := claims.SignalClaimPendingAllocation(uid, claimWith("free", "5", "two")); err != nil {
				t.Fatal(err)
			}
		}
		if claims.GetPendingAllocation(uid) == nil {
			t.Error("no allocation is pending")
		}
		expect("with a pending allocation", "one", "two")
		if claims.MaybeRemoveClaimPendingAllocation(uid, false) {
			t.Error("removed while another pod uses it")
		}
		expect("with one user less", "one", "two")
		if !claims.MaybeRemoveClaimPendingAllocation(uid, false) || claims.MaybeRemoveClaimPendingAllocation(uid, true) {
			t.Error("not removed with its last user, or twice")
		}
		expect("with none", "one")
		if err := claims.SignalClaimPendingAllocation("uid-taken", claimWith("taken", "5", "three")); err != nil ||
			claims.GetPendingAllocation("uid-taken") != nil {
			t.Errorf("an allocated claim has a pending allocation: %v", err)
		}
		if err := claims.SignalClaimPendingAllocation(uid, claimWith("free", "5", "")); err == nil {
			t.Error("a claim without an allocation is accepted")
		}
		if err := claims.AssumeClaimAfterAPICall(claimWith("free", "6", "two")); err != nil {
			t.Fatal(err)
		}
		expect("after the API call", "one", "two")
		if c, err := claims.Get("ns", "free"); err != nil || c.ResourceVersion != "6" {
			t.Errorf("gets %v: %v", c, err)
		}
		claims.AssumedClaimRestore("ns", "free")
		expect("restored", "one")
		if err := claims.AssumeClaimAfterAPICall(claimWith("free", "6", "two")); err != nil {
			t.Fatal(err)
		}
		if _, err := claims.Get("ns", "none"); !apierrors.IsNotFound(err) {
			t.Errorf("a claim that does not exist: %v", err)
		}
		if c, err := m.DeviceClasses().Get("gpu"); err != nil || c.Name != "gpu" {
			t.Errorf("class %v: %v", c, err)
		}
		if c := m.DeviceClassResolver().GetDeviceClass("example.com/gpu"); c == nil || c.Name != "gpu" {
			t.Errorf("the resource is backed by %v", c)
		}
		if list, err := m.ResourceSlices().ListWithDeviceTaintRules(); err != nil || len(list) != 1 {
			t.Errorf("slices %v: %v", list, err)
		}
	})
	w.With(claimWith("free", "7", "")) // the engine observes a newer version
	w.reads(func(h fwk.Handle) {
		if c, err := h.SharedDRAManager().ResourceClaims().Get("ns", "free"); err != nil || c.ResourceVersion != "7" {
			t.Errorf("after a newer version: %v: %v", c, err)
		}
	})
}

// TestPodGroupManager: plugins read native pod groups, and which of their pods wait, are assumed and are bound.
func TestPodGroupManager(t *testing.T) {
	w := newWorld(t, nil, filterPoints, &scripted{name: "A"}).nodes("a")
	key := gangKey("ns", "g")
	object := key.Object()
	priority := int32(7)
	w.With(&cluster.Gang{ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Name}, Key: key,
		MinCount: 3, Priority: &priority, NeverPreempts: true, EvictWhole: true,
		Topology:  []cluster.GangTopology{{Key: "rack", Required: true}},
		Condition: cluster.GangCondition{Reason: "Unschedulable", Message: "no capacity"}})
	member := func(name string, of cluster.GangKey) *cluster.Pod {
		p := *w.Intake.PendingPod(plugintest.Pod(name))
		p.Gang = &cluster.GangMark{Key: of}
		return &p
	}
	waiting, other := member("waits", key), member("other", gangKey("ns", "h"))
	bound, assumed := member("bound", key), member("assumed", key)
	bound.NodeName = "a"
	w.Store.SetPod(bound)
	row, _ := w.Store.Snapshot().Find("a")
	w.Store.Begin()
	trial := w.Store.Trial()
	trial.Assume(assumed, row)
	trial.Commit()
	w.Store.Commit()
	w.profile.host.ReadPending(func() iter.Seq[*cluster.Pod] {
		return slices.Values([]*cluster.Pod{assumed, waiting, other})
	})
	groupName := "g"
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "waits"},
		Spec: v1.PodSpec{SchedulingGroup: &v1.PodSchedulingGroup{PodGroupName: &groupName}}}
	state := func(m fwk.PodGroupStateLister) {
		t.Helper()
		st, err := m.Get("ns", "g")
		if err != nil {
			t.Fatal(err)
		}
		if !st.AllPods().Equal(sets.New[types.UID]("uid-waits", "uid-bound", "uid-assumed")) || st.AllPodsCount() != 3 ||
			len(st.UnscheduledPods()) != 1 || st.UnscheduledPods()["waits"] == nil ||
			!st.AssumedPods().Equal(sets.New[types.UID]("uid-assumed")) ||
			!st.AssignedPods().Equal(sets.New[types.UID]("uid-bound")) || st.ScheduledPodsCount() != 2 {
			t.Errorf("state %+v", st)
		}
		for _, p := range st.ScheduledPods() {
			if p.Spec.NodeName != "a" {
				t.Errorf("%s is on node %q", p.Name, p.Spec.NodeName)
			}
		}
		if _, err := m.Get("ns", "none"); err == nil || !strings.Contains(err.Error(), "ns/none") {
			t.Errorf("a group that does not exist: %v", err)
		}
	}
	var kept fwk.PodGroupManager
	w.reads(func(h fwk.Handle) {
		m := h.PodGroupManager()
		g, err := m.PodGroups().Get("ns", "g")
		if err != nil {
			t.Fatal(err)
		}
		if g.Name != "g" || g.Spec.SchedulingPolicy.Gang.MinCount != 3 || *g.Spec.Priority != 7 ||
			*g.Spec.PreemptionPolicy != schedulingv1beta1.PreemptNever || g.Spec.DisruptionMode.All == nil ||
			g.Spec.SchedulingConstraints.Topology[0].Key != "rack" || g.Status.Conditions[0].Reason != "Unschedulable" {
			t.Errorf("group %+v", g)
		}
		state(m.PodGroupStates())
		state(h.SnapshotSharedLister().PodGroupStates())
		if root, found, err := m.GetRootKeyForGroup(fwk.PodGroupKey("ns", "g")); err != nil || !found || root.Name != "g" {
			t.Errorf("root %v, %v: %v", root, found, err)
		}
		if _, found, _ := m.GetRootKeyForGroup(fwk.PodGroupKey("ns", "none")); found {
			t.Error("a group that does not exist has a root")
		}
		if kept, err = m.BuildHierarchySnapshotFromPod(pod); err != nil {
			t.Fatal(err)
		}
		if _, err := m.CompositePodGroups().Get("ns", "g"); err == nil {
			t.Error("a composite pod group is found")
		}
	})
	w.Store.DeletePod("uid-bound")
	state(kept.PodGroupStates()) // what was built does not change, and can be read at any time
	if g, err := kept.PodGroups().Get("ns", "g"); err != nil || g.Name != "g" {
		t.Errorf("kept group %v: %v", g, err)
	}
}
