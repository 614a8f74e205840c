// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/kumiki-scheduler/kumiki/bench/ops"
	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

// calmAfter is the time without events before a measurement begins, unless there is an event for each pod.
const calmAfter = time.Second

// settledAfter is how long the number of events must not change if a scheduler does not write one for each pod.
const settledAfter = 3 * time.Second

// settleMost is the maximum wait for events in a workload that continuously causes events.
const settleMost = 15 * time.Second

// gauge measures a scheduler and the machine while a workload collects metrics.
type gauge struct {
	client  *kubernetes.Clientset
	watch   *ops.Watch
	s       *testbed.Scheduler // nil without a scheduler
	servers []int              // processes of API server and etcd
	metrics []workload.Metric
	spans   []span
	calls   report.Calls
	seen    scraped

	mu      sync.Mutex
	samples []sample
}

// span is one collection of metrics.
type span struct {
	ops.Collection
	from, to time.Time // to is zero while it lasts
	settled  time.Time // when the last event could be read; to, where they never stood still
	events   int64
	used     testbed.Usage
	// Values at the beginning.
	usageThen  testbed.Usage
	callsThen  report.Calls
	seenThen   scraped
	eventsThen int64
}

// sample is the state of the scheduler's process at one time.
type sample struct {
	at  time.Time
	rss int64
	cpu float64 // seconds so far
}

func (g *gauge) pid() int {
	if g.s == nil {
		return 0
	}
	return g.s.Cmd.Process.Pid
}

// begin is the hook for the start of a collection.
func (g *gauge) begin(ctx context.Context, c ops.Collection) (func(context.Context) error, error) {
	s := span{Collection: c}
	var err error
	if s.seenThen, err = scrape(ctx, g.s, g.metrics); err != nil {
		return nil, err
	}
	if s.eventsThen, err = g.calm(ctx); err != nil {
		return nil, err
	}
	if s.callsThen, err = testbed.ReadCalls(ctx, g.client); err != nil {
		return nil, err
	}
	if s.usageThen, err = testbed.ReadUsage(g.pid(), g.servers); err != nil {
		return nil, err
	}
	s.from = time.Now()
	g.spans = append(g.spans, s)
	return g.end, nil
}

// calm waits until the earlier events can be read, and returns their number, because they do not belong to this span.
// If pods are created continuously that never happens, and calm does not wait long.
func (g *gauge) calm(ctx context.Context) (int64, error) {
	began, events, changed := time.Now(), int64(-1), time.Now()
	for {
		n, err := testbed.CountEvents(ctx, g.client)
		if err != nil {
			return 0, err
		}
		if n != events {
			events, changed = n, time.Now()
		}
		bound, refused := int64(0), false
		for _, p := range g.watch.Pods(nil, nil) {
			if !p.Bound.IsZero() {
				bound++
			}
			refused = refused || wasRefused(&p)
		}
		if g.s == nil || events >= bound && !refused || time.Since(changed) > calmAfter || time.Since(began) > settledAfter {
			return events, nil
		}
		if err := testbed.Pause(ctx, calmAfter/20); err != nil {
			return 0, err
		}
	}
}

// wasRefused reports whether a pod has other events than that of its bind.
func wasRefused(p *ops.Pod) bool {
	return !p.Attempted.IsZero() && (p.Bound.IsZero() || p.Attempted.Before(p.Bound))
}

// end waits until the events can be read, and reads the usage until then.
func (g *gauge) end(ctx context.Context) error {
	s := &g.spans[len(g.spans)-1]
	s.to = time.Now()
	atEnd, err := testbed.ReadUsage(g.pid(), g.servers)
	if err != nil {
		return err
	}
	calls, err := testbed.ReadCalls(ctx, g.client)
	if err != nil {
		return err
	}
	stood, err := g.settle(ctx, s)
	switch {
	case err != nil:
		return err
	case !stood: // something else goes on making events, and what it cost was not for the pods that are measured
		s.settled, s.used = s.to, atEnd.Since(s.usageThen)
	default:
		if calls, err = testbed.ReadCalls(ctx, g.client); err != nil {
			return err
		}
	}
	if g.calls == nil {
		g.calls = report.Calls{}
	}
	for what, n := range calls.Since(s.callsThen) { // order: sums
		g.calls[what] += n
	}
	seen, err := scrape(ctx, g.s, g.metrics)
	if err != nil {
		return err
	}
	if g.seen == nil {
		g.seen = scraped{}
	}
	g.seen.add(s.seenThen, seen)
	return nil
}

// settle returns when there is an event for each pod that was bound, or when the number of events no longer changes.
// If pods were refused, the final number of events is unknown, and settle waits longer. The usage of the machine is
// read when the number last changed, so that the wait itself is not counted. stood is false if the number never
// stopped changing, because other pods are created and refused beside the measured ones; most of the machine was idle
// in that time.
func (g *gauge) settle(ctx context.Context, s *span) (stood bool, err error) {
	bound, refused := int64(0), false
	for _, p := range g.watch.Pods(nil, nil) {
		if within(p.Bound, s.from, s.to) {
			bound++
		}
		refused = refused || wasRefused(&p) && within(p.Attempted, s.from, s.to)
	}
	s.events = -1
	for {
		n, err := testbed.CountEvents(ctx, g.client)
		if err != nil {
			return false, err
		}
		if n -= s.eventsThen; n != s.events {
			now, err := testbed.ReadUsage(g.pid(), g.servers)
			if err != nil {
				return false, err
			}
			s.events, s.settled, s.used = n, time.Now(), now.Since(s.usageThen)
		}
		if g.s == nil || s.events >= bound && !refused || time.Since(s.settled) > settledAfter {
			return true, nil
		}
		if time.Since(s.to) > settleMost {
			return false, nil
		}
		if err := testbed.Pause(ctx, 50*time.Millisecond); err != nil {
			return false, err
		}
	}
}

// follow samples the scheduler's process each second until ctx ends.
func (g *gauge) follow(ctx context.Context) {
	if g.s == nil {
		return
	}
	for testbed.Pause(ctx, time.Second) == nil {
		rss, _, memoryErr := testbed.Memory(g.pid())
		cpu, cpuErr := testbed.CPU(g.pid())
		if memoryErr != nil || cpuErr != nil {
			return // it ended, which others tell
		}
		g.mu.Lock()
		g.samples = append(g.samples, sample{time.Now(), rss, cpu})
		g.mu.Unlock()
	}
}

func within(t, from, to time.Time) bool { return !t.IsZero() && !t.Before(from) && !t.After(to) }

// fill copies the measured values into a trial.
func (g *gauge) fill(t *report.Trial, p *workload.Plan) error {
	for i := range g.spans { // one that an error cut short ends now
		if s := &g.spans[i]; s.to.IsZero() {
			s.to = time.Now()
			s.settled = s.to
			now, err := testbed.ReadUsage(g.pid(), g.servers)
			if err != nil {
				return nil // it ended; the trial says so
			}
			s.used = now.Since(s.usageThen)
		}
	}
	var took, samples []float64
	var used testbed.Usage
	gangs := map[string]*gang{} // namespace/name of a pod group -> its times
	for i := range g.spans {
		s := &g.spans[i]
		pods := g.watch.Pods(s.Namespaces, s.Labels)
		v := viewOf(s, pods, p, gangs)
		t.Pods += v.pods
		t.Bound += v.bound
		t.BindSeconds += report.Seconds(v.last.Sub(v.first).Seconds())
		t.SettleSeconds += report.Seconds(math.Max(v.last.Sub(v.first).Seconds(), s.settled.Sub(v.first).Seconds()))
		t.Events += max(0, s.events)
		took, samples = append(took, v.took...), append(samples, report.Throughput(v.boundBy)...)
		used = used.Plus(s.used)
	}
	t.Latency = report.LatencyOf(took)
	done := t.Bound
	if g.s == nil {
		done, t.Latency = t.Pods, report.LatencyOf(nil)
	}
	if t.BindSeconds > 0 {
		t.PodsPerSecond = float64(done) / float64(t.BindSeconds)
	}
	t.Spectrum = report.SpectrumOf(took)
	t.Items = g.items(p.Name, samples, t.PodsPerSecond)
	t.Attempts = g.seen.attempts()
	if len(gangs) > 0 {
		l := gangLatency(gangs)
		t.Gangs = &l
	}
	t.SchedulerCPU, t.ServersCPU, t.BenchCPU = used.Scheduler, used.Servers, used.Self
	if used.Busy+used.Idle > 0 {
		t.Idle, t.Others = used.IdleShare(), used.OthersShare()
	}
	t.Calls = g.calls
	if len(g.spans) > 0 {
		t.Timeline = g.timeline(g.spans[0].from, g.spans[len(g.spans)-1], p)
	}
	if g.s == nil {
		return nil
	}
	var err error
	t.SteadyRSS, t.PeakRSS, err = testbed.Memory(g.pid())
	return err
}

// items returns the figures that scheduler_perf reports (util.go, executor.go), except the heap of its own process,
// which contains API server, scheduler and test. The name consists of the workload and the collection. A run in which
// pods were bound in less than two different seconds has no samples of throughput; its only figure is that of the
// whole run, where scheduler_perf has none.
func (g *gauge) items(workloadName string, samples []float64, perSecond float64) []report.DataItem {
	if len(samples) == 0 && perSecond > 0 && g.s != nil {
		samples = []float64{perSecond}
	}
	duration := 0.0
	var collected []string
	for i := range g.spans {
		duration += g.spans[i].to.Sub(g.spans[i].from).Seconds()
		collected = append(collected, g.spans[i].Name)
	}
	var out []report.DataItem
	if len(samples) > 0 {
		out = append(out, report.DataItem{Data: report.Buckets(samples), Unit: "pods/s", Labels: map[string]string{"Metric": workload.Throughput}})
	}
	out = append(out, g.seen.items(g.metrics)...)
	if len(g.spans) > 0 {
		out = append(out, report.DataItem{Data: map[string]float64{"Duration": duration}, Unit: "s", Labels: map[string]string{"Metric": "SchedulingDuration"}})
	}
	for i := range out {
		out[i].Labels["Name"] = workloadName + "/" + strings.Join(collected, "+")
	}
	return out
}

// gang is a measured pod group.
type gang struct{ first, last time.Time } // last is zero when one of its pods is not bound

func gangLatency(gangs map[string]*gang) report.Latency {
	var took []float64
	for _, name := range slices.Sorted(maps.Keys(gangs)) {
		if g := gangs[name]; g.last.IsZero() {
			took = append(took, math.Inf(1))
		} else {
			took = append(took, g.last.Sub(g.first).Seconds())
		}
	}
	return report.LatencyOf(took)
}

// view has the figures of the pods of a span.
type view struct {
	pods, bound int
	first, last time.Time
	took        []float64
	boundBy     []int // by the end of each second
}

// measured reports whether a pod's latency counts: the workload created it in the span, and it was not deleted before
// it was bound. Pods of a steady state that are pending at its end do not count, because they did not get their full
// time.
func measured(p *ops.Pod, s *span, plan *workload.Plan) bool {
	if p.Op < 0 || !within(p.Asked, s.from, s.to) || p.Bound.IsZero() && !p.Gone.IsZero() {
		return false
	}
	create, _ := plan.Ops[p.Op].(*workload.CreatePods)
	return create == nil || create.Steady == 0 || within(p.Bound, s.from, s.to)
}

func viewOf(s *span, pods []ops.Pod, plan *workload.Plan, gangs map[string]*gang) view {
	v := view{}
	seconds := int(s.to.Sub(s.from)/time.Second) + 1
	boundIn := make([]int, seconds)
	for i := range pods {
		p := &pods[i]
		if measured(p, s, plan) {
			v.pods++
			v.took = append(v.took, p.Latency())
			if v.first.IsZero() || p.Asked.Before(v.first) {
				v.first = p.Asked
			}
			if p.Asked.After(v.last) && p.Bound.IsZero() {
				v.last = p.Asked
			}
			if p.Group != "" {
				gangs[p.Group] = gangs[p.Group].with(p)
			}
		}
		if within(p.Bound, s.from, s.to) {
			v.bound++
			boundIn[int(p.Bound.Sub(s.from)/time.Second)]++
			if p.Bound.After(v.last) {
				v.last = p.Bound
			}
		}
	}
	if v.first.IsZero() { // pods that were there before and may be scheduled now
		v.first = s.from
		v.pods = v.bound
	}
	if v.last.IsZero() {
		v.last = v.first
	}
	sum := 0
	for _, n := range boundIn[:seconds-1] { // the last second is not a whole one
		sum += n
		v.boundBy = append(v.boundBy, sum)
	}
	return v
}

// with adds a pod to a gang; nil is a gang without pods.
func (g *gang) with(p *ops.Pod) *gang {
	if g == nil {
		return &gang{first: p.Asked, last: p.Bound}
	}
	if p.Asked.Before(g.first) {
		g.first = p.Asked
	}
	if p.Bound.IsZero() {
		g.last = time.Time{}
	} else if !g.last.IsZero() && p.Bound.After(g.last) {
		g.last = p.Bound
	}
	return g
}

// timeline divides the time from the first span to the end of the last into seconds.
func (g *gauge) timeline(from time.Time, last span, plan *workload.Plan) []report.Moment {
	out := make([]report.Moment, int(last.to.Sub(from)/time.Second)+1)
	slowest := make([]float64, len(out))
	for i := range out {
		out[i].At, slowest[i] = i+1, math.NaN()
	}
	at := func(t time.Time) int { return int(t.Sub(from) / time.Second) }
	for i := range g.spans {
		s := &g.spans[i]
		pods := g.watch.Pods(s.Namespaces, s.Labels)
		for k := range pods {
			p := &pods[k]
			if measured(p, s, plan) {
				m := at(p.Asked)
				out[m].Asked++
				if l := p.Latency(); !(slowest[m] >= l) {
					slowest[m] = l
				}
			}
			if within(p.Bound, s.from, s.to) {
				out[at(p.Bound)].Bound++
			}
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, s := range g.samples {
		if within(s.at, from, last.to) {
			m := &out[at(s.at)]
			m.RSS = s.rss
			if i > 0 {
				m.CPU = (s.cpu - g.samples[i-1].cpu) / s.at.Sub(g.samples[i-1].at).Seconds()
			}
		}
	}
	for i := range out {
		out[i].Slowest = report.Seconds(slowest[i])
	}
	return out
}
