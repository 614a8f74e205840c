// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

// baseNode is a node without a template: 4 cores, 32Gi and 110 pods (scheduler_perf, makeBaseNode).
func baseNode() *corev1.Node {
	offers := corev1.ResourceList{
		corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("32Gi"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "node-"},
		Status: corev1.NodeStatus{
			Capacity: offers, Allocatable: offers.DeepCopy(), Phase: corev1.NodeRunning,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// createNodes creates nodes with the changes of the strategy, in one call each.
func (r *run) createNodes(ctx context.Context, op *workload.CreateNodes) error {
	make := func(int, int) (*corev1.Node, error) { return baseNode(), nil }
	if op.Template != nil {
		var err error
		if make, err = makerOf[corev1.Node](op.Template); err != nil {
			return err
		}
	}
	offers, err := parseOffers(op.Allocatable)
	if err != nil {
		return err
	}
	return r.each(ctx, op.Count, func(ctx context.Context, i int) error {
		node, err := make(i, op.Count)
		if err != nil {
			return err
		}
		name(node, r.index, i)
		if node.Labels == nil {
			node.Labels = map[string]string{}
		}
		node.Labels[corev1.LabelHostname] = node.Name
		if op.Label != nil {
			node.Labels[op.Label.Key] = op.Label.Values[i%len(op.Label.Values)]
		}
		if op.UniqueLabel != nil {
			node.Labels[op.UniqueLabel.Key] = node.Name
		}
		if len(offers) > 0 && node.Status.Allocatable == nil {
			// The API server does the same for a node without allocatable resources; this node now has some.
			node.Status.Allocatable = node.Status.Capacity.DeepCopy()
			if node.Status.Allocatable == nil {
				node.Status.Allocatable = corev1.ResourceList{}
			}
		}
		maps.Copy(node.Status.Allocatable, offers)
		if len(op.Features) > 0 {
			node.Status.DeclaredFeatures = op.Features
		}
		created, err := r.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create node %s: %w", node.Name, err)
		}
		if len(created.Spec.Taints) > len(node.Spec.Taints) {
			return fmt.Errorf("create node %s: the API server gives it taints %v; was it started with ClusterArgs?", node.Name, created.Spec.Taints)
		}
		if op.Allocatable == nil || len(op.Allocatable.CSIAllocatable)+len(op.Allocatable.Migrated) == 0 {
			return nil
		}
		return r.createCSINode(ctx, csiNode(node.Name, op.Allocatable))
	})
}

// parseOffers reads the quantities of a strategy; the strategy may be nil.
func parseOffers(a *workload.NodeAllocatable) (corev1.ResourceList, error) {
	if a == nil {
		return nil, nil
	}
	out := corev1.ResourceList{}
	for name, text := range a.Allocatable {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, fmt.Errorf("nodeAllocatable: %s: %s: %w", name, text, err)
		}
		out[corev1.ResourceName(name)] = quantity
	}
	return out, nil
}

// csiNode lists the drivers of a node with their volume limits.
func csiNode(node string, a *workload.NodeAllocatable) *storagev1.CSINode {
	out := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node}}
	migrated := map[string]bool{} // in-tree plugin -> a driver stands in for it
	for _, plugins := range a.Migrated {
		for plugin, is := range plugins {
			if is {
				migrated[plugin] = true
			}
		}
	}
	if len(migrated) > 0 {
		out.Annotations = map[string]string{corev1.MigratedPluginsAnnotationKey: strings.Join(slices.Sorted(maps.Keys(migrated)), ",")}
	}
	for _, driver := range slices.Sorted(maps.Keys(a.CSIAllocatable)) {
		count := a.CSIAllocatable[driver]
		out.Spec.Drivers = append(out.Spec.Drivers, storagev1.CSINodeDriver{
			Name: driver, NodeID: node, Allocatable: &storagev1.VolumeNodeResources{Count: &count},
		})
	}
	return out
}

// createCSINode creates a CSINode, or adds its drivers to one that another client created for the node.
func (r *run) createCSINode(ctx context.Context, want *storagev1.CSINode) error {
	nodes := r.Client.StorageV1().CSINodes()
	_, err := nodes.Create(ctx, want, metav1.CreateOptions{})
	for apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		var have *storagev1.CSINode
		if have, err = nodes.Get(ctx, want.Name, metav1.GetOptions{}); err != nil {
			break
		}
		have.Annotations, have.Spec.Drivers = want.Annotations, want.Spec.Drivers
		_, err = nodes.Update(ctx, have, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("create CSINode %s: %w", want.Name, err)
	}
	return nil
}
