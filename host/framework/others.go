// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"maps"
	"slices"
	"strings"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// nativePodGroup is upstream's name of native pod groups in events. The engine has only a part of these objects.
const nativePodGroup = plugin.Resource(fwk.PodGroup)

// isOther reports whether only an informer of its own can watch a resource: that of native pod groups, or one that is
// named PLURAL.VERSION.GROUP, where the group may have dots.
func isOther(r plugin.Resource) bool {
	return r == nativePodGroup || strings.Count(string(r), ".") >= 2 && !strings.Contains(string(r), "/")
}

// apiResource returns what the API server calls such a resource.
func apiResource(r plugin.Resource) schema.GroupVersionResource {
	if r == nativePodGroup {
		return schedulingv1beta1.SchemeGroupVersion.WithResource("podgroups")
	}
	gvr, _ := schema.ParseResourceArg(string(r))
	return *gvr
}

// Others returns the resources besides those of the scheduler for whose events plugins have registered, sorted.
func (h *Host) Others() []string {
	var names []string
	for _, r := range slices.Sorted(maps.Keys(h.others)) {
		names = append(names, string(r))
	}
	return names
}

// WatchOthers watches these resources until the context ends, and gives their changes to the engine. It does not wait
// for them: a resource that the API server does not have yet is watched once it is there.
func (h *Host) WatchOthers(ctx context.Context, client dynamic.Interface) error {
	if len(h.others) == 0 || h.env.Post == nil {
		return nil
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	for _, name := range h.Others() {
		resource := plugin.Resource(name)
		handler := h.otherHandler(name, h.others[resource])
		if _, err := factory.ForResource(apiResource(resource)).Informer().AddEventHandler(handler); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	return nil
}

// otherHandler posts the changes of a resource for which plugins have registered.
func (h *Host) otherHandler(resource string, of plugin.Action) (handler cache.ResourceEventHandlerFuncs) {
	post := func(change message.ForeignChange, was, is any) {
		h.env.Post(message.ForeignObject{Resource: resource, Change: change, Old: object(was), New: object(is)})
	}
	if of&plugin.Add != 0 {
		handler.AddFunc = func(is any) { post(message.ForeignAdded, nil, is) }
	}
	if of&plugin.Update != 0 {
		handler.UpdateFunc = func(was, is any) { post(message.ForeignUpdated, was, is) }
	}
	if of&plugin.Delete != 0 {
		handler.DeleteFunc = func(was any) { post(message.ForeignDeleted, was, nil) }
	}
	return handler
}

// object returns an object of an informer, nil for none: the last known version of one whose deletion was missed.
func object(obj any) cluster.Object {
	if missed, is := obj.(cache.DeletedFinalStateUnknown); is {
		obj = missed.Obj
	}
	if u, is := obj.(*unstructured.Unstructured); is && u.GroupVersionKind() == nativePodGroupKind {
		group := &schedulingv1beta1.PodGroup{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, group) == nil {
			return group
		}
	}
	o, is := obj.(metav1.Object)
	if !is {
		return nil
	}
	return o
}

// nativePodGroupKind is the kind of native pod groups; plugins receive them in upstream's type.
var nativePodGroupKind = schedulingv1beta1.SchemeGroupVersion.WithKind("PodGroup")
