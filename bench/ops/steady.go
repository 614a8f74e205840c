// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

// place is an index of a steady state and its current pod; the next pod of the index replaces it.
type place struct {
	index int
	pod   *entry
}

// steady keeps as many pods as the operation says: each pod that is bound, or deleted by another client, is deleted
// and another one of the same index is created, until the time is over.
func (r *run) steady(ctx context.Context, op *workload.CreatePods, m *podMaker, namespace string) error {
	end := r.Clock.After(op.Steady)
	// Each of the places is either in the channel, or with a worker, or has a pod that is pending.
	free := make(chan place, op.Count)
	var serial, bound atomic.Int64
	fill := func(ctx context.Context, index int) error {
		e := &entry{awaited: true}
		e.freed = func() { free <- place{index: index, pod: e} }
		return r.createPod(ctx, m, namespace, index, int(serial.Add(1))-1, time.Time{}, e)
	}
	if err := r.each(ctx, op.Count, fill); err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	over := make(chan struct{})
	var workers sync.WaitGroup
	for range min(r.Creators, op.Count) {
		workers.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-ctx.Done():
					return
				case at := <-free:
					if !at.pod.Bound.IsZero() {
						bound.Add(1)
					}
					if err := errors.Join(r.deletePod(ctx, namespace, at.pod.Name), fill(ctx, at.index)); err != nil {
						fail(err)
					}
				}
			}
		})
	}
	select {
	case <-end:
	case <-ctx.Done():
	}
	close(over)
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if bound.Load() == 0 {
		return fmt.Errorf("no pod was scheduled in %s", op.Steady)
	}
	return nil
}

// deletePod deletes a pod at once; it may be gone.
func (r *run) deletePod(ctx context.Context, namespace, name string) error {
	var now int64
	err := r.Client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod %s/%s: %w", namespace, name, err)
	}
	return nil
}
