// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"
	"slices"
	"sync"

	"github.com/kumiki-scheduler/kumiki/record"
)

// objectKey names an object among those of its kind; namespace is empty for kinds without namespaces.
type objectKey struct{ namespace, name string }

func compareKeys(a, b objectKey) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

// rank is the place of a kind among the initial lists. Pods come last, and nodes before them: a pod becomes an event
// when all that it can refer to is known.
type rank uint8

const (
	nodeRank rank = 254
	podRank  rank = 255
)

// waiting is an object with a change that the engine does not know.
type waiting struct {
	rank rank
	objectKey
}

// queueKept is for how many objects the queue keeps its memory.
const queueKept = 1 << 14

// backlog is the queue of the objects with changes that the engine does not know.
type backlog struct {
	mu     sync.Mutex    // also guards the rows and the rest of an Inbox
	queue  []waiting     // rows with queued set, oldest first; taken from head
	head   int           // Invariant: 0 <= head <= len(queue).
	opened bool          // the initial lists were sorted into the queue
	ready  chan struct{} // one slot: something may be taken
}

func newBacklog() backlog { return backlog{ready: make(chan struct{}, 1)} }

func (b *backlog) signal() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// Ready gives a value when something may be taken.
func (b *backlog) Ready() <-chan struct{} { return b.ready }

// open sorts the initial lists, once: by kind and name, pods last and nodes before them. Of the pods, those that wait
// for a node come last, in the order of their creation, as they were tried before a restart; pending returns when such
// a pod was created.
func (b *backlog) open(pending func(key objectKey) (created record.Time, is bool)) {
	if b.opened {
		return
	}
	b.opened = true
	slices.SortFunc(b.queue, func(x, y waiting) int {
		return cmp.Or(cmp.Compare(x.rank, y.rank), compareKeys(x.objectKey, y.objectKey))
	})
	type aged struct {
		waiting
		created record.Time
	}
	var last []aged
	rest := b.queue[:0]
	for _, w := range b.queue {
		if w.rank == podRank {
			if created, is := pending(w.objectKey); is {
				last = append(last, aged{w, created})
				continue
			}
		}
		rest = append(rest, w)
	}
	slices.SortStableFunc(last, func(x, y aged) int { return cmp.Compare(x.created, y.created) })
	for _, l := range last {
		rest = append(rest, l.waiting)
	}
	b.queue = rest
}

// pop takes the oldest object out of the queue, if there is one.
func (b *backlog) pop() (next waiting, ok bool) {
	if b.head == len(b.queue) {
		return waiting{}, false
	}
	next = b.queue[b.head]
	b.queue[b.head] = waiting{}
	b.head++
	return next, true
}

// compact frees the memory of what was taken, and reports whether the queue is empty.
func (b *backlog) compact() (empty bool) {
	if b.head == len(b.queue) {
		b.queue, b.head = b.queue[:0], 0
		if cap(b.queue) > queueKept {
			b.queue = nil // it held the initial lists
		}
		return true
	}
	if b.head > 1024 && b.head > len(b.queue)/2 {
		b.queue = slices.Delete(b.queue, 0, b.head)
		b.head = 0
	}
	return false
}
