// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm"
	"github.com/kumiki-scheduler/kumiki/apm/bottleneck"
)

// loopStates are the states of kumiki_loop_seconds_total in which the loop is busy.
var loopStates = []string{"cycle", "event", "observer", "other"}

// loops returns what the loop did between each two samples. A turn of the loop and a rest are counted when they end, so
// the samples in which nothing was counted belong to what is counted next.
func (r *reader) loops() []bottleneck.Load {
	out := make([]bottleneck.Load, len(r.d.Samples)-1)
	from := 0
	for i := range out {
		c := delta(r.d.Samples[from].Values, r.d.Samples[i+1].Values)
		took := float64(r.d.Samples[i+1].At-r.d.Samples[from].At) / 1e9
		l := r.loopLoad(c, took)
		if l == (bottleneck.Load{}) && i+1 < len(out) {
			continue
		}
		if l == (bottleneck.Load{}) && r.ours {
			l = r.turning(took, out[max(from-1, 0)])
		}
		for j := from; j <= i; j++ {
			out[j] = l
		}
		from = i + 1
	}
	return out
}

// longestRest is after what time a rest of kumiki's loop is counted at the latest, with a margin.
const longestRest = 1.2

// turning returns what the loop did in the seconds at the end in which nothing was counted, after it did something
// else: if they are longer than a rest can be, a turn lasts.
func (r *reader) turning(seconds float64, before bottleneck.Load) bottleneck.Load {
	if seconds > longestRest {
		return bottleneck.Load{AtCapacity: 1}
	}
	return before
}

// loopLoad returns what the loop did; nothing if nothing was counted.
func (r *reader) loopLoad(c change, took float64) (l bottleneck.Load) {
	if !r.ours {
		busy := c.sum(algorithm) + c.sum(pointSum, `extension_point="PostFilter"`) +
			c.sum(pointSum, `extension_point="Reserve"`) + c.sum(pointSum, `extension_point="Permit"`)
		l.AtCapacity = min(busy/took, 1)
		if last := &r.d.Samples[len(r.d.Samples)-1]; last.Values.Has(leads) && last.Values.Sum(leads) == 0 {
			l.AtCapacity, l.Blocked = 0, 1
			pause := bottleneck.Pause
			r.w.Evidence.Blocked = &pause
		}
		// Other work of the loop is not measured: it is not known to be idle.
		return l
	}
	state := func(name string) float64 { return c.sum(loopSeconds, `state="`+name+`"`) }
	busy := 0.0
	for _, name := range loopStates {
		busy += state(name)
	}
	blocked := state("limited") + state("held")
	all := busy + blocked + state("idle")
	if all < took/2 {
		return l // a turn or a rest has not ended
	}
	l.AtCapacity, l.Blocked, l.Starved = busy/all, blocked/all, state("idle")/all
	if state("held") > state("limited") {
		pause := bottleneck.Pause
		r.w.Evidence.Blocked = &pause
	}
	return l
}

// part adds a share of a stage's time if it is positive; the sum of a stage stays at most 1.
func (r *reader) part(s bottleneck.Stage, c bottleneck.Cause, share float64, format string, args ...any) {
	share = min(share, 1-partsOf(&r.w, s))
	if share > 0 && !math.IsNaN(share) {
		e := &r.w.Evidence
		e.Parts[s] = append(e.Parts[s], bottleneck.Part{Cause: c, Share: share, Evidence: fmt.Sprintf(format, args...)})
	}
}

// etcdWrite is how long a write to etcd may take: etcd's documentation expects its disk to need less than 10 ms.
const etcdWrite = 10 * time.Millisecond

// upstreamPoll is how long kube-scheduler waits before it looks whether the volumes of a pod are ready: its pods take
// as long where they are ready at once.
const upstreamPoll = time.Second

// bind divides the time of binds among the rate limiter, the API server and the way to it.
func (r *reader) bind(c change) {
	if sum := c.sum(requestSum); sum > 0 {
		r.limited = min(c.sum(limiterSum)/sum, 1)
	}
	if s := r.stays; s != nil && s.answers > 0 {
		r.limited = s.limited.Seconds() / (s.limited + s.sent).Seconds()
	}
	if !r.ours {
		bind, before := c.sum(pointSum, `extension_point="Bind"`), c.sum(pointSum, `extension_point="PreBind"`)+
			c.sum("scheduler_permit_wait_duration_seconds_sum")
		if bind+before > 0 {
			r.preparing = before / (bind + before)
		}
	}
	r.part(bottleneck.Preparing, bottleneck.Prepare, 1, "volumes and devices of pods were prepared")
	if mean, ok := c.mean(pointSum, pointCount, `extension_point="PreBind"`); !r.ours && ok && mean > 0 {
		e := &r.w.Evidence
		e.Parts[bottleneck.Preparing][0].Stays = min(upstreamPoll.Seconds()/mean, 1)
	}
	if r.d.Before == nil || r.d.After == nil {
		r.w.Evidence.Unmeasured[bottleneck.APIServer] = true
		return
	}
	r.apiServer(c, delta(r.d.Before, r.d.After))
}

// apiServer divides the time of a bind without the rate limiter.
func (r *reader) apiServer(c, api change) {
	total, ok := c.mean(pointSum, pointCount, `extension_point="Bind"`)
	binds := c.sum(pointCount, `extension_point="Bind"`)
	total *= 1 - r.limited
	if s := r.stays; s != nil && s.answers > 0 {
		total, binds, ok = s.sent.Seconds()/s.answers, s.answers, true
	}
	handler, counted := api.mean(handlerSum, handlerCount)
	if !ok || !counted || total <= 0 {
		return
	}
	handler = min(handler, total)
	fairness, rejected := r.fairness(api)
	fairness = min(fairness, handler) // the duration of a request contains its wait
	handler -= fairness
	mean, best := r.probes()
	slow := 0.0 // the share of the handler's time that a lack of CPU takes
	if mean > 0 {
		slow = max(1-best/mean, 0)
	}
	// The wait for etcd does not get longer by a factor, but by one wait for a CPU.
	etcd, _ := api.mean(etcdSum, etcdCount, `operation="update"`)
	late := min(max(etcd-(mean-best)-etcdWrite.Seconds(), 0), handler)
	outside := max(total-handler-fairness-2*best, 0)
	rejected = min(rejected, outside)
	outside -= rejected
	starved := min(r.clientWaits()/max(binds, 1), outside)
	collected := starved * r.collector()
	starved -= collected
	ms := func(seconds float64) float64 { return 1000 * seconds }
	r.part(bottleneck.APIServer, bottleneck.APF, (fairness+rejected)/total,
		"a request waited in queues for %.1f of %.1f ms, and for %.1f ms after it was rejected", ms(fairness),
		ms(total), ms(rejected))
	r.part(bottleneck.APIServer, bottleneck.APIServerCPU, (handler-late)*slow/total,
		"an empty request took %.1f ms on average and %.1f ms at best", ms(mean), ms(best))
	r.part(bottleneck.APIServer, bottleneck.Etcd, late/total, "a write took etcd %.1f ms", ms(etcd))
	r.part(bottleneck.APIServer, bottleneck.GC, collected/total,
		"answers waited in the scheduler for garbage collection")
	r.part(bottleneck.APIServer, bottleneck.CPUStarvation, starved/total,
		"answers waited in the scheduler for a CPU")
	r.part(bottleneck.APIServer, bottleneck.APILatency, (outside-starved-collected)/total,
		"a bind took %.1f ms, of which %.1f ms in the API server", ms(total), ms(handler+fairness))
}

// clientWaits is the time in seconds that goroutines which bind and send waited for a CPU; 0 if it is not known.
func (r *reader) clientWaits() (sum float64) {
	for _, name := range []apm.Lane{apm.Binding, apm.Client} {
		waited, _ := r.withoutCPU(name)
		sum += waited
	}
	return sum
}

// collector is the share of the execution outside of the loop that is garbage collection, with what other goroutines do
// of it.
func (r *reader) collector() float64 {
	gc := r.lane(apm.Collector)
	if gc == nil {
		return 0
	}
	others, collecting := r.profile.CPU.Executing, gc.Running
	for i := range r.profile.Lanes {
		l := &r.profile.Lanes[i]
		if l.Lane == apm.Loop {
			others -= l.Running + l.Syscall
		} else {
			collecting += l.Assist
		}
	}
	if others <= 0 {
		return 0
	}
	return min(float64(collecting)/float64(others), 1)
}

// withoutCPU is the time that goroutines of a lane were ready and had no CPU, and its share of the time in which they
// were ready.
func (r *reader) withoutCPU(name apm.Lane) (seconds, share float64) {
	l := r.lane(name)
	if l == nil {
		return 0, 0
	}
	executed := l.Running + l.Syscall
	waited := l.Runnable + time.Duration(float64(executed)*r.starved())
	if ready := l.Runnable + executed; ready > 0 {
		share = float64(waited) / float64(ready)
	}
	return waited.Seconds(), share
}

// retryAfter is how long a client waits at least after a request was rejected: the API server asks for a second.
const retryAfter = 1.0

// fairness returns the time in seconds that API Priority and Fairness takes of a request on average: the wait in its
// queues, and the waits of the client after it was rejected because the queue was full. Of the flow schemas that served
// as many requests as there were binds, it is the one that took the longest.
func (r *reader) fairness(api change) (queued, rejected float64) {
	schemas, least := map[string]bool{}, api.sum(handlerCount)*mostBinds // labels of a flow schema -> true
	for series := range api.to {
		if strings.HasPrefix(series, fairnessCount) {
			schemas[label(series, "priority_level")+","+label(series, "flow_schema")] = true
		}
	}
	for schema := range schemas { // order: a maximum
		level, flow, _ := strings.Cut(schema, ",")
		served := api.sum(fairnessCount, level, flow, `execute="true"`)
		if served == 0 || served < least {
			continue
		}
		q := api.sum(fairnessSum, level, flow, `execute="true"`) / served
		n := api.sum(fairnessCount, level, flow, `execute="false"`) / served * retryAfter
		if q+n > queued+rejected {
			queued, rejected = q, n
		}
	}
	return queued, rejected
}

// mostBinds is the share of the binds that a flow schema must have served to be that of the scheduler: its first and
// its last requests may be counted in another order.
const mostBinds = 0.9

// label returns a label of a series with its value, as in name="value"; empty if there is none.
func label(series, name string) string {
	i := strings.Index(series, name+`="`)
	if i < 0 {
		return ""
	}
	value := i + len(name) + len(`="`)
	end := strings.IndexByte(series[value:], '"')
	if end < 0 {
		return ""
	}
	return series[i : value+end+1]
}

// probes returns the mean and the best latency of empty requests in seconds; 0 without any.
func (r *reader) probes() (mean, best float64) {
	n := 0
	best = math.Inf(1)
	for i := range r.d.Samples {
		for _, p := range r.d.Samples[i].Probes {
			s := float64(p) / 1e9
			mean, best, n = mean+s, min(best, s), n+1
		}
	}
	if n == 0 {
		return 0, 0
	}
	return mean / float64(n), best
}

// starved is the share of time in which goroutines of the scheduler that executed had no CPU; 0 if it is not known.
func (r *reader) starved() float64 {
	if r.profile == nil || r.profile.CPU.Factor == nil {
		return 0
	}
	return min(max(1-*r.profile.CPU.Factor, 0), 1)
}

// watch divides the time of pods on their way to the scheduler: events are late by as much as an empty request, if the
// API server has too little CPU.
func (r *reader) watch() {
	late, created, during := 0.0, 0.0, 0.0
	for i := range r.w.Buckets {
		if r.w.Buckets[i].Stages[bottleneck.Watch].Content > 0 {
			during += r.w.Buckets[i].Took.Seconds()
		}
		late += r.w.Buckets[i].Stages[bottleneck.Watch].Content * r.w.Buckets[i].Took.Seconds()
		created += r.w.Buckets[i].Stages[bottleneck.Creation].Out
	}
	if late == 0 {
		return
	}
	mean, best := r.probes()
	slow := min(created*max(mean-best, 0)/late, 1)
	r.part(bottleneck.Watch, bottleneck.APIServerCPU, slow,
		"an empty request took %.1f ms on average and %.1f ms at best",
		1000*mean, 1000*best)
	waited, starved := r.withoutCPU(apm.Informers)
	starved = min(starved, waited/during, 1-slow)
	r.part(bottleneck.Watch, bottleneck.CPUStarvation, starved,
		"what reads the watches was ready for %.2f s and had no CPU", waited)
	r.part(bottleneck.Watch, bottleneck.WatchDelivery, 1-slow-starved,
		"pods were created, and the scheduler did not know them yet%s", r.watchLag())
}

// watchLag says how late the watch showed own binds; empty if that is not known.
func (r *reader) watchLag() string {
	if r.stays == nil || len(r.stays.lags) == 0 {
		return ""
	}
	sum := time.Duration(0)
	for _, lag := range r.stays.lags {
		sum += max(lag, 0)
	}
	return fmt.Sprintf("; the watch showed own binds %.1f ms after their answers",
		1000*sum.Seconds()/float64(len(r.stays.lags)))
}

// loop divides the time in which the loop was busy.
func (r *reader) loop(c change) {
	left, events := 1.0, 0.0
	if r.ours {
		state := func(name string) float64 { return c.sum(loopSeconds, `state="`+name+`"`) }
		if busy := state("cycle") + state("event") + state("observer") + state("other"); busy > 0 {
			observers := state("observer") / busy
			r.part(bottleneck.Loop, bottleneck.Observers, observers, "observers took %.0f %% of the loop's busy time",
				100*observers)
			left, events = left-observers, state("event")/busy
		}
	}
	r.work(max(left, 0), events)
}

// waits returns the share of the loop's busy time in which it waited for a CPU, and adds the causes if add is set.
func (r *reader) waits(add func(c bottleneck.Cause, share float64, evidence string)) (sum float64) {
	loop := r.lane(apm.Loop)
	if loop == nil {
		return 0
	}
	executing := float64(loop.Running + loop.Syscall)
	total := executing + float64(loop.Runnable)
	if total == 0 {
		return 0
	}
	collector := r.collector()
	assist := min(float64(loop.Assist)/total, executing/total)
	queued := float64(loop.Runnable) / total
	starved := (executing/total - assist) * r.starved()
	if add != nil {
		add(bottleneck.GC, assist+queued*collector, fmt.Sprintf("garbage collection used %.0f %% of the execution "+
			"outside of the loop, and the loop was ready and waited for %.0f %% of its time",
			100*collector, 100*queued))
		add(bottleneck.CPUStarvation, starved+queued*(1-collector), fmt.Sprintf("executing goroutines had a CPU for "+
			"%.0f %% of the time, and the loop was ready and waited for %.0f %%", 100*(1-r.starved()), 100*queued))
	}
	return min(assist+queued+starved, 1)
}

// work divides what is left of the loop's busy time. events is the share of the busy time in which it took changes.
func (r *reader) work(left, events float64) {
	loop := r.lane(apm.Loop)
	if loop == nil {
		r.w.Evidence.Unmeasured[bottleneck.Loop] = true
		return
	}
	if busy := float64(*r.profile.Traced) * r.busy(); busy > 0 {
		foreign := min(r.waitBelow(foreignCode)/busy, left)
		r.part(bottleneck.Loop, bottleneck.ForeignCode, foreign,
			"the loop waited %.2f s for extenders or hosted plugins", foreign*busy/1e9)
		left -= foreign
		// The loop of kumiki has no workers. Foreign code has locks of its own.
		if locks := float64(loop.Blocked[apm.Sync]); r.ours && foreign == 0 {
			share := min(locks/busy, left)
			r.part(bottleneck.Loop, bottleneck.Lock, share, "the loop waited %.2f s for locks", locks/1e9)
			left -= share
		}
	}
	left *= 1 - r.waits(func(c bottleneck.Cause, s float64, evidence string) {
		r.part(bottleneck.Loop, c, s*left, "%s", evidence)
	})
	r.computing(left, events)
}

const intakeText = "changes of the cluster took %.0f %% of the loop's busy time"

// computing divides the time in which the loop had a CPU, by its samples.
func (r *reader) computing(left, events float64) {
	cpu := 0.0
	for i := range r.profile.Lanes {
		if l := &r.profile.Lanes[i]; l.InLoop && l.CPU != nil {
			cpu += float64(*l.CPU)
		}
	}
	if cpu <= 0 { // hints are evaluated for changes, so without samples not even the time of changes has a cause
		r.w.Evidence.Unmeasured[bottleneck.Loop] = true
		return
	}
	known := 0.0
	add := func(c bottleneck.Cause, share float64, format string, args ...any) {
		share = min(share, 1-known)
		known += share
		r.part(bottleneck.Loop, c, left*share, format, args...)
	}
	preempting, searching := min(r.cpuBelow(preemption)/cpu, 1), r.cpuBelow(gangs)/cpu
	hints := r.cpuBelow(queueingHints) / cpu
	add(bottleneck.Preemption, preempting, "%.0f %% of the loop's CPU time is the search for victims", 100*preempting)
	add(bottleneck.GangSearch, searching, "%.0f %% of the loop's CPU time is the search for places of gangs",
		100*searching)
	add(bottleneck.Hints, hints, "%.0f %% of the loop's CPU time is queueing hints", 100*hints)
	outside, plugins := 1-known, 0.0 // hints, searches and trials call plugins too
	for _, p := range r.profile.Plugins {
		if p.InLoop && p.CPU != nil {
			s := float64(*p.CPU) / cpu * outside
			plugins += s
			add(bottleneck.Plugin, s, "%s used %.0f %% of the loop's CPU time", p.Name, 100*s)
		}
	}
	if left > 0 {
		// Hints are evaluated for changes. What plugins use beyond the time of cycles, they use for changes too.
		events = min(events/left, 1)
		add(bottleneck.Intake, max(events-hints-max(plugins-(1-events), 0), 0), intakeText, 100*events)
	}
}

// busy is the share of time in which the loop was at capacity.
func (r *reader) busy() float64 {
	sum, took := 0.0, r.w.Took().Seconds()
	for i := range r.w.Buckets {
		sum += r.w.Buckets[i].Stages[bottleneck.Loop].AtCapacity * r.w.Buckets[i].Took.Seconds()
	}
	return sum / max(took, math.SmallestNonzeroFloat64)
}

// lane returns a lane of the profile; nil if it is not known.
func (r *reader) lane(name apm.Lane) *apm.Row {
	if r.profile == nil || r.profile.Traced == nil {
		return nil
	}
	for i := range r.profile.Lanes {
		if r.profile.Lanes[i].Lane == name || r.profile.Lanes[i].Name == string(name) {
			return &r.profile.Lanes[i]
		}
	}
	return nil
}

// Functions by which kinds of work are recognised.
var (
	foreignCode = []string{kumikiPath + "host/extender.(*client).call",
		upstreamPath + "scheduler.(*HTTPExtender).send"}
	preemption    = []string{kumikiPath + "core/preempt", upstreamPath + "scheduler/framework/preemption."}
	gangs         = []string{kumikiPath + "core/gang."}
	queueingHints = []string{kumikiPath + "core/queue.(*Queue).judge",
		upstreamPath + "scheduler/backend/queue.(*PriorityQueue).isPodWorthRequeuing"}
)

const (
	kumikiPath   = "github.com/kumiki-scheduler/kumiki/"
	upstreamPath = "k8s.io/kubernetes/pkg/"
)

// waitBelow is the longest time in nanoseconds that goroutines in the loop waited below one of the functions.
func (r *reader) waitBelow(functions []string) (most float64) {
	r.each(functions, func(f *apm.Row) { most = max(most, float64(f.Wait()-f.Runnable)) })
	return most
}

// cpuBelow is the largest cumulative CPU time of one of the functions in the loop.
func (r *reader) cpuBelow(functions []string) (most float64) {
	r.each(functions, func(f *apm.Row) {
		if f.InLoop && f.CumulativeCPU != nil {
			most = max(most, float64(*f.CumulativeCPU))
		}
	})
	return most
}

func (r *reader) each(functions []string, do func(*apm.Row)) {
	for i := range r.profile.Functions {
		for _, prefix := range functions {
			if strings.HasPrefix(r.profile.Functions[i].Name, prefix) {
				do(&r.profile.Functions[i])
			}
		}
	}
}
