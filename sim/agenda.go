// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"container/heap"
	"time"
)

// entry is something that happens at a time.
type entry struct {
	at  time.Duration
	seq uint64 // of equal times, the first requested is the first
	// retry marks what repeats as long as pods wait, and so is no sign that something will change.
	retry bool
	do    func()
}

// agenda is what is going to happen, the next first.
type agenda struct {
	list entries
	seq  uint64
	// firm is the number of entries that are no retries.
	firm int
}

type entries []entry

func (e entries) Len() int { return len(e) }

// Less reports whether an entry is before another.
func (e entries) Less(i, j int) bool {
	if e[i].at != e[j].at {
		return e[i].at < e[j].at
	}
	return e[i].seq < e[j].seq
}
func (e entries) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *entries) Push(x any)   { *e = append(*e, x.(entry)) }
func (e *entries) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = entry{}
	*e = (*e)[:last]
	return x
}

func (a *agenda) add(at time.Duration, retry bool, do func()) {
	a.seq++
	if !retry {
		a.firm++
	}
	heap.Push(&a.list, entry{at, a.seq, retry, do})
}

// next returns the time of the next entry, and false if there is none.
func (a *agenda) next() (time.Duration, bool) {
	if len(a.list) == 0 {
		return 0, false
	}
	return a.list[0].at, true
}

func (a *agenda) pop() entry {
	e := heap.Pop(&a.list).(entry)
	if !e.retry {
		a.firm--
	}
	return e
}
