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
		for j := from; j <= i; j++ {
			out[j] = l
		}
		from = i + 1
	}
	return out
}

// loopLoad returns what the loop did; nothing if nothing was counted.
func (r *reader) loopLoad(c change, took float64) (l bottleneck.Load) {
	if !r.ours {
		busy := c.sum(algorithm) + c.sum(pointSum, `extension_point="PostFilter"`) +
			c.sum(pointSum, `extension_point="Reserve"`) + c.sum(pointSum, `extension_point="Permit"`)
		l.AtCapacity = min(busy/took, 1)
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

// bind divides the time of binds among the rate limiter, the API server and the way to it.
func (r *reader) bind(c change) {
	if sum := c.sum(requestSum); sum > 0 {
		r.limited = min(c.sum(limiterSum)/sum, 1)
	}
	if !r.ours {
		bind, before := c.sum(pointSum, `extension_point="Bind"`), c.sum(pointSum, `extension_point="PreBind"`)+
			c.sum("scheduler_permit_wait_duration_seconds_sum")
		if bind+before > 0 {
			r.preparing = before / (bind + before)
		}
	}
	r.part(bottleneck.Preparing, bottleneck.Prepare, 1, "volumes and devices of pods were prepared")
	if r.d.Before == nil || r.d.After == nil {
		r.w.Evidence.Unmeasured[bottleneck.APIServer] = true
		return
	}
	r.apiServer(c, delta(r.d.Before, r.d.After))
}

// apiServer divides the time of a bind without the rate limiter.
func (r *reader) apiServer(c, api change) {
	total, ok := c.mean(pointSum, pointCount, `extension_point="Bind"`)
	total *= 1 - r.limited
	handler, counted := api.mean(handlerSum, handlerCount)
	if !ok || !counted || total <= 0 {
		return
	}
	handler = min(handler, total)
	fairness := min(r.fairness(api), handler) // the duration of a request contains its wait
	handler -= fairness
	mean, best := r.probes()
	slow := 0.0 // the share of the handler's time that a lack of CPU takes
	if mean > 0 {
		slow = max(1-best/mean, 0)
	}
	etcd, _ := api.mean(etcdSum, etcdCount, `operation="update"`)
	late := min(max(etcd*(1-slow)-etcdWrite.Seconds(), 0), handler*(1-slow))
	outside := max(total-handler-fairness-2*best, 0)
	binds := c.sum(pointCount, `extension_point="Bind"`)
	starved := min(r.clientWaits()/binds, outside)
	ms := func(seconds float64) float64 { return 1000 * seconds }
	r.part(bottleneck.APIServer, bottleneck.APF, fairness/total, "a request waited in queues for %.1f of %.1f ms",
		ms(fairness), ms(total))
	r.part(bottleneck.APIServer, bottleneck.APIServerCPU, handler*slow/total,
		"an empty request took %.1f ms on average and %.1f ms at best", ms(mean), ms(best))
	r.part(bottleneck.APIServer, bottleneck.Etcd, late/total, "a write took etcd %.1f ms", ms(etcd))
	r.part(bottleneck.APIServer, bottleneck.CPUStarvation, starved/total,
		"answers waited in the scheduler for a CPU")
	r.part(bottleneck.APIServer, bottleneck.APILatency, (outside-starved)/total,
		"a bind took %.1f ms, of which %.1f ms in the API server", ms(total), ms(handler+fairness))
}

// clientWaits is the time in seconds that goroutines which bind and send waited for a CPU; 0 if it is not known.
func (r *reader) clientWaits() (sum float64) {
	for _, name := range []apm.Lane{apm.Binding, apm.Client} {
		if l := r.lane(name); l != nil {
			sum += (l.Runnable + time.Duration(float64(l.Running+l.Syscall)*r.starved())).Seconds()
		}
	}
	return sum
}

// fairness is the mean wait in the queues of the priority level on which requests waited the longest.
func (r *reader) fairness(api change) (most float64) {
	levels := map[string]bool{} // label of a level -> true
	for series := range api.to {
		if i := strings.Index(series, `priority_level="`); i >= 0 && strings.HasPrefix(series, fairnessSum) {
			rest := series[i+len(`priority_level="`):]
			if end := strings.IndexByte(rest, '"'); end >= 0 {
				levels[`priority_level="`+rest[:end]+`"`] = true
			}
		}
	}
	for level := range levels { // order: a maximum
		if mean, ok := api.mean(fairnessSum, fairnessCount, level, `execute="true"`); ok {
			most = max(most, mean)
		}
	}
	return most
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
func (r *reader) watch(c change) {
	late, created := 0.0, 0.0
	for i := range r.w.Buckets {
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
	r.part(bottleneck.Watch, bottleneck.WatchDelivery, 1-slow,
		"pods were created, and the scheduler's metrics did not contain them yet")
}

// loop divides the time in which the loop was busy.
func (r *reader) loop(c change) {
	left := 1.0
	if r.ours {
		state := func(name string) float64 { return c.sum(loopSeconds, `state="`+name+`"`) }
		if busy := state("cycle") + state("event") + state("observer") + state("other"); busy > 0 {
			observers := state("observer") / busy
			r.part(bottleneck.Loop, bottleneck.Observers, observers, "observers took %.0f %% of the loop's busy time",
				100*observers)
			left -= observers
			if left > 0 {
				defer func(share float64) {
					r.part(bottleneck.Loop, bottleneck.Intake, share,
						"changes of the cluster took %.0f %% of the loop's busy time", 100*share)
				}(state("event") / busy * (1 - r.waits(nil)))
			}
			left -= state("event") / busy
		}
	}
	r.work(max(left, 0))
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
	collector := 0.0 // the share of the other goroutines' execution that is garbage collection
	if gc := r.lane(apm.Collector); gc != nil {
		others := float64(r.profile.CPU.Executing) - executing
		if others > 0 {
			collector = min(float64(gc.Running)/others, 1)
		}
	}
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

// work divides the time of cycles, which is this share of the busy time.
func (r *reader) work(share float64) {
	loop := r.lane(apm.Loop)
	if loop == nil {
		return
	}
	window := float64(*r.profile.Traced)
	cycles := share * window * r.busy()
	if cycles > 0 {
		if foreign := r.waitBelow(foreignCode); foreign > 0 {
			f := min(foreign/cycles, 1) * share
			r.part(bottleneck.Loop, bottleneck.ForeignCode, f, "the loop waited %.2f s for extenders or hosted plugins",
				foreign/1e9)
			share -= f
		}
	}
	waits := r.waits(func(c bottleneck.Cause, s float64, evidence string) {
		r.part(bottleneck.Loop, c, s*share, "%s", evidence)
	})
	share *= 1 - waits
	cpu := 0.0
	for i := range r.profile.Lanes {
		if l := &r.profile.Lanes[i]; l.InLoop && l.CPU != nil {
			cpu += float64(*l.CPU)
		}
	}
	if cpu <= 0 {
		return
	}
	preempting, searching := r.cpuBelow(preemption)/cpu, r.cpuBelow(gangs)/cpu
	r.part(bottleneck.Loop, bottleneck.Preemption, share*min(preempting, 1), "%.0f %% of the loop's CPU time is the "+
		"search for victims", 100*min(preempting, 1))
	r.part(bottleneck.Loop, bottleneck.GangSearch, share*min(searching, 1-min(preempting, 1)), "%.0f %% of the "+
		"loop's CPU time is the search for places of gangs", 100*searching)
	hints := min(r.cpuBelow(queueingHints)/cpu, 1)
	r.part(bottleneck.Loop, bottleneck.Hints, share*hints, "%.0f %% of the loop's CPU time is queueing hints",
		100*hints)
	for _, p := range r.profile.Plugins {
		if p.InLoop && p.CPU != nil {
			s := float64(*p.CPU) / cpu * (1 - min(preempting+searching+hints, 1))
			r.part(bottleneck.Loop, bottleneck.Plugin, share*s, "%s used %.0f %% of the loop's CPU time", p.Name, 100*s)
		}
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
	queueingHints = []string{kumikiPath + "core/queue.(*Queue).hint",
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
