// SPDX-License-Identifier: Apache-2.0

package gangapi

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
)

// API is an API whose objects declare gangs.
type API struct {
	Source   cluster.GangSource
	Resource schema.GroupResource
	// Versions are the versions that can be read, in order of preference.
	Versions []string
	Kind     string
	// Convert reads an object in any of Versions.
	Convert func(*unstructured.Unstructured) *cluster.Gang
	// Status returns the changes that the status of an object needs, nil if it needs none. It is nil for the native
	// API, whose conditions are merged by the API server.
	Status func(*unstructured.Unstructured, engine.GangStatus, metav1.Time) map[string]any
}

// APIs become events after all other kinds, in this order.
var APIs = []API{
	{cluster.GangOfGroup, podGroups("scheduling.k8s.io"), []string{v1beta1, v1alpha3, v1alpha2}, "PodGroup",
		PodGroup, nil},
	{cluster.GangOfSigs, podGroups("scheduling.x-k8s.io"), []string{"v1alpha1"}, "PodGroup", sigsGang, sigsStatus},
	{cluster.GangOfVolcano, podGroups("scheduling.volcano.sh"), []string{"v1beta1"}, "PodGroup",
		volcanoGang, volcanoStatus},
}

func podGroups(group string) schema.GroupResource {
	return schema.GroupResource{Group: group, Resource: "podgroups"}
}

// WatchName is what the watch of an API is called in logs and metrics.
func (a API) WatchName() string { return a.Resource.String() }

// Consequence says what is lost while objects of the API cannot be read.
func (a API) Consequence(onlyIfRead bool) string {
	if onlyIfRead {
		return "pods of pod groups are scheduled one by one"
	}
	return "pods of the gangs that they declare wait"
}
