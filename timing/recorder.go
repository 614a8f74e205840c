// SPDX-License-Identifier: Apache-2.0

package timing

import (
	"sync"

	"github.com/kumiki-scheduler/kumiki/record"
)

// How much is kept by default.
const (
	// DefaultSpans take 16 MiB.
	DefaultSpans     = 16 << 20 / spanSize
	DefaultJourneys  = 32 << 10
	DefaultGangs     = 4 << 10
	DefaultEvictions = 4 << 10
	DefaultRequests  = 16 << 10
)

// maxEvictions bounds the evictions that are under way.
const maxEvictions = 16 << 10

// Options make a Recorder. Sizes are the defaults when 0.
type Options struct {
	// Epoch identifies the process, Since is when it began.
	Epoch string
	Since record.Time

	Spans, Journeys, Gangs, Evictions, Requests int
}

// Recorder records one scheduler.
type Recorder struct {
	epoch string
	since record.Time

	mu       sync.Mutex // guards all fields below but those of requests
	names    names
	spans    ring[span]
	ended    ring[ended]
	numbers  uint64     // of journeys
	active   []*journey // on their way, in no order
	byUID    table      // of those in active
	free     []*journey // for use again
	touched  []*journey // of the step, may hold one twice
	phases   [record.Phases]histogram
	watchLag histogram

	gangs      map[string]*gang // namespace/name -> a gang with pods on their way
	endedGangs ring[record.GangTiming]

	evictions      map[evictionKey]*eviction // evictions under way
	victims        map[string]*victim        // UID of a victim that is not gone -> the evictions that wait for it
	endedEvictions ring[record.EvictionTiming]
	lostEvictions  uint64

	requests requests
}

// New returns a Recorder that has seen nothing.
func New(o Options) *Recorder {
	or := func(n, otherwise int) int {
		if n == 0 {
			return otherwise
		}
		return n
	}
	r := &Recorder{epoch: o.Epoch, since: o.Since, names: newNames(), byUID: newTable(),
		gangs: map[string]*gang{}, evictions: map[evictionKey]*eviction{}, victims: map[string]*victim{}}
	r.spans = newRing[span](or(o.Spans, DefaultSpans))
	r.ended = newRing[ended](or(o.Journeys, DefaultJourneys))
	r.endedGangs = newRing[record.GangTiming](or(o.Gangs, DefaultGangs))
	r.endedEvictions = newRing[record.EvictionTiming](or(o.Evictions, DefaultEvictions))
	r.requests.kept = newRing[Request](or(o.Requests, DefaultRequests))
	return r
}

// BeginStep begins what one step of the engine tells. EndStep must follow, on the same goroutine.
func (r *Recorder) BeginStep() { r.mu.Lock() }

// EndStep ends the step at the given time. Pods that came back to their gang are where it is; pods that are in no phase
// any more have left.
func (r *Recorder) EndStep(at record.Time) {
	for i, j := range r.touched {
		r.touched[i] = nil
		if j.number != 0 { // otherwise it ended in this step
			r.settle(j, at)
		}
	}
	r.touched = r.touched[:0]
	r.mu.Unlock()
}

func (r *Recorder) settle(j *journey, at record.Time) {
	switch {
	case j.place == failed: // the bind is sent again later, to the same node
		r.enter(j, record.PhasePreparing, at, 0, 0)
		j.place = decided
	case j.place != nowhere:
	case j.gang != nil && j.gang.queued:
		r.enter(j, j.gang.phase, at, 0, 0)
		j.place, j.plugins = queued, j.gang.plugins
	case j.phase == record.PhaseInbox:
		r.forget(j) // it never waited: it is being deleted, for example
	default:
		r.end(j, at, record.EndLeft)
	}
}
