// SPDX-License-Identifier: Apache-2.0

package gangs

import "time"

// Result is the result of a workload.
type Result struct {
	Scenario, Style string
	// Ran and All count the gangs and single pods that were completely placed, and those that were created.
	Ran, All int
	// Last is when the last of them was completely placed, MeanWait the mean of their waits; those that were not
	// placed count until the end of the run.
	Last, MeanWait time.Duration
	// Idle is how long one of them waited although the pods that ran left capacity for it.
	Idle time.Duration
	// Held is the time for which slots were held by pods that waited for others, summed over the slots; unknown, and
	// below 0, on a real cluster.
	Held time.Duration
	// Attempts counts the pods that were tried; below 0 when unknown.
	Attempts int
}

// Tally follows a workload. Times never go back.
type Tally struct {
	s       Scenario
	now     time.Duration
	batches []progress
	bound   int // pods that run, but for probes
	held    int
	sum     time.Duration // of waits
	out     Result
}

// progress is the progress of a batch.
type progress struct {
	came, bound int
	started     bool
	ended       int
}

// NewTally begins at time 0.
func NewTally(s Scenario, style string) *Tally {
	t := &Tally{s: s, batches: make([]progress, len(s.Batches)), out: Result{Scenario: s.Name, Style: style}}
	for _, b := range s.Batches {
		if !b.Aside {
			t.out.All++
		}
	}
	return t
}

// At advances the tally to a time.
func (t *Tally) At(now time.Duration) {
	if now <= t.now {
		return
	}
	passed := now - t.now
	t.now = now
	t.out.Held += time.Duration(t.held) * passed
	for i, b := range t.s.Batches {
		p := &t.batches[i]
		if missing := b.Pods - p.bound; !b.Aside && p.came == b.Pods && !p.started && t.s.Slots()-t.bound >= missing {
			t.out.Idle += passed
			return
		}
	}
}

// Came records that a pod of a batch was created.
func (t *Tally) Came(batch int) { t.batches[batch].came++ }

// Bound records that a pod of a batch was bound, and reports whether its batch runs now.
func (t *Tally) Bound(batch int) (runs bool) {
	p, b := &t.batches[batch], t.s.Batches[batch]
	p.bound++
	t.bound++
	if p.bound < b.Pods || p.started {
		return false
	}
	p.started = true
	if !b.Aside {
		t.out.Ran++
		t.out.Last = t.now
		t.sum += t.now - b.At
	}
	return true
}

// Ended records that a bound pod of a batch is gone.
func (t *Tally) Ended(batch int) {
	t.bound--
	t.batches[batch].ended++
}

// Holding records how many slots are held by pods that wait for others.
func (t *Tally) Holding(n int) { t.held = n }

// Done reports whether all measured pods are placed.
func (t *Tally) Done() bool { return t.out.Ran == t.out.All }

// Result ends the run.
func (t *Tally) Result(attempts int) Result {
	for i, b := range t.s.Batches {
		if !b.Aside && !t.batches[i].started {
			t.sum += t.now - b.At
		}
	}
	t.out.Attempts = attempts
	if t.out.All > 0 {
		t.out.MeanWait = t.sum / time.Duration(t.out.All)
	}
	return t.out
}
