// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

// groupKind is the kind to which the scheduling group of a pod refers.
var groupKind = schema.GroupKind{Group: "scheduling.k8s.io", Kind: "PodGroup"}

// createGroups creates the pod groups of an operation, in the version of their template if the API server has it, or
// else in the version that it prefers: scheduler_perf does not regard the version of the template either.
func (r *run) createGroups(ctx context.Context, op *workload.CreatePodGroups) error {
	make, err := ofTemplate(&op.Template)
	if err != nil {
		return err
	}
	if err := r.ensureNamespace(ctx, op.Namespace); err != nil {
		return err
	}
	return r.each(ctx, op.Count, func(ctx context.Context, i int) error {
		group, err := make(i, op.Count)
		if err != nil {
			return err
		}
		name(group, r.index, i)
		if err := r.setServedVersion(group); err != nil {
			return err
		}
		return r.createPatiently(ctx, group, op.Namespace)
	})
}

// setServedVersion gives a pod group a version that the API server has. An object of another kind is left as it is, and
// so is a group if no version is served: its create fails, and says so.
func (r *run) setServedVersion(group *unstructured.Unstructured) error {
	gvk := group.GroupVersionKind()
	if gvk.GroupKind() != groupKind {
		return fmt.Errorf("%s: createPodGroups creates no %s", objectName(group), gvk.GroupKind())
	}
	mapping, err := r.mapper.RESTMapping(groupKind, gvk.Version)
	if err != nil {
		if mapping, err = r.mapper.RESTMapping(groupKind); err != nil {
			return nil
		}
	}
	group.SetGroupVersionKind(mapping.GroupVersionKind)
	return nil
}

// minCount returns how many pods of a group must have nodes for it to be scheduled: the minimum of its gang, or one.
func minCount(group *unstructured.Unstructured) int {
	n, is, err := unstructured.NestedInt64(group.Object, "spec", "schedulingPolicy", "gang", "minCount")
	if err != nil || !is {
		return 1
	}
	return int(n)
}

// waitForGroups waits until each pod group of the namespaces has as many pods with nodes as it needs. It does not
// read the status of a group, because only binds are common to all schedulers.
func (r *run) waitForGroups(ctx context.Context, op *workload.WaitForPodGroups) error {
	for _, namespace := range op.Namespaces {
		if !r.namespaces[namespace] {
			return fmt.Errorf("no operation before this one has made namespace %s", namespace)
		}
	}
	mapping, err := r.mapper.RESTMapping(groupKind)
	if err != nil {
		return fmt.Errorf("find the resource of PodGroups: %w", err)
	}
	list, err := r.Dynamic.Resource(mapping.Resource).Namespace(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list PodGroups: %w", err)
	}
	need := map[string]int{} // group, namespace/name -> pods that must have nodes
	for i := range list.Items {
		group := &list.Items[i]
		if len(op.Namespaces) == 0 || slices.Contains(op.Namespaces, group.GetNamespace()) {
			need[group.GetNamespace()+"/"+group.GetName()] = minCount(group)
		}
	}
	return r.await(ctx, r.Watch.awaitGroups(need))
}
