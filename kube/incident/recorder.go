// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"sync"
	"time"

	"github.com/kumiki-scheduler/kumiki/core/engine"
)

const (
	// segmentBytes is the size of a segment's events from which on the next segment begins. There are two segments.
	segmentBytes = 12 << 20
	// costShare bounds what States cost: one that took a millisecond is followed by the next after 200 ms at the
	// earliest, unless the segment has twice the size. So they take half a percent of the time at most.
	costShare = 200
	// chunkSize is how many events are kept in one piece, so that growing copies none.
	chunkSize = 1024
)

// Recorder keeps the last events of an engine. Before, After and Turn belong to the goroutine of the loop; the other
// methods may be called from any.
type Recorder struct {
	state  func() engine.State // called on the goroutine of the loop, between two Steps
	clock  func() time.Time
	digest Digester
	limit  int // bytes of a segment

	mu       sync.Mutex
	previous *segment // nil for none
	present  *segment
	inHand   engine.Event // whose Step has not returned; nil between two Steps
	cost     time.Duration
}

// segment is a State with the events since.
type segment struct {
	state  engine.State
	before int // events of the engine before it
	began  time.Time
	chunks [][]Entry
	// answers are what foreign code answered: index of the event -> its answers.
	answers map[int]engine.Heard
	count   int
	bytes   int // estimated, of the events and what they keep in memory
}

// Entry is an event with the digest of its effects.
type Entry struct {
	Event  engine.Event
	Digest uint64
}

// NewRecorder returns a recorder for an engine that has not run yet.
func NewRecorder(state func() engine.State) *Recorder {
	r := &Recorder{state: state, clock: time.Now, limit: segmentBytes}
	r.present = r.begin(0)
	return r
}

// begin takes a State.
func (r *Recorder) begin(before int) *segment {
	began := r.clock()
	s := &segment{state: r.state(), before: before, began: began}
	r.cost = r.clock().Sub(began)
	return s
}

// Before notes that an event is about to be handled, so that a bundle written meanwhile has it.
func (r *Recorder) Before(ev engine.Event) {
	r.mu.Lock()
	r.inHand = ev
	r.mu.Unlock()
}

// After keeps an event with a digest of its effects.
func (r *Recorder) After(ev engine.Event, effects []engine.Effect) {
	sum := r.digest.Digest(effects)
	r.mu.Lock()
	s := r.present
	r.inHand = nil
	if n := len(s.chunks); n == 0 || len(s.chunks[n-1]) == chunkSize {
		s.chunks = append(s.chunks, make([]Entry, 0, chunkSize))
	}
	last := &s.chunks[len(s.chunks)-1]
	*last = append(*last, Entry{ev, sum})
	for _, f := range effects {
		if heard, is := f.(engine.Heard); is {
			s.heard(heard)
		}
	}
	s.count++
	s.bytes += sizeOf(ev)
	r.mu.Unlock()
	if s.bytes > r.limit {
		r.turnOver(s)
	}
}

// heard keeps answers of foreign code with the present event, of which there may be several effects.
func (s *segment) heard(h engine.Heard) {
	if s.answers == nil {
		s.answers = map[int]engine.Heard{}
	}
	s.bytes += len(h.Hosted)
	had := s.answers[s.count]
	had.Answers, had.Hosted = append(had.Answers, h.Answers...), append(had.Hosted, h.Hosted...)
	s.answers[s.count] = had
}

// turnOver begins the next segment, if States do not cost too much or the segment is far too large.
func (r *Recorder) turnOver(s *segment) {
	if s.bytes < 2*r.limit && r.clock().Sub(s.began) < costShare*r.cost {
		return
	}
	next := r.begin(s.before + s.count)
	r.mu.Lock()
	r.previous, r.present = s, next
	r.mu.Unlock()
}

// Sizes of what an event keeps in memory, estimated (BenchmarkRecorderMemory). A version of a pod or an object keeps
// its own record, and the State keeps the version before it.
const (
	sizeOfEvent = 128
	sizeOfPod   = 1 << 10
	sizeOfOther = 4 << 10
)

func sizeOf(ev engine.Event) int {
	switch ev.(type) {
	case engine.PodSet, engine.PodGone:
		return sizeOfPod
	case engine.NodeSet, engine.ObjectSet:
		return sizeOfOther
	}
	return sizeOfEvent
}

// Cut is what a recorder keeps at one moment: the State, and what happened since.
type Cut struct {
	State  *engine.State
	Before int // events of the engine before the State
	// Entries are the events since, in order, and Answers what foreign code answered: index of the event -> answers.
	Entries [][]Entry
	Answers []map[int]engine.Heard // of each segment
	Offsets []int                  // index of the first event of each segment
	Count   int
	// InHand is the event that was being handled; nil for none. It is not in Entries.
	InHand engine.Event
}

// Cut returns what is kept now. It copies no event. The State must be encoded by one goroutine at a time.
func (r *Recorder) Cut() Cut {
	r.mu.Lock()
	defer r.mu.Unlock()
	var c Cut
	c.InHand = r.inHand
	for _, s := range []*segment{r.previous, r.present} {
		if s == nil {
			continue
		}
		if c.State == nil {
			c.State, c.Before = &s.state, s.before
		}
		c.Offsets = append(c.Offsets, c.Count)
		c.Answers = append(c.Answers, copyOf(s.answers))
		c.Entries = append(c.Entries, s.chunks...)
		c.Count += s.count
	}
	return c
}

func copyOf(m map[int]engine.Heard) map[int]engine.Heard {
	out := make(map[int]engine.Heard, len(m))
	for i, a := range m {
		out[i] = a
	}
	return out
}

// Each visits the events of a cut, in order, with what foreign code answered.
func (c *Cut) Each(visit func(e Entry, answers engine.Heard)) {
	i, segment := 0, 0
	for _, chunk := range c.Entries {
		for _, e := range chunk {
			for segment+1 < len(c.Offsets) && i >= c.Offsets[segment+1] {
				segment++
			}
			visit(e, c.Answers[segment][i-c.Offsets[segment]])
			i++
		}
	}
}
