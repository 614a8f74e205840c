// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"fmt"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

// named is how many pods or groups an error names.
const named = 5

// await waits until the condition of a waiter holds, as long as one of the pods that it waits for makes progress.
// Other pods may come and go without end, as those of a churn do.
func (r *run) await(ctx context.Context, wait *waiter) error {
	began := r.Clock.Now()
	for {
		select {
		case <-wait.done:
			return nil
		default:
		}
		left, moved := r.Watch.missing(wait)
		if moved.Before(began) {
			moved = began
		}
		r.tell(wait.of-left, wait.of)
		if left > 0 && r.Clock.Now().Sub(moved) > r.Patience {
			names, why := r.Watch.missingNames(wait, named)
			return &Unfinished{Stage: wait.stage, Left: left, Of: wait.of, What: wait.what(), Names: names, Why: why, Patience: r.Patience}
		}
		select {
		case <-wait.done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.Clock.After(min(lookEvery, r.Patience)):
		}
	}
}

// barrier waits for pods of earlier operations.
func (r *run) barrier(ctx context.Context, op *workload.Barrier) error {
	for _, namespace := range op.Namespaces {
		if !r.namespaces[namespace] {
			return fmt.Errorf("no operation before this one has made namespace %s", namespace)
		}
	}
	return r.await(ctx, r.Watch.await(op.Stage, func(e *entry) bool { return e.awaited && e.Is(op.Namespaces, op.Labels) }))
}
