// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

// deletePods deletes the existing pods with their grace periods. It does not wait for kubelets, because there may be
// none: a pod with a node and a grace period stays terminating, as in scheduler_perf.
func (r *run) deletePods(ctx context.Context, op *workload.DeletePods) error {
	selector := labels.SelectorFromSet(op.Labels).String()
	pods := r.Client.CoreV1().Pods(op.Namespace)
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return fmt.Errorf("list pods of %s: %w", op.Namespace, err)
	}
	deletion := func(ctx context.Context) error {
		if op.PerSecond == 0 {
			if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: selector}); err != nil {
				return fmt.Errorf("delete pods of %s: %w", op.Namespace, err)
			}
			return nil
		}
		return r.inTurn(ctx, len(list.Items), op.PerSecond, func(i int) error {
			name := list.Items[i].Name
			if err := pods.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("delete pod %s/%s: %w", op.Namespace, name, err)
			}
			return nil
		})
	}
	if op.SkipWait {
		r.inBackground(ctx, deletion)
		return nil
	}
	return deletion(ctx)
}
