// SPDX-License-Identifier: Apache-2.0

package bottleneck

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

const (
	// MinExplained is the share of the pod-seconds from which on a bottleneck is named.
	MinExplained = 0.8
	// LittleTolerance is the relative difference up to which Little's law holds.
	LittleTolerance = 0.05
	// minNext is the share of the pod-seconds from which on a cause is named as the next bottleneck.
	minNext = 0.02
	// minPodSeconds is the least waiting from which a conclusion is drawn.
	minPodSeconds = 0.01
)

// delays reports whether a stage delays pods without a queue of its own: all pods in it are served at the same time.
func (s Stage) delays() bool {
	switch s {
	case Watch, Preparing, APIServer, Answer, Confirmation:
		return true
	}
	return false
}

// finder collects pod-seconds by cause.
type finder struct {
	w        *Window
	total    float64
	flowing  float64 // of total, in stages
	queued   float64 // of flowing, before and in the loop while it was busy
	service  float64
	seconds  [Causes]float64
	at       [Causes]Stage   // where most of the pod-seconds of a cause are
	most     [Causes]float64 // how many these are
	evidence [Causes][]string
}

// Find names the bottleneck of a window.
func Find(w Window) Verdict {
	f := &finder{w: &w}
	v := Verdict{Seconds: w.Took().Seconds(), Findings: []Finding{}, Source: w.Evidence.Source}
	for c, why := range w.Evidence.Unobserved { // order: into a map
		if v.Unobserved == nil {
			v.Unobserved = map[string]string{}
		}
		v.Unobserved[c.String()] = why
	}
	if err := w.check(); err != nil {
		v.NotKnown = "the data contradicts itself: " + err.Error()
		return v
	}
	for i := range w.Buckets {
		f.bucket(&w.Buckets[i])
	}
	f.rates(&v)
	v.PodSeconds, v.Service = f.total, f.service
	explained := f.service
	for c, s := range f.seconds {
		if s > 0 {
			explained += s
			v.Findings = append(v.Findings, f.finding(Cause(c), &v))
		}
	}
	sort.SliceStable(v.Findings, func(i, j int) bool { return v.Findings[i].PodSeconds > v.Findings[j].PodSeconds })
	if f.total > 0 {
		v.Explained = min(explained/f.total, 1)
	}
	v.NotKnown = f.notKnown(&v)
	v.Known = v.NotKnown == ""
	if v.Known {
		f.conclude(&v)
	}
	return v
}

// notKnown returns why no bottleneck can be named; empty if one can.
func (f *finder) notKnown(v *Verdict) string {
	if waited := f.w.Evidence.Waited; waited != nil && f.total > 0 {
		both := max(f.total, waited.Seconds())
		off := math.Abs(waited.Seconds()-f.total) / both
		v.Little = &off
		if off-f.w.Evidence.WaitedWithin.Seconds()/both > LittleTolerance {
			return fmt.Sprintf("two measurements of the waiting differ by %.0f %% (Little's law allows %.0f %%): "+
				"%.1f and %.1f pod-seconds", 100*off, 100*LittleTolerance, f.total, waited.Seconds())
		}
	}
	switch {
	case f.total < minPodSeconds && v.Arrived == 0:
		return "no pod waited or arrived while it was observed"
	case f.total >= minPodSeconds && v.Explained < MinExplained:
		return fmt.Sprintf("causes explain %.0f %% of the waiting, and less than %.0f %% is too little",
			100*v.Explained, 100*MinExplained)
	case len(v.Findings) > 1 && !f.mostlyService(v) && v.Findings[0].PodSeconds < minLead*v.Findings[1].PodSeconds:
		return fmt.Sprintf("%s and %s take about the same: %.0f %% and %.0f %% of the waiting", v.Findings[0].Cause,
			v.Findings[1].Cause, 100*v.Findings[0].Share, 100*v.Findings[1].Share)
	}
	return ""
}

// minLead is by which factor the first cause must take more than the second one: shares are known from samples.
const minLead = 1.1

// mostlyService reports whether pods take their service time and little else.
func (f *finder) mostlyService(v *Verdict) bool {
	if len(v.Findings) == 0 {
		return true
	}
	if f.drains(v) {
		return false
	}
	lead := float64(dominance)
	if f.waitsForOthers(v.Findings[0].Cause) {
		lead = minLead
	}
	return lead*f.service > v.Findings[0].PodSeconds
}

// dominance is by which factor a cause must take more time than service, or pods take their service time and little
// else: on a machine with other work, some of the time of each request is a wait for a CPU.
const dominance = 2

// drains reports whether most of the pods that are placed were there before, so that the scheduler does not wait for
// pods. Such pods waited: where they did not, arrivals were not observed.
func (f *finder) drains(v *Verdict) bool {
	return v.Arrived < leastArrivals*v.Placed && f.total > leastWait*(v.Placed-v.Arrived)*v.Seconds*v.Seconds
}

// leastArrivals is how many pods arrive for each one that is placed, unless those of a backlog are placed. If these
// leave at an even rate, they wait for half of the observation on average; leastWait is the part that is asked for.
const (
	leastArrivals = 0.5
	leastWait     = 0.1
)

// waitsForOthers reports whether a cause takes the time of a loop that is busy at least half of the time: then a pod
// waits for others as long as it is served itself, or longer (u/(1-u) times, for the utilisation u), so the time in the
// loop is no service.
func (f *finder) waitsForOthers(c Cause) bool {
	return (f.at[c] == Loop || f.at[c] == Inbox) && f.atCapacity(Loop) >= full
}

// conclude puts Arrivals in front if pods take their service time and little else, and names the next bottleneck.
func (f *finder) conclude(v *Verdict) {
	if f.mostlyService(v) {
		share := 1.0
		if f.total > 0 {
			share = f.service / f.total
		}
		arrivals := Finding{Cause: Arrivals, Stage: Creation.String(), What: Arrivals.What(), PodSeconds: f.service,
			Share: share, Setting: Arrivals.Setting(), Evidence: []string{fmt.Sprintf(
				"pods arrive at %.1f/s and are placed at %.1f/s; %.0f %% of their time is service", v.Arrived, v.Placed,
				100*share)}}
		v.Findings = slices.Insert(v.Findings, 0, arrivals)
	}
	if next := Arrivals; len(v.Findings) > 1 && v.Findings[1].Share >= minNext {
		v.Next = &v.Findings[1].Cause
	} else if v.Findings[0].Cause != Arrivals {
		v.Next = &next
	}
}

// rates sets the rates at which pods arrive and are placed.
func (f *finder) rates(v *Verdict) {
	for i := range f.w.Buckets {
		v.Arrived += f.w.Buckets[i].Stages[Creation].Out / v.Seconds
		v.Placed += f.w.Buckets[i].Stages[APIServer].Out / v.Seconds
	}
}

// bucket adds the pod-seconds of one bucket.
func (f *finder) bucket(b *Bucket) {
	took := b.Took.Seconds()
	for s := range Stage(Stages) {
		l := &b.Stages[s]
		if l.Content == 0 || s == Creation {
			continue
		}
		weight := l.Content * took
		f.total += weight
		f.flowing += weight
		switch {
		case s.delays():
			if rest := weight * f.parts(s, s, weight); !f.w.Evidence.Unmeasured[s] {
				f.service += rest
			}
		default:
			f.queue(b, s, weight)
		}
	}
	f.held(b, took)
}

// overlooked is the evidence of a lost wake-up.
const overlooked = "pods that may be tried waited while the loop was idle"

// queue divides the pod-seconds of a stage with a queue by what the stage did meanwhile. The time in which that is not
// known stays unexplained.
func (f *finder) queue(b *Bucket, s Stage, weight float64) {
	l, of, busy := &b.Stages[s], s, weight*b.Stages[s].AtCapacity
	if s == Inbox {
		of = Loop // the loop takes what is in the inbox
		f.parts(Inbox, s, weight*l.Starved)
	}
	switch {
	case s == Loop && l.Out > 0:
		busy += weight * l.Starved // pods were in it while it was not idle
	case s == Loop && l.Content >= 1:
		f.add(LostWakeUp, s, weight*l.Starved, overlooked)
	case s == Limiter:
		busy = weight * (1 - l.Blocked) // it delays each request, at capacity or not
	}
	if of == Loop {
		f.queued += busy
	}
	rest := busy * f.parts(of, s, busy)
	switch s {
	case Loop, Inbox:
		if !f.w.Evidence.Unmeasured[Loop] {
			f.add(SchedulerCPU, s, rest, "")
		}
	case Limiter:
		f.add(ClientLimit, s, rest, "requests waited for the rate limiter")
	case BindQueue:
		f.add(InFlightLimit, s, rest, f.limitEvidence())
	}
	f.blocked(b, s, weight*l.Blocked)
}

// full is the share of time from which on a stage is taken to be at capacity in a bucket.
const full = 0.5

// blocked gives the pod-seconds of a blocked stage to the last stage behind it that is at capacity. Without one they
// belong to the limit that blocks it.
func (f *finder) blocked(b *Bucket, s Stage, weight float64) {
	if weight == 0 {
		return
	}
	for t := Stage(Stages - 1); t > s; t-- {
		if b.Stages[t].AtCapacity < full {
			continue
		}
		if t == APIServer && f.limitOf(s).gains() > f.delayGains(t) {
			continue
		}
		switch t {
		case BindQueue:
			f.add(InFlightLimit, t, weight, f.limitEvidence())
		case Limiter:
			f.add(ClientLimit, t, weight, "")
		default:
			f.shared(t, weight)
		}
		return
	}
	switch {
	case s == BindQueue && f.w.Evidence.Blocked != nil && b.Stages[Loop].Blocked >= full:
		f.add(*f.w.Evidence.Blocked, s, weight, "") // binds wait for the lease too
	case s == BindQueue:
		f.add(InFlightLimit, s, weight, f.limitEvidence())
	case s == Loop && f.w.Evidence.Blocked != nil:
		f.add(*f.w.Evidence.Blocked, s, weight, "")
	case s == Loop && b.Stages[BindQueue].Blocked >= full:
		f.add(InFlightLimit, BindQueue, weight, f.limitEvidence())
	case s == Loop:
		f.add(DecidedAheadLimit, s, weight, fmt.Sprintf("the limit is %.0f decisions without an outcome",
			f.w.Evidence.DecidedAhead.Value))
	}
}

func (f *finder) limitEvidence() string {
	l := f.w.Evidence.InFlight
	return fmt.Sprintf("the limit of %.0f binds in flight was reached; the default is %.0f", l.Value, l.Default)
}

// limitOf returns the limit that blocks a stage; none for a stage without one.
func (f *finder) limitOf(s Stage) Limit {
	switch s {
	case BindQueue:
		return f.w.Evidence.InFlight
	case Loop:
		return f.w.Evidence.DecidedAhead
	}
	return Limit{}
}

// gains is by which factor the default of a limit is above its value.
func (l Limit) gains() float64 {
	if l.Value == 0 {
		return 1
	}
	return l.Default / l.Value
}

// delayGains is by which factor a stage that delays gets faster without the causes of its delays.
func (f *finder) delayGains(s Stage) float64 {
	rest := 1.0
	for _, p := range f.w.Evidence.Parts[s] {
		rest -= p.Share
	}
	return 1 / max(rest, 1e-3)
}

// parts adds the shares of the causes of a stage and returns the rest.
func (f *finder) parts(of, s Stage, weight float64) (rest float64) {
	rest = 1
	for _, p := range f.w.Evidence.Parts[of] {
		f.add(p.Cause, s, weight*p.Share, p.Evidence)
		rest -= p.Share
	}
	return max(rest, 0)
}

// shared divides pod-seconds among the causes of a stage in the ratio of their shares: a blocked stage waits for
// the delay, not for the service time. Without causes they stay unexplained.
func (f *finder) shared(of Stage, weight float64) {
	sum := 0.0
	for _, p := range f.w.Evidence.Parts[of] {
		sum += p.Share
	}
	for _, p := range f.w.Evidence.Parts[of] {
		f.add(p.Cause, of, weight*p.Share/max(sum, math.SmallestNonzeroFloat64), p.Evidence)
	}
}

// held adds the pod-seconds of pods outside of the flow.
func (f *finder) held(b *Bucket, took float64) {
	e := &f.w.Evidence
	for r, pods := range b.Held {
		weight := pods * took
		if weight == 0 {
			continue
		}
		f.total += weight
		switch Reason(r) {
		case Gated:
			f.add(Gate, Loop, weight, "")
		case BackingOff:
			placed := 1.0
			if e.Retried != nil {
				placed = *e.Retried
				f.say(Backoff, fmt.Sprintf("%.0f %% of the attempts after a backoff placed the pod",
					100*placed))
			}
			f.add(Backoff, Loop, weight*placed, "")
			f.add(NoCapacity, Loop, weight*(1-placed), "attempts after a backoff found no node")
		case Unschedulable:
			f.add(LostWakeUp, Loop, weight*e.Flushed, "pods were placed after a timeout alone had woken them")
			f.add(NoCapacity, Loop, weight*(1-e.Flushed), "")
		case OnVictims:
			f.add(Victims, Loop, weight, "")
		case NextSession:
			f.add(SessionPeriod, Loop, weight, "")
		case Overlooked:
			f.add(LostWakeUp, Loop, weight, overlooked)
		}
	}
}

// add gives pod-seconds to a cause.
func (f *finder) add(c Cause, s Stage, podSeconds float64, evidence string) {
	if podSeconds <= 0 {
		return
	}
	f.seconds[c] += podSeconds
	if podSeconds > f.most[c] {
		f.most[c], f.at[c] = podSeconds, s
	}
	f.say(c, evidence)
}

// maxEvidence bounds the sentences about one cause.
const maxEvidence = 4

func (f *finder) say(c Cause, evidence string) {
	if evidence != "" && len(f.evidence[c]) < maxEvidence && !slices.Contains(f.evidence[c], evidence) {
		f.evidence[c] = append(f.evidence[c], evidence)
	}
}
