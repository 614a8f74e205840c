// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"slices"
	"testing"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/core/message"
)

// TestOthersAreWatched: objects of a resource that only plugins know are watched once, whatever number of plugins
// registers for it, and only for the changes for which they did.
func TestOthersAreWatched(t *testing.T) {
	const groups = "podgroups.v1alpha1.scheduling.x-k8s.io"
	events := make(chan message.ForeignObject, 10)
	var problems []Problem
	host := NewHost(Env{Post: func(ev message.Event) { events <- ev.(message.ForeignObject) },
		Report: func(p Problem) { problems = append(problems, p) }})
	registers := func(name, resource string, of fwk.ActionType) {
		pl := &scripted{name: name, events: func() ([]fwk.ClusterEventWithHint, error) {
			return []fwk.ClusterEventWithHint{{Event: fwk.ClusterEvent{Resource: fwk.EventResource(resource), ActionType: of}}}, nil
		}}
		if _, err := host.Profile(name).Add(Registration{Name: name,
			Factory: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return pl, nil }}, nil); err != nil {
			t.Fatal(err)
		}
	}
	registers("A", groups, fwk.Add)
	registers("B", groups, fwk.Delete)
	registers("C", "podgroups", fwk.Add)
	registers("D", string(fwk.CSINode), fwk.Add)
	if !slices.Equal(host.Others(), []string{groups}) || len(problems) != 1 || problems[0].Plugin != "C" {
		t.Fatalf("watches %v, problems %+v", host.Others(), problems)
	}
	next := func() (ev message.ForeignObject) {
		select {
		case ev = <-events:
		case <-time.After(10 * time.Second):
			t.Fatal("no event")
		}
		return ev
	}
	gvr := schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{gvr: "PodGroupList"})
	if err := host.WatchOthers(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	group := &unstructured.Unstructured{}
	group.SetGroupVersionKind(gvr.GroupVersion().WithKind("PodGroup"))
	group.SetName("g")
	group.SetNamespace("ns")
	in := client.Resource(gvr).Namespace("ns")
	if _, err := in.Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if ev := next(); ev.Resource != groups || ev.Change != message.ForeignAdded || ev.Old != nil || ev.New.GetName() != "g" {
		t.Errorf("after the object was created: %+v", ev)
	}
	group.SetLabels(map[string]string{"a": "b"})
	if _, err := in.Update(t.Context(), group, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := in.Delete(t.Context(), "g", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if ev := next(); ev.Change != message.ForeignDeleted || ev.New != nil || ev.Old.GetName() != "g" {
		t.Errorf("after an update, for which none registered, and the deletion: %+v", ev)
	}
	native := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"schedulingPolicy": map[string]any{
		"gang": map[string]any{"minCount": int64(3)}}}}}
	native.SetGroupVersionKind(nativePodGroupKind)
	if got, is := object(native).(*schedulingv1beta1.PodGroup); !is || got.Spec.SchedulingPolicy.Gang.MinCount != 3 {
		t.Errorf("a native pod group arrives as %T", object(native))
	}
	if got := apiResource(nativePodGroup).String(); !isOther(nativePodGroup) || got != "scheduling.k8s.io/v1beta1, Resource=podgroups" {
		t.Errorf("native pod groups are watched as %s", got)
	}
	missed := cache.DeletedFinalStateUnknown{Obj: group}
	if got := object(missed); got == nil || got.GetName() != "g" {
		t.Errorf("an object whose deletion was missed: %v", got)
	}
}
