// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
)

// oversold returns, sorted, the resources of which the pods of a node request more than the node has, from the API
// server's state at the end.
func oversold(nodes []corev1.Node, pods []corev1.Pod) []string {
	asked := map[string]corev1.ResourceList{} // node -> sum of requests
	count := map[string]int64{}               // node -> pods
	var found []string
	for i := range pods {
		p := &pods[i]
		if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		sum := asked[p.Spec.NodeName]
		if sum == nil {
			sum = corev1.ResourceList{}
			asked[p.Spec.NodeName] = sum
		}
		devices := byClaim(p)
		for name, q := range resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{}) {
			if devices[name] {
				continue
			}
			total := sum[name]
			total.Add(q)
			sum[name] = total
		}
		count[p.Spec.NodeName]++
	}
	for i := range nodes {
		n := &nodes[i]
		sum := asked[n.Name]
		if sum != nil {
			sum[corev1.ResourcePods] = *resource.NewQuantity(count[n.Name], resource.DecimalSI)
		}
		for name, q := range sum {
			if has := n.Status.Allocatable[name]; q.Cmp(has) > 0 {
				found = append(found, fmt.Sprintf("node %s: %s of %s asked for, %s there", n.Name, q.String(), name, has.String()))
			}
		}
		delete(asked, n.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		found = append(found, fmt.Sprintf("node %s: does not exist and has %d pods", name, count[name]))
	}
	slices.Sort(found)
	return found
}

// sold lists the nodes and pods and returns what is oversold.
func sold(ctx context.Context, b *testbed.Cluster, t *report.Trial) error {
	nodes, err := b.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	pods, err := b.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	t.Oversold = oversold(nodes.Items, pods.Items)
	claims, err := b.Client.ResourceV1().ResourceClaims(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list ResourceClaims: %w", err)
	}
	t.Oversold = append(t.Oversold, soldTwice(claims.Items, pods.Items)...)
	return nil
}
