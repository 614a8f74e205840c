// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm"
	"github.com/kumiki-scheduler/kumiki/apm/bottleneck"
	"github.com/kumiki-scheduler/kumiki/apm/samples"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Phases is kumiki's own record of the phases of pods, and when it was read by the clock of the samples.
type Phases struct {
	*record.Timing
	ReadBegan, ReadEnded time.Time
}

// MaxJourneys is how many journeys are asked for, of those that ended and of those on their way: with more, some are
// missing.
const MaxJourneys = 10_000

// unusable returns why phases do not say where all pods were between two moments; empty if they do.
func (p *Phases) unusable(from, to int64) string {
	ended, current := 0, 0
	for i := range p.Journeys {
		j := &p.Journeys[i]
		if j.Ended == 0 {
			current++
		} else {
			ended++
		}
		if j.LostSpans > 0 && (j.Ended == 0 || int64(j.Ended)-p.ahead() > from) {
			return fmt.Sprintf("%d phases of pod %s were overwritten before they were read", j.LostSpans, j.Pod.Key())
		}
	}
	switch {
	case p.Only != "":
		return "the phases of pods may be read in namespace " + p.Only + " alone"
	case max(ended, current) >= MaxJourneys:
		return fmt.Sprintf("there are more than %d pods", MaxJourneys)
	case int64(p.Since)-p.ahead() > from:
		return "the scheduler began to record phases after the recording had begun"
	case int64(p.Now)-p.ahead() < to:
		return "the phases of pods were read before the recording had ended"
	}
	return ""
}

// ahead is by how many nanoseconds the clock of the phases is ahead of that of the samples: 0 if the moment at which
// they were read, by their clock, lies between question and answer, else the least difference that explains it.
func (p *Phases) ahead() int64 {
	switch now := int64(p.Now); {
	case now < p.ReadBegan.UnixNano():
		return now - p.ReadBegan.UnixNano()
	case now > p.ReadEnded.UnixNano():
		return now - p.ReadEnded.UnixNano()
	}
	return 0
}

// stays is how many pods were in each phase, on average in each bucket.
type stays struct {
	edges []int64                       // of the buckets, by the clock of the samples
	pods  int                           // that are in it
	in    [record.Phases][]float64      // phase -> bucket -> pods, without those below
	held  [bottleneck.Reasons][]float64 // reason -> bucket -> pods: OnVictims, and NextSession or Overlooked
	// sent and answers are the time of the requests that were answered, and their number.
	sent    time.Duration
	answers float64
	limited time.Duration // of the same requests, in the rate limiter
	// open has the pods in bind-queued whose bind has no outcome: some of these binds are under way, but their moments
	// are not known yet. Bucket -> pods.
	open []float64
	// retried and failed are the pod-seconds in backoffs after which the pod was placed or not, flushed those of
	// unschedulable pods that were placed after a timeout alone had woken them, of all in rejected.
	retried, failed   float64
	flushed, rejected float64
	// lags has the time from the answers of own binds to the events that showed them.
	lags []time.Duration
}

// newStays computes where the pods were in each bucket. loops is what the loop did in it. period reports whether pods
// are tried in sessions.
func newStays(p *Phases, d *samples.Document, loops []bottleneck.Load, period bool) *stays {
	s := &stays{}
	for i := range d.Samples {
		s.edges = append(s.edges, d.Samples[i].At)
	}
	for i := range s.in {
		s.in[i] = make([]float64, len(loops))
	}
	for i := range s.held {
		s.held[i] = make([]float64, len(loops))
	}
	s.open = make([]float64, len(loops))
	c := clocks{ahead: p.ahead(), now: int64(p.Now)}
	waits := victimsOf(p)
	idle := bottleneck.Overlooked
	if period {
		idle = bottleneck.NextSession
	}
	for i := range p.Journeys {
		j := &p.Journeys[i]
		s.journey(j, c, [][]wait{waits[j.Pod.UID], waits[j.Gang]}, idle, loops)
	}
	return s
}

// clocks join the clock of the phases with that of the samples.
type clocks struct{ ahead, now int64 }

// of returns the begin and the end of a span, and whether it goes on, by the clock of the samples.
func (c clocks) of(j *record.Journey, span int) (from, to int64, goesOn bool) {
	s := &j.Spans[span]
	if span == len(j.Spans)-1 && j.Ended == 0 {
		return int64(s.Start) - c.ahead, c.now - c.ahead, true
	}
	return int64(s.Start) - c.ahead, int64(s.End()) - c.ahead, false
}

// journey adds a pod. of has when it waited for victims, idle is what it waits for if the loop is idle.
func (s *stays) journey(j *record.Journey, c clocks, of [][]wait, idle bottleneck.Reason, loops []bottleneck.Load) {
	observed := false
	for k := range j.Spans {
		phase := j.Spans[k].Phase
		from, to, goesOn := c.of(j, k)
		s.stay(phase, from, to)
		observed = observed || phase <= record.PhaseSent && s.inWindow(from, to) > 0
		switch phase {
		case record.PhaseGated, record.PhaseUnschedulable, record.PhaseBackoff:
			s.onVictims(phase, from, to, c.ahead, of...)
			s.outcome(j, k, s.inWindow(from, to))
		case record.PhaseActive:
			s.ready(idle, from, to, loops)
		case record.PhaseBindQueued:
			if goesOn {
				s.each(from, to, func(i int, share float64) { s.open[i] += share })
			}
		case record.PhaseSent:
			s.answered(j, k, to)
		}
	}
	if observed {
		s.pods++
	}
	if j.WatchLag != nil && int64(j.Ended)-c.ahead > s.edges[0] {
		s.lags = append(s.lags, time.Duration(*j.WatchLag))
	}
}

// answered counts a request, if its answer came in the observed time.
func (s *stays) answered(j *record.Journey, span int, at int64) {
	if j.Spans[span].Took == 0 || at <= s.edges[0] || at > s.edges[len(s.edges)-1] {
		return
	}
	s.sent, s.answers = s.sent+time.Duration(j.Spans[span].Took), s.answers+1
	if span > 0 && j.Spans[span-1].Phase == record.PhaseLimited {
		s.limited += time.Duration(j.Spans[span-1].Took)
	}
}

// each calls do with the buckets that a time overlaps, and the share of each that it takes.
func (s *stays) each(from, to int64, do func(bucket int, share float64)) {
	first := sort.Search(len(s.edges), func(i int) bool { return s.edges[i] > from })
	for i := max(first, 1); i < len(s.edges) && s.edges[i-1] < to; i++ {
		if d := min(to, s.edges[i]) - max(from, s.edges[i-1]); d > 0 {
			do(i-1, float64(d)/float64(s.edges[i]-s.edges[i-1]))
		}
	}
}

// inWindow returns how many seconds of a time were observed.
func (s *stays) inWindow(from, to int64) float64 {
	return float64(max(min(to, s.edges[len(s.edges)-1])-max(from, s.edges[0]), 0)) / 1e9
}

func (s *stays) stay(p record.Phase, from, to int64) {
	s.each(from, to, func(i int, share float64) { s.in[p][i] += share })
}

// move counts a part of a phase for a reason instead.
func (s *stays) move(p record.Phase, r bottleneck.Reason, bucket int, pods float64) {
	s.in[p][bucket] -= pods
	s.held[r][bucket] += pods
}

// ready counts a pod that was active while the loop was idle. In a bucket in which it was tried, the loop may have been
// idle before or after.
func (s *stays) ready(idle bottleneck.Reason, from, to int64, loops []bottleneck.Load) {
	s.each(from, to, func(i int, share float64) {
		if share >= 1 || idle == bottleneck.NextSession {
			s.move(record.PhaseActive, idle, i, share*loops[i].Starved)
		}
	})
}

// wait is the time in which victims terminate.
type wait struct{ from, to record.Time }

// victimsOf returns when pods waited for victims: UID of the pod, or namespace/name of the gang -> times.
func victimsOf(p *Phases) map[string][]wait {
	of := map[string][]wait{}
	for i := range p.Evictions {
		e := &p.Evictions[i]
		key, to := e.For.UID, e.Gone
		if e.Gang != "" {
			key = e.Gang
		}
		switch {
		case key == "":
			continue
		case e.Failed != "":
			to = max(e.Requested, e.Deleted)
		case to == 0:
			to = p.Now
		}
		of[key] = append(of[key], wait{e.Requested, to})
	}
	for _, list := range of { // order: each for itself
		slices.SortFunc(list, func(a, b wait) int { return int(a.from - b.from) })
	}
	return of
}

// onVictims counts the time in which victims of the pod or of its gang were not gone.
func (s *stays) onVictims(p record.Phase, from, to, ahead int64, of ...[]wait) {
	for _, list := range of {
		for _, w := range list {
			begin, end := max(int64(w.from)-ahead, from), min(int64(w.to)-ahead, to)
			s.each(begin, end, func(i int, share float64) { s.move(p, bottleneck.OnVictims, i, share) })
			from = max(from, end)
		}
	}
}

// Labels of the ends of phases.
const (
	timeout      = "UnschedulableTimeout"
	sessionStart = "SessionStart"
)

// outcome notes what became of a pod after it was held for so many observed seconds.
func (s *stays) outcome(j *record.Journey, span int, seconds float64) {
	placed, known := placedAfter(j, span)
	switch j.Spans[span].Phase {
	case record.PhaseBackoff:
		switch {
		case known && placed:
			s.retried += seconds
		case known:
			s.failed += seconds
		case span > 0 && j.Spans[span-1].Phase >= record.PhasePreparing:
			s.retried += seconds // it had a node, and the bind failed
		}
	case record.PhaseUnschedulable:
		s.rejected += seconds
		if placed && j.Spans[span].Event == timeout {
			s.flushed += seconds
		}
	}
}

// placedAfter reports whether the next attempt after a span found a node, and false if it is not over.
func placedAfter(j *record.Journey, span int) (placed, known bool) {
	for _, next := range j.Spans[span+1:] {
		switch next.Phase {
		case record.PhaseActive, record.PhaseDeciding:
		case record.PhaseGated, record.PhaseUnschedulable, record.PhaseBackoff:
			if next.Attempt > j.Spans[span].Attempt {
				return false, true
			}
		default:
			return true, true
		}
	}
	return false, false
}

// mayDelayInbox is the share of a bucket from which on the busy time of the loop is why pods were in the inbox: an idle
// loop takes them at once, so they were there while it was busy.
const mayDelayInbox = 0.2

// phases fills a bucket with the pods in it.
func (r *reader) phases(i int, out *bottleneck.Bucket) {
	s, loop := r.stays, &out.Stages[bottleneck.Loop]
	in := func(p record.Phase) float64 { return s.in[p][i] }
	at := func(s bottleneck.Stage) *bottleneck.Load { return &out.Stages[s] }

	r.inbox(out, in(record.PhaseInbox))
	if inbox := at(bottleneck.Inbox); loop.AtCapacity >= mayDelayInbox {
		inbox.AtCapacity, inbox.Starved = inbox.AtCapacity+inbox.Starved, 0
	}
	loop.Content = in(record.PhaseActive) + in(record.PhaseDeciding)
	for reason := range s.held {
		out.Held[reason] = s.held[reason][i]
	}
	out.Held[bottleneck.Gated] += in(record.PhaseGated)
	out.Held[bottleneck.BackingOff] += in(record.PhaseBackoff)
	out.Held[bottleneck.Unschedulable] += in(record.PhaseUnschedulable)
	at(bottleneck.Preparing).Content = in(record.PhasePreparing)
	limited, sent, queued := in(record.PhaseLimited), in(record.PhaseSent), in(record.PhaseBindQueued)
	// Of the binds without an outcome, the gauge says how many are under way.
	a, b := &r.d.Samples[i], &r.d.Samples[i+1]
	open := min(max(between(a, b, goroutines, `operation="binding"`)-limited-sent, 0), s.open[i])
	limited, sent, queued = limited+open*r.limited, sent+open*(1-r.limited), queued-open
	at(bottleneck.Limiter).Content = limited
	at(bottleneck.APIServer).Content = sent
	calls := limited + sent
	// Half of the limit on average: between two binds of one worker there is a pause. Binds wait for the lease too.
	if calls >= r.limit(inFlight)/2 || r.w.Evidence.Blocked != nil {
		at(bottleneck.BindQueue).Content, at(bottleneck.BindQueue).Blocked = queued, 1
	} else {
		at(bottleneck.Answer).Content = queued // a worker is free, and takes it
	}
	if calls > 0 {
		at(bottleneck.APIServer).AtCapacity = partsOf(&r.w, bottleneck.APIServer)
	}
	if calls > 0 && limited >= limiterShare*calls {
		at(bottleneck.Limiter).AtCapacity = 1
	}
}

// known is the number of pods without a node that a bucket has, on average.
func known(b *bottleneck.Bucket) (sum float64) {
	for s := range b.Stages {
		sum += b.Stages[s].Content
	}
	for _, held := range b.Held {
		sum += held
	}
	return sum
}

// inboxWaits notes why pods were in the inbox while the loop was idle: it was ready, and had no CPU.
func (r *reader) inboxWaits() {
	loop := r.lane(apm.Loop)
	if loop == nil || r.stays == nil {
		return
	}
	idle := 0.0
	for i := range r.w.Buckets {
		in := &r.w.Buckets[i].Stages[bottleneck.Inbox]
		idle += r.w.Buckets[i].Took.Seconds() * in.Starved * min(in.Content, 1)
	}
	if idle > 0 {
		r.part(bottleneck.Inbox, bottleneck.CPUStarvation, min(loop.Runnable.Seconds()/idle, 1),
			"the loop was ready for %.2f s and had no CPU", loop.Runnable.Seconds())
	}
}

// gauges is the sum over all buckets of the pods that gauges show between the inbox and the answer, in pod-seconds. It
// is independent of the phases. From one change of a gauge to the next, it may be off by half of the change: it is
// sampled, and a busy loop sets it late. If pods come in step with the samples, it is off by up to half a pod always.
func (r *reader) gauges() (sum, within float64) {
	at := r.pendingAt
	changed := r.d.Samples[0].At
	within = float64(r.d.Samples[len(r.d.Samples)-1].At-changed) / 1e9 / 2
	for i := 1; i < len(r.d.Samples); i++ {
		a, b := &r.d.Samples[i-1], &r.d.Samples[i]
		sum += (at(a) + at(b)) / 2 * float64(b.At-a.At) / 1e9
		if d := math.Abs(at(b) - at(a)); d > 0 {
			within += d / 2 * float64(b.At-changed) / 1e9
			changed = b.At
		}
	}
	return sum, within
}

// pendingAt is the number of pods without a node that gauges show.
func (r *reader) pendingAt(s *samples.Sample) float64 {
	if !r.ours {
		return s.Values.Sum(pending) + s.Values.Sum(goroutines, `operation="binding"`)
	}
	return s.Values.Sum(pending) + s.Values.Sum(assumed, `type="assumed_pods"`)
}

// counted is the part of the phases that gauges show too.
func (s *stays) counted() (sum float64) {
	for p := record.PhaseGated; p <= record.PhaseAnswered; p++ {
		for i, pods := range s.in[p] {
			sum += pods * float64(s.edges[i+1]-s.edges[i]) / 1e9
		}
	}
	for r := range s.held {
		for i, pods := range s.held[r] {
			sum += pods * float64(s.edges[i+1]-s.edges[i]) / 1e9
		}
	}
	return sum
}
