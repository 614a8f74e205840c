// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Volume is a volume with parts that no scheduler reads.
func Volume() *v1.PersistentVolume {
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "uv", ResourceVersion: "5",
			Annotations: map[string]string{"mine": "1"}},
		Spec: v1.PersistentVolumeSpec{ClaimRef: &v1.ObjectReference{Name: "c", Namespace: "ns", FieldPath: "x"},
			MountOptions: []string{"keep"}}}
}

// DeviceClaim is a claim without devices, in a version.
func DeviceClaim(rv string) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d", UID: "ud",
		ResourceVersion: rv, Finalizers: []string{"other"}}}
}

// AllocatedClaim is the same claim with devices, reserved for consumers.
func AllocatedClaim(rv string, consumers ...types.UID) *resourceapi.ResourceClaim {
	c := DeviceClaim(rv)
	c.Finalizers = append(c.Finalizers, resourceapi.Finalizer)
	c.Status.Allocation = Allocation()
	c.Status.Devices = []resourceapi.AllocatedDeviceStatus{{Driver: "dr"}}
	for _, uid := range consumers {
		c.Status.ReservedFor = append(c.Status.ReservedFor, Consumer(uid))
	}
	return c
}

// Allocation is what an allocated claim has.
func Allocation() *resourceapi.AllocationResult {
	return &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{Request: "r", Driver: "dr", Pool: "p", Device: "d1"}}}}
}

// Consumer is a pod for which a claim is reserved.
func Consumer(uid types.UID) resourceapi.ResourceClaimConsumerReference {
	return resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: "p", UID: uid}
}

// VolumeClaim is a claim for a volume, in a version.
func VolumeClaim(name, uid, rv string) *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid),
		ResourceVersion: rv}}
}

// PodGroup is a native pod group of a version of the API in YAML, all but its name.
func PodGroup(t testing.TB, version, name, text string) *unstructured.Unstructured {
	t.Helper()
	o := fromYAML(t, text)
	o.SetAPIVersion("scheduling.k8s.io/" + version)
	o.SetKind("PodGroup")
	o.SetNamespace("ns")
	o.SetName(name)
	o.SetUID(types.UID("uid-of-" + name))
	o.SetResourceVersion("1")
	o.SetGeneration(4)
	return o
}

// PodGroupYAML is a native pod group in YAML with a scheduling policy.
func PodGroupYAML(policy string) string { return "{spec: {schedulingPolicy: " + policy + "}}" }

// GangObject is an object of a resource definition in YAML.
func GangObject(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	o := fromYAML(t, text)
	o.SetNamespace("ns")
	o.SetName("g")
	o.SetUID("uid-of-g")
	return o
}

func fromYAML(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	// Whole numbers become int64, as in an answer of an API server.
	if err := utiljson.Unmarshal(raw, &o.Object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return o
}
