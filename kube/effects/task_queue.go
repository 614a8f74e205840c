// SPDX-License-Identifier: Apache-2.0

package effects

import "sync"

// taskQueue hands tasks to workers, oldest first. A worker ends when no task waits. The mutex of the owner guards the
// fields; callers of all methods but wait must hold it.
type taskQueue[T any] struct {
	mu    *sync.Mutex // of the owner
	limit int         // on the workers
	do    func(T)     // carries out one task, without the mutex

	waiting []T // oldest first
	running int // workers
	closed  bool
	workers sync.WaitGroup
}

// push queues a task and starts a worker for it if the limit allows. The queue must not be closed.
func (q *taskQueue[T]) push(task T) {
	q.waiting = append(q.waiting, task)
	if q.running < q.limit {
		q.running++
		q.workers.Add(1)
		go q.work()
	}
}

// pop removes the oldest task. There must be one.
func (q *taskQueue[T]) pop() T {
	oldest := q.waiting[0]
	var zero T
	q.waiting[0] = zero // the array outlives the task
	q.waiting = q.waiting[1:]
	return oldest
}

// work is a worker.
func (q *taskQueue[T]) work() {
	defer q.workers.Done()
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 || q.closed {
			q.running--
			q.mu.Unlock()
			return
		}
		task := q.pop()
		q.mu.Unlock()
		q.do(task)
	}
}

// idle reports whether no task waits or is carried out.
func (q *taskQueue[T]) idle() bool { return len(q.waiting) == 0 && q.running == 0 }

// wait returns when all workers have ended. The queue must be closed.
func (q *taskQueue[T]) wait() { q.workers.Wait() }
