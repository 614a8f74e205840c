// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/resources"
)

// A class of pods is judged anew when a device class begins to back what they ask for, though no row has changed.
func TestStaleFilterReevaluatesClass(t *testing.T) {
	fit, err := resources.NewNodeResourcesFit(resources.DefaultFitArgs())
	if err != nil {
		t.Fatal(err)
	}
	placer := place.New(place.Profile{Filters: []plugin.Filter{fit}}, noMeter{}, place.DefaultClassBytes)
	store, in := cluster.NewStore(), convert.NewIntake()
	set := func(f func()) {
		store.Begin()
		f()
		store.Commit()
	}
	set(func() {
		store.SetNode(in.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"},
			Status: v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourcePods: apiresource.MustParse("10")}}}))
	})
	p := in.Pod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}, Spec: v1.PodSpec{Containers: []v1.Container{{
		Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"example.com/gpu": apiresource.MustParse("1")}}}}}})
	fits := func() bool {
		return placer.Place(store.Snapshot(), p, promised{}, func(int) int { return 0 }).Node != cluster.NoNode
	}
	backs := "example.com/gpu"
	if fits() {
		t.Fatal("fits without a class")
	}
	set(func() {
		store.SetObject(&resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourceapi.DeviceClassSpec{ExtendedResourceName: &backs}})
	})
	if !fits() {
		t.Fatal("does not fit with one")
	}
	set(func() { store.DeleteObject(cluster.KindDeviceClass, cluster.ObjectKey{Name: "gpu"}) })
	if fits() {
		t.Fatal("fits when it is gone")
	}
}
