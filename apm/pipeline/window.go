// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm"
	"github.com/kumiki-scheduler/kumiki/apm/bottleneck"
	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/apm/journey"
	"github.com/kumiki-scheduler/kumiki/apm/samples"
)

// Why finds the bottleneck of a bundle.
func Why(b *bundle.Reader) (bottleneck.Verdict, error) {
	content, err := b.Open(bundle.Samples)
	if err != nil {
		return bottleneck.Verdict{}, fmt.Errorf("finding the bottleneck: %w; record with this version of kumiki", err)
	}
	defer content.Close()
	d, err := samples.Read(io.Reader(content))
	if err != nil {
		return bottleneck.Verdict{}, err
	}
	profile, err := apm.Analyze(b)
	if err != nil {
		return bottleneck.Verdict{}, err
	}
	phases, err := readPhases(b)
	if missing := (*bundle.Missing)(nil); err != nil && !errors.As(err, &missing) {
		return bottleneck.Verdict{}, err
	}
	return bottleneck.Find(Window(d, profile, phases)), nil
}

// readPhases reads the scheduler's own record of the phases of pods.
func readPhases(b *bundle.Reader) (*Phases, error) {
	t, err := journey.Open(b)
	if err != nil {
		return nil, err
	}
	part, _ := b.Part(bundle.Timing)
	return &Phases{t, part.Began, part.Ended}, nil
}

// The names of metrics.
const (
	loopSeconds   = "kumiki_loop_seconds_total"
	pending       = "scheduler_pending_pods"
	assumed       = "scheduler_cache_size"
	goroutines    = "scheduler_goroutines"
	attempts      = "scheduler_schedule_attempts_total"
	limits        = "kumiki_limit"
	leads         = "leader_election_master_status"
	incoming      = "scheduler_queue_incoming_pods_total"
	algorithm     = "scheduler_scheduling_algorithm_duration_seconds_sum"
	pointSum      = "scheduler_framework_extension_point_duration_seconds_sum"
	pointCount    = "scheduler_framework_extension_point_duration_seconds_count"
	limiterSum    = "rest_client_rate_limiter_duration_seconds_sum"
	requestSum    = "rest_client_request_duration_seconds_sum"
	requestCount  = "rest_client_request_duration_seconds_count"
	handlerSum    = "apiserver_request_duration_seconds_sum"
	handlerCount  = "apiserver_request_duration_seconds_count"
	fairnessSum   = "apiserver_flowcontrol_request_wait_duration_seconds_sum"
	fairnessCount = "apiserver_flowcontrol_request_wait_duration_seconds_count"
	etcdSum       = "etcd_request_duration_seconds_sum"
	etcdCount     = "etcd_request_duration_seconds_count"
)

// The limits of kumiki_limit.
const (
	inFlight      = "in-flight-limit"
	decidedAhead  = "decided-ahead-limit"
	sessionPeriod = "session-period"
)

// reader computes a window.
type reader struct {
	d       *samples.Document
	profile *apm.Profile // may be nil
	ours    bool         // the scheduler is kumiki
	w       bottleneck.Window
	// limited is the share of a bind's time that it waited for the rate limiter, preparing the share of a binding
	// goroutine's time that PreBind and Permit took (kube-scheduler).
	limited, preparing float64
	unboundKnown       bool
	listed             int     // sample from which on the watch of pods has shown those that were there before
	workers            float64 // the most binds in flight in a sample
	stays              *stays  // nil if gauges say where pods are
}

// Window computes the input of the finder from samples and, where they are not nil, from the profile of the same time
// and from the scheduler's own record of the phases of pods.
func Window(d *samples.Document, profile *apm.Profile, phases *Phases) bottleneck.Window {
	r := &reader{d: d, profile: profile}
	r.w.Evidence.Unobserved = map[bottleneck.Cause]string{}
	if len(d.Samples) < 2 {
		return r.w
	}
	first, last := &d.Samples[0], &d.Samples[len(d.Samples)-1]
	if first.Values.Sum("process_start_time_seconds") != last.Values.Sum("process_start_time_seconds") {
		return r.w // the scheduler restarted: counters of two processes have no difference
	}
	r.ours = last.Values.Has(loopSeconds)
	r.unboundKnown = first.Pods != nil && last.Pods != nil
	r.listed = r.listedAt()
	r.workers = r.mostWorkers()
	loops := r.loops()
	r.source(phases, loops)
	r.bind(delta(first.Values, last.Values))
	for i := 1; i < len(d.Samples); i++ {
		r.w.Buckets = append(r.w.Buckets, r.bucket(i, loops[i-1]))
	}
	r.watch()
	r.inboxWaits()
	r.limits()
	r.loop(delta(first.Values, last.Values))
	r.held(delta(first.Values, last.Values))
	r.little(first, last)
	r.unobserved()
	return r.w
}

// source decides by what it is known where pods are.
func (r *reader) source(phases *Phases, loops []bottleneck.Load) {
	r.w.Evidence.Source, r.w.Evidence.Resolution = "gauges of /metrics", resolution
	if !r.ours || phases == nil {
		return
	}
	first, last := r.d.Samples[0].At, r.d.Samples[len(r.d.Samples)-1].At
	if why := phases.unusable(first, last); why != "" {
		r.w.Evidence.Source += ", because " + why
		return
	}
	r.stays = newStays(phases, r.d, loops, r.limit(sessionPeriod) > 0)
	r.w.Evidence.Resolution = 0
	r.w.Evidence.Source = fmt.Sprintf("phases of %d pods", r.stays.pods)
}

// limit returns a limit that the scheduler reports; 0 for none.
func (r *reader) limit(name string) float64 {
	return r.d.Samples[len(r.d.Samples)-1].Values.Sum(limits, `cause="`+name+`"`)
}

// change is what counters grew by.
type change struct{ from, to samples.Values }

func delta(from, to samples.Values) change { return change{from, to} }

// sum returns by how much the series grew; 0 if they fell.
func (c change) sum(name string, labels ...string) float64 {
	return max(c.to.Sum(name, labels...)-c.from.Sum(name, labels...), 0)
}

// mean is the mean of a histogram in the time, and false if nothing was observed.
func (c change) mean(sum, count string, labels ...string) (float64, bool) {
	n := c.sum(count, labels...)
	if n == 0 {
		return 0, false
	}
	return c.sum(sum, labels...) / n, true
}

// between is the mean of a gauge between two samples.
func between(a, b *samples.Sample, name string, labels ...string) float64 {
	return (max(a.Values.Sum(name, labels...), 0) + max(b.Values.Sum(name, labels...), 0)) / 2
}

// bucket computes the time between a sample and the one before.
func (r *reader) bucket(i int, loop bottleneck.Load) bottleneck.Bucket {
	a, b := &r.d.Samples[i-1], &r.d.Samples[i]
	out := bottleneck.Bucket{Took: time.Duration(b.At - a.At)}
	c := delta(a.Values, b.Values)
	out.Stages[bottleneck.Loop] = loop
	out.Stages[bottleneck.Loop].Out = c.sum(attempts)
	if r.stays != nil {
		r.phases(i-1, &out)
	} else {
		r.queues(a, b, &out)
	}
	r.flow(i, &out, c)
	return out
}

// queues fills a bucket with the pods that gauges show.
func (r *reader) queues(a, b *samples.Sample, out *bottleneck.Bucket) {
	queue := func(name string) float64 { return between(a, b, pending, `queue="`+name+`"`) }
	at := func(s bottleneck.Stage) *bottleneck.Load { return &out.Stages[s] }

	at(bottleneck.Loop).Content = queue("active")
	out.Held[bottleneck.Gated] = queue("gated") + queue("incomplete")
	out.Held[bottleneck.BackingOff] = queue("backoff")
	out.Held[bottleneck.Unschedulable] = queue("unschedulable") + queue("pending")

	binding := between(a, b, goroutines, `operation="binding"`)
	preparing := between(a, b, goroutines, `operation="prebinding"`)
	if r.ours {
		unanswered := between(a, b, assumed, `type="assumed_pods"`)
		switch waiting := unanswered - binding - preparing; {
		case waiting < 1:
		case min(a.Values.Sum(goroutines, `operation="binding"`), b.Values.Sum(goroutines, `operation="binding"`)) >=
			r.workers:
			at(bottleneck.BindQueue).Content, at(bottleneck.BindQueue).Blocked = waiting, 1
		default: // no bind waits while fewer than possible are in flight: the loop has not taken the outcomes
			r.inbox(out, waiting)
		}
	} else {
		preparing = binding * r.preparing
		binding -= preparing
	}
	at(bottleneck.Preparing).Content = preparing
	at(bottleneck.Limiter).Content = binding * r.limited
	at(bottleneck.APIServer).Content = binding * (1 - r.limited)
	if binding > 0 {
		at(bottleneck.Limiter).AtCapacity = 1
		at(bottleneck.APIServer).AtCapacity = partsOf(&r.w, bottleneck.APIServer)
		if r.limited < limiterShare {
			at(bottleneck.Limiter).AtCapacity = 0
		}
	}
}

// inbox adds pods that wait for the loop to take what it was given.
func (r *reader) inbox(out *bottleneck.Bucket, pods float64) {
	in, loop := &out.Stages[bottleneck.Inbox], &out.Stages[bottleneck.Loop]
	in.Content += pods
	in.AtCapacity, in.Blocked, in.Starved = loop.AtCapacity, loop.Blocked, loop.Starved
}

// mostWorkers is the largest number of binds in flight in a sample.
func (r *reader) mostWorkers() (most float64) {
	for i := range r.d.Samples {
		most = max(most, r.d.Samples[i].Values.Sum(goroutines, `operation="binding"`))
	}
	return max(most, 1)
}

// limiterShare is the share of a bind's time from which on the rate limiter counts as full.
const limiterShare = 0.5

// partsOf is the share of the time in a stage that its causes take.
func partsOf(w *bottleneck.Window, s bottleneck.Stage) (sum float64) {
	for _, p := range w.Evidence.Parts[s] {
		sum += p.Share
	}
	return min(sum, 1)
}

// flow sets which pods came and which were bound, and which are on their way to the scheduler.
func (r *reader) flow(i int, out *bottleneck.Bucket, c change) {
	a, b := &r.d.Samples[i-1], &r.d.Samples[i]
	creation, server := &out.Stages[bottleneck.Creation], &out.Stages[bottleneck.APIServer]
	server.Out = c.sum(attempts, `result="scheduled"`)
	creation.Out = c.sum(incoming, `event="PodAdd"`) + c.sum(incoming, `event="UnscheduledPodAdd"`)
	if !r.unboundKnown || a.Pods == nil || b.Pods == nil {
		return
	}
	if i > r.listed {
		creation.Out = float64(max(b.Pods.Created-a.Pods.Created, 0))
	}
	unbound := float64(max(b.Pods.Area-a.Pods.Area, 0)) / float64(b.At-a.At)
	// One pod may be between two gauges at any time.
	if late := unbound - known(out); late >= 1 && late > unbound*(1-bottleneck.MinExplained)/2 {
		// A busy loop takes nothing out of the inbox, where pods are in no gauge.
		busy := out.Stages[bottleneck.Loop].AtCapacity
		if r.stays != nil {
			busy = 0
		}
		out.Stages[bottleneck.Watch].Content = late * (1 - busy)
		if busy > 0 {
			r.inbox(out, late*busy)
			out.Stages[bottleneck.Inbox].AtCapacity, out.Stages[bottleneck.Inbox].Starved = 1, 0
			out.Stages[bottleneck.Inbox].Blocked = 0
		}
	}
	if r.stays == nil {
		r.onVictims(a, b, out)
	}
}

// onVictims moves pods with a nominated node from the other reasons to wait to the wait for victims.
func (r *reader) onVictims(a, b *samples.Sample, out *bottleneck.Bucket) {
	nominated := float64(a.Pods.Nominated+b.Pods.Nominated) / 2
	for _, reason := range []bottleneck.Reason{bottleneck.Gated, bottleneck.Unschedulable} {
		n := min(nominated, out.Held[reason])
		out.Held[reason] -= n
		out.Held[bottleneck.OnVictims] += n
		nominated -= n
	}
}

// listedAt is the first sample at which the watch has shown the pods that were there before: it begins with them, which
// takes a while, and they did not come meanwhile. It is the last sample if that is not known.
func (r *reader) listedAt() int {
	for i := range r.d.Samples {
		s := &r.d.Samples[i]
		if s.Pods != nil && float64(s.Pods.Unbound) >= mostListed*r.pendingAt(s) {
			return i
		}
	}
	return len(r.d.Samples) - 1
}

// mostListed is the share of the pods that the scheduler has from which on the watch has shown them: some are bound,
// and the scheduler has not seen it.
const mostListed = 0.9

// limits sets the limits. Where the scheduler does not report that on binds in flight, it is inferred: while binds
// wait, as many are in flight as may be.
func (r *reader) limits() {
	const defaultInFlight, defaultAhead = 100, 2048 // config.DefaultInFlightBinds, kube.DefaultDecidedAhead
	e := &r.w.Evidence
	e.DecidedAhead = bottleneck.Limit{Value: cmp.Or(r.limit(decidedAhead), defaultAhead), Default: defaultAhead}
	if n := r.limit(inFlight); n > 0 {
		e.InFlight = bottleneck.Limit{Value: n, Default: defaultInFlight}
		return
	}
	for i := range r.w.Buckets {
		if r.w.Buckets[i].Stages[bottleneck.BindQueue].Content < 1 {
			continue
		}
		b := &r.w.Buckets[i]
		calls := b.Stages[bottleneck.Limiter].Content + b.Stages[bottleneck.APIServer].Content
		e.InFlight = bottleneck.Limit{Value: max(e.InFlight.Value, calls), Default: defaultInFlight}
	}
}

// held sets what became of pods that were tried again.
func (r *reader) held(c change) {
	e := &r.w.Evidence
	if s := r.stays; s != nil {
		if all := s.retried + s.failed; all > 0 {
			share := s.retried / all
			e.Retried = &share
		}
		if s.rejected > 0 {
			e.Flushed = min(s.flushed/s.rejected, 1)
		}
		return
	}
	placed, failed := c.sum(attempts, `result="scheduled"`), c.sum(attempts, `result="unschedulable"`)
	if c.sum(incoming, `event="BackoffComplete"`) > 0 && placed+failed > 0 {
		share := placed / (placed + failed)
		e.Retried = &share
	}
	if flushed := c.sum("scheduler_pod_scheduled_after_flush_total"); flushed > 0 && placed > 0 {
		e.Flushed = min(flushed/placed, 1)
	}
}

// resolution is the error of gauges at intervals, in pod-seconds.
const resolution = 1.0

// little sets the second measurement of the waiting: the time without a node that the recorder's watch saw. It is not
// independent if many pods are on their way, because their number is computed from it. Then, or without the watch, the
// second measurement is that of the gauges, for the part that phases show too.
func (r *reader) little(first, last *samples.Sample) {
	late, all := 0.0, 0.0
	for i := range r.w.Buckets {
		b := &r.w.Buckets[i]
		all += known(b) * b.Took.Seconds()
		late += b.Stages[bottleneck.Watch].Content * b.Took.Seconds()
	}
	var waited time.Duration
	switch {
	case r.unboundKnown && r.listed < len(r.d.Samples)-1 && late <= (1-bottleneck.MinExplained)*all:
		waited = time.Duration(last.Pods.Area - r.d.Samples[r.listed].Pods.Area)
		for i := range r.listed {
			waited += time.Duration(known(&r.w.Buckets[i]) * float64(r.w.Buckets[i].Took))
		}
		// The recorder sees a pod come as late as it gets any answer, or as early as without a delay.
		mean, _ := r.probes()
		within := float64(last.Pods.Left-first.Pods.Left) * mean
		if r.stays == nil { // the first measurement was made at intervals
			_, sampled := r.gauges()
			within += sampled
		} else { // the scheduler reads answers late without CPU, when the recorder has seen the bind
			within += r.clientWaits()
		}
		r.w.Evidence.WaitedWithin = time.Duration(within * 1e9)
	case r.stays == nil:
		return
	default:
		sum, within := r.gauges()
		waited = time.Duration((all + sum - r.stays.counted()) * 1e9)
		r.w.Evidence.WaitedWithin = time.Duration(within * 1e9)
	}
	if waited.Seconds() < resolution {
		return
	}
	r.w.Evidence.Waited = &waited
}

// unobserved notes the causes that this source cannot show.
func (r *reader) unobserved() {
	u := r.w.Evidence.Unobserved
	if !r.unboundKnown {
		u[bottleneck.WatchDelivery] = cmp.Or(r.d.NoPods, "the pods without a node were not watched")
		u[bottleneck.Victims] = u[bottleneck.WatchDelivery]
	}
	if r.d.Before == nil || r.d.After == nil {
		for _, c := range []bottleneck.Cause{bottleneck.APF, bottleneck.APIServerCPU, bottleneck.Etcd,
			bottleneck.APILatency} {
			u[c] = cmp.Or(r.d.NoAPI, "the API server was not asked")
		}
	}
	if r.profile == nil || r.profile.CPU.Factor == nil {
		u[bottleneck.CPUStarvation] = "there is no execution trace with CPU samples"
		for _, c := range []bottleneck.Cause{bottleneck.Plugin, bottleneck.Hints, bottleneck.Preemption,
			bottleneck.GangSearch, bottleneck.Intake, bottleneck.SchedulerCPU} {
			u[c] = u[bottleneck.CPUStarvation]
		}
	}
	if !r.ours {
		for _, c := range []bottleneck.Cause{bottleneck.Intake, bottleneck.Observers, bottleneck.DecidedAheadLimit,
			bottleneck.InFlightLimit, bottleneck.SessionPeriod} {
			u[c] = "kube-scheduler does not have it, or does not show it"
		}
		u[bottleneck.Lock] = "the waits of the loop for its workers and for locks look alike"
		u[bottleneck.LostWakeUp] = "kube-scheduler does not show when its loop is idle"
	}
}
