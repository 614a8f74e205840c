// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// Objects reach upstream's plugins: without them these answers would be others.

func zoned(name, zone string) *v1.Node {
	n := node(name, "4", "8Gi")
	n.Labels[v1.LabelTopologyZone] = zone
	return n
}

func with(objects ...scenario.APIObject) *scenario.Scenario {
	s := &scenario.Scenario{Profile: scenario.Profile{Plugins: gen.AllPlugins()}, Nodes: []*v1.Node{zoned("a", "left"), zoned("b", "right")}}
	for _, o := range objects {
		o.SetResourceVersion("1")
		s.Objects = append(s.Objects, scenario.Object{APIObject: o})
	}
	return s
}

// A bound volume of the right zone leaves one node; a claim that is not there none.
func TestVolumesReachUpstream(t *testing.T) {
	class := "slow"
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data", UID: "c", Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
		Spec:   v1.PersistentVolumeClaimSpec{VolumeName: "pv", StorageClassName: &class, AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}},
		Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound}}
	pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv", Labels: map[string]string{v1.LabelTopologyZone: "right"}},
		Spec: v1.PersistentVolumeSpec{StorageClassName: class, Capacity: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}}}
	p := pod("new", "1", "1Gi")
	p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	got := decide(t, with(claim, pv), p)
	if !slices.Equal(got.Feasible, []int{1}) || got.Nodes[0].Plugin != "VolumeZone" {
		t.Errorf("outcome %+v", got)
	}
	if got := decide(t, with(pv), p); got.PreFilter == nil || got.Message != `0/2 nodes are available: persistentvolumeclaim "data" not found.` {
		t.Errorf("outcome %+v", got)
	}
}

// A namespace selector reads the labels of Namespace objects.
func TestNamespacesReachUpstream(t *testing.T) {
	other := pod("other", "1", "1Gi")
	other.Namespace, other.Labels, other.Spec.NodeName = "team", map[string]string{"app": "db"}, "b"
	p := pod("new", "1", "1Gi")
	p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
		TopologyKey: v1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"of": "us"}},
	}}}}
	for labels, want := range map[string][]int{"us": {1}, "them": nil} { // order: each on its own
		s := with(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: map[string]string{"of": labels}}})
		s.Bound = []*v1.Pod{other}
		if got := decide(t, s, p); !slices.Equal(got.Feasible, want) {
			t.Errorf("namespace of %s: feasible %v, want %v", labels, got.Feasible, want)
		}
	}
}

// One device on one node: a claim for it fits there only, and a missing claim holds
// the pod at its gate.
func TestDevicesReachUpstream(t *testing.T) {
	name, on := "gpu-claim", "a"
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "any"}}
	slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: resourceapi.ResourceSliceSpec{
		Driver: "gpu.example.com", NodeName: &on, Pool: resourceapi.ResourcePool{Name: "a", Generation: 1, ResourceSliceCount: 1}, Devices: []resourceapi.Device{{Name: "gpu-0"}}}}
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "c"}, Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
		Requests: []resourceapi.DeviceRequest{{Name: "r", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "any", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1}}}}}}
	p := pod("new", "1", "1Gi")
	p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &name}}
	if got := decide(t, with(class, slice, claim), p); !slices.Equal(got.Feasible, []int{0}) || got.Nodes[1].Plugin != "DynamicResources" {
		t.Errorf("outcome %+v", got)
	}
	if got := decide(t, with(class, slice), p); got.Gate == nil || got.Gate.Plugin != "DynamicResources" {
		t.Errorf("outcome %+v", got)
	}
}
