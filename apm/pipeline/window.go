// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm"
	"github.com/kumiki-scheduler/kumiki/apm/bottleneck"
	"github.com/kumiki-scheduler/kumiki/apm/bundle"
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
	return bottleneck.Find(Window(d, profile)), nil
}

// The names of metrics.
const (
	loopSeconds   = "kumiki_loop_seconds_total"
	pending       = "scheduler_pending_pods"
	assumed       = "scheduler_cache_size"
	goroutines    = "scheduler_goroutines"
	attempts      = "scheduler_schedule_attempts_total"
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
	workers            float64 // the most binds in flight in a sample
}

// Window computes the input of the finder from samples and, if it is not nil, from the profile of the same time.
func Window(d *samples.Document, profile *apm.Profile) bottleneck.Window {
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
	r.bind(delta(first.Values, last.Values))
	r.workers = r.mostWorkers()
	loops := r.loops()
	for i := 1; i < len(d.Samples); i++ {
		r.w.Buckets = append(r.w.Buckets, r.bucket(&d.Samples[i-1], &d.Samples[i], loops[i-1]))
	}
	r.watch(delta(first.Values, last.Values))
	r.limits()
	r.loop(delta(first.Values, last.Values))
	r.held(delta(first.Values, last.Values))
	r.little(first, last)
	r.unobserved()
	return r.w
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

// bucket computes the time between two samples.
func (r *reader) bucket(a, b *samples.Sample, loop bottleneck.Load) bottleneck.Bucket {
	out := bottleneck.Bucket{Took: time.Duration(b.At - a.At)}
	c := delta(a.Values, b.Values)
	queue := func(name string) float64 { return between(a, b, pending, `queue="`+name+`"`) }
	at := func(s bottleneck.Stage) *bottleneck.Load { return &out.Stages[s] }

	out.Stages[bottleneck.Loop] = loop
	at(bottleneck.Loop).Content = queue("active")
	out.Held[bottleneck.Gated] = queue("gated") + queue("incomplete")
	out.Held[bottleneck.BackingOff] = queue("backoff")
	out.Held[bottleneck.Unschedulable] = queue("unschedulable") + queue("pending")
	at(bottleneck.Loop).Out = c.sum(attempts)

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
			r.inbox(&out, waiting)
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
	r.flow(a, b, &out, c)
	return out
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
func (r *reader) flow(a, b *samples.Sample, out *bottleneck.Bucket, c change) {
	creation, server := &out.Stages[bottleneck.Creation], &out.Stages[bottleneck.APIServer]
	server.Out = c.sum(attempts, `result="scheduled"`)
	creation.Out = c.sum(incoming, `event="PodAdd"`) + c.sum(incoming, `event="UnscheduledPodAdd"`)
	if !r.unboundKnown || a.Pods == nil || b.Pods == nil {
		return
	}
	creation.Out = float64(max(b.Pods.Created-a.Pods.Created, 0))
	unbound := float64(max(b.Pods.Area-a.Pods.Area, 0)) / float64(b.At-a.At)
	known := 0.0
	for s := range out.Stages {
		known += out.Stages[s].Content
	}
	for _, held := range out.Held {
		known += held
	}
	// One pod may be between two gauges at any time.
	if late := unbound - known; late >= 1 && late > unbound*(1-bottleneck.MinExplained)/2 {
		// A busy loop takes nothing out of the inbox, where pods are in no gauge.
		busy := out.Stages[bottleneck.Loop].AtCapacity
		out.Stages[bottleneck.Watch].Content = late * (1 - busy)
		if busy > 0 {
			r.inbox(out, late*busy)
			out.Stages[bottleneck.Inbox].AtCapacity, out.Stages[bottleneck.Inbox].Starved = 1, 0
			out.Stages[bottleneck.Inbox].Blocked = 0
		}
	}
	r.onVictims(a, b, out)
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

// limits sets the limit on binds in flight. It is inferred: while binds wait, as many are in flight as may be.
func (r *reader) limits() {
	const defaultInFlight = 100 // config.DefaultInFlightBinds
	for i := range r.w.Buckets {
		if r.w.Buckets[i].Stages[bottleneck.BindQueue].Content < 1 {
			continue
		}
		b := &r.w.Buckets[i]
		inFlight := b.Stages[bottleneck.Limiter].Content + b.Stages[bottleneck.APIServer].Content
		r.w.Evidence.InFlight = bottleneck.Limit{Value: max(r.w.Evidence.InFlight.Value, inFlight),
			Default: defaultInFlight}
	}
	r.w.Evidence.DecidedAhead = bottleneck.Limit{Value: 2048, Default: 2048} // kube.DefaultDecidedAhead
}

// held sets what became of pods that were tried again.
func (r *reader) held(c change) {
	e := &r.w.Evidence
	placed, failed := c.sum(attempts, `result="scheduled"`), c.sum(attempts, `result="unschedulable"`)
	if c.sum(incoming, `event="BackoffComplete"`) > 0 && placed+failed > 0 {
		share := placed / (placed + failed)
		e.Retried = &share
	}
	if flushed := c.sum("scheduler_pod_scheduled_after_flush_total"); flushed > 0 && placed > 0 {
		e.Flushed = min(flushed/placed, 1)
	}
}

// little sets the second measurement of the waiting: the time without a node that the recorder's watch saw. It is not
// independent if pods are on their way, because their number is computed from it.
func (r *reader) little(first, last *samples.Sample) {
	if !r.unboundKnown {
		return
	}
	for i := range r.w.Buckets {
		if r.w.Buckets[i].Stages[bottleneck.Watch].Content > 0 {
			return
		}
	}
	waited := time.Duration(last.Pods.Area - first.Pods.Area)
	if waited < time.Second {
		return // the error of sampled gauges is larger
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
	}
	if !r.ours {
		for _, c := range []bottleneck.Cause{bottleneck.Intake, bottleneck.Observers, bottleneck.DecidedAheadLimit,
			bottleneck.InFlightLimit, bottleneck.SessionPeriod, bottleneck.Pause} {
			u[c] = "kube-scheduler does not have it, or does not show it"
		}
		return
	}
	u[bottleneck.SessionPeriod] = "metrics do not show sessions"
}
