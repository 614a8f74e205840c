// SPDX-License-Identifier: Apache-2.0

package effects

import "sync"

// yielding is how many workers a queue has while work that matters more is under way. Two, so that one task that is
// tried again and again does not keep all others.
const yielding = 2

// taskQueue hands tasks to workers, oldest first. A worker ends when no task waits. The mutex of the owner guards the
// fields; callers of all methods but wait must hold it.
type taskQueue[T any] struct {
	mu    *sync.Mutex // of the owner
	limit int         // on the workers
	do    func(T)     // carries out one task, without the mutex
	// yields reports whether work that matters more is under way; set before the first task, nil for never. It is
	// called with the mutex, so it must not take one under which this queue is used.
	yields func() bool

	waiting []T // oldest first
	running int // workers; Invariant: positive while a task waits
	closed  bool
	workers sync.WaitGroup
}

// push queues a task and starts a worker for it if the limit allows. The queue must not be closed.
func (q *taskQueue[T]) push(task T) {
	q.waiting = append(q.waiting, task)
	if q.running < q.allowed() {
		q.start()
	}
}

func (q *taskQueue[T]) start() {
	q.running++
	q.workers.Add(1)
	go q.work()
}

// allowed returns how many workers there may be now.
func (q *taskQueue[T]) allowed() int {
	if q.yields != nil && q.yields() {
		return min(yielding, q.limit)
	}
	return q.limit
}

// pop removes the oldest task. There must be one.
func (q *taskQueue[T]) pop() T {
	oldest := q.waiting[0]
	var zero T
	q.waiting[0] = zero // the array outlives the task
	q.waiting = q.waiting[1:]
	return oldest
}

// work is a worker. Between tasks it ends if there are too many workers, and starts another one if there may be more.
func (q *taskQueue[T]) work() {
	defer q.workers.Done()
	for {
		q.mu.Lock()
		allowed := q.allowed()
		if len(q.waiting) == 0 || q.closed || q.running > allowed {
			q.running--
			q.mu.Unlock()
			return
		}
		task := q.pop()
		if len(q.waiting) > 0 && q.running < allowed {
			q.start()
		}
		q.mu.Unlock()
		q.do(task)
	}
}

// idle reports whether no task waits or is carried out.
func (q *taskQueue[T]) idle() bool { return len(q.waiting) == 0 && q.running == 0 }

// wait returns when all workers have ended. The queue must be closed.
func (q *taskQueue[T]) wait() { q.workers.Wait() }
