// SPDX-License-Identifier: Apache-2.0

package gangapi

import (
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
)

// API is an API whose objects declare gangs.
type API struct {
	Source   cluster.GangSource
	Resource schema.GroupVersionResource
	Kind     string
	// Convert reads an object of the API that was made known by a resource definition; nil for the native one, which
	// has a typed client.
	Convert func(*unstructured.Unstructured) *cluster.Gang
	// Status tells what must change in the status of such an object, nothing when it is as wished.
	Status func(*unstructured.Unstructured, engine.GangStatus, metav1.Time) map[string]any
}

// APIs become events after all other kinds, in this order.
var APIs = []API{
	{cluster.GangOfGroup, schedulingv1alpha2.SchemeGroupVersion.WithResource("podgroups"), "PodGroup", nil, nil},
	{cluster.GangOfSigs, schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1",
		Resource: "podgroups"}, "PodGroup", sigsGang, sigsStatus},
	{cluster.GangOfVolcano, schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1",
		Resource: "podgroups"}, "PodGroup", volcanoGang, volcanoStatus},
}

// WatchName is what the watch of an API is called in logs and metrics.
func (a API) WatchName() string { return a.Resource.Resource + "." + a.Resource.Group }

// Consequence says what is lost while objects of the API cannot be read.
func (a API) Consequence(onlyIfRead bool) string {
	if onlyIfRead {
		return "pods of pod groups are scheduled one by one"
	}
	return "pods of the gangs that they declare wait"
}
