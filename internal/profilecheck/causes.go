// SPDX-License-Identifier: Apache-2.0

package profilecheck

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/kumiki-scheduler/kumiki/apm/bottleneck"
)

// Case injects one cause, or two of which Cause is the larger.
type Case struct {
	// Name is unique; it is that of the cause unless there are two.
	Name  string
	Cause bottleneck.Cause
	// What says how it is injected.
	What string
	// Kumiki is set if kube-scheduler has no such cause, or if it is not injected there, for the reason in Why.
	Kumiki bool
	Why    string
	// NoGain is why the predicted gain is not compared; empty if it is.
	NoGain string
	// baseline: nothing is injected, and the scheduler is compared with the no-op binder. Cause is one of the limits
	// that it meets too.
	baseline bool
	// inject prepares the ground: its setup, the pods that are there before, and the load. If the cause is removed
	// (ground.removed), everything else is the same.
	inject injection
}

// injection injects a cause with a strength that it draws, and returns it.
type injection func(context.Context, *ground, *rand.Rand) (strength string, err error)

// Reasons why a cause is injected into kumiki alone.
const (
	notThere     = "kube-scheduler has no such limit"
	needsFault   = "needs a scheduler with a fault, which is built for kumiki alone"
	slowerAnyway = "kube-scheduler is slower than the no-op binder on this cluster"
)

// Cases are all injections.
func Cases() []Case {
	both := func(c bottleneck.Cause, what string, f injection) Case {
		return Case{Name: c.String(), Cause: c, What: what, inject: f}
	}
	ours := func(c bottleneck.Cause, what, why string, f injection) Case {
		return Case{Name: c.String(), Cause: c, What: what, Kumiki: true, Why: why, inject: f}
	}
	list := []Case{
		both(bottleneck.Arrivals, "a slow creator", slowCreator),
		both(bottleneck.WatchDelivery, "a proxy stalls the watch of pods at each 40th event", slowWatch),
		ours(bottleneck.Plugin, "scores that spin", needsFault, spinning(bottleneck.Plugin, 30, 60)),
		ours(bottleneck.Hints, "hints that spin, for 5 pods that wait", needsFault, spinningHints),
		ours(bottleneck.Preemption, "a search for victims that spins", needsFault, spinningPreemption),
		ours(bottleneck.GangSearch, "a search for places of gangs that spins", needsFault, spinningGangs),
		ours(bottleneck.Intake, "changes of pods that spin", needsFault, spinning(bottleneck.Intake, 15, 30)),
		ours(bottleneck.Observers, "an observer that spins: a slow disk ends --record instead", needsFault,
			spinning(bottleneck.Observers, 4, 8)),
		ours(bottleneck.SchedulerCPU, "cycles that spin outside of plugins", needsFault,
			spinning(bottleneck.SchedulerCPU, 30, 60)),
		both(bottleneck.ForeignCode, "a slow extender", slowExtender),
		ours(bottleneck.Lock, "a lock that another goroutine holds", needsFault, spinning(bottleneck.Lock, 30, 60)),
		both(bottleneck.GC, "GOGC=1 on one processor, for kumiki with millions of small objects", collecting),
		both(bottleneck.CPUStarvation, "neighbours with a higher priority on the scheduler's CPU", starved),
		both(bottleneck.ClientLimit, "clientConnection.qps", lowRate),
		ours(bottleneck.InFlightLimit, "inFlightBinds: 2", notThere, twoInFlight),
		ours(bottleneck.DecidedAheadLimit, "a limit of 2 decisions without an outcome", notThere, twoAhead),
		both(bottleneck.APF, "one seat for binds", oneSeat),
		both(bottleneck.APIServerCPU, "the API server is stopped half of the time", stoppedServer),
		both(bottleneck.Etcd, "a socket before etcd that delays answers", slowEtcd),
		both(bottleneck.APILatency, "a proxy delays binds", slowBinds),
		both(bottleneck.Prepare, "a slow volume controller", slowVolumes),
		both(bottleneck.Backoff, "binds that fail once, and a long backoff", longBackoff),
		ours(bottleneck.LostWakeUp, "a loop that leaves out rounds of cycles", needsFault, lostWakeUps),
		both(bottleneck.Gate, "pods with a scheduling gate", gated),
		both(bottleneck.NoCapacity, "pods that request more than any node has", tooLarge),
		both(bottleneck.Victims, "victims that do not terminate: the fake nodes are stopped", longVictims),
		ours(bottleneck.SessionPeriod, "sessionPeriod", notThere, longSessions),
		both(bottleneck.Pause, "another process holds the lease", otherLeader),
		{Name: "gate+api-latency", Cause: bottleneck.Gate, What: "100 gated pods, and a proxy that delays binds",
			inject: gateAndLatency(100, 100), NoGain: "two causes"},
		{Name: "api-latency+gate", Cause: bottleneck.APILatency, What: "2 gated pods, and a proxy that delays binds",
			inject: gateAndLatency(2, 300), NoGain: "two causes"},
		{Name: "none", Cause: bottleneck.APIServerCPU, What: "nothing, and a backlog: a limit of the no-op binder too",
			Kumiki: true, Why: slowerAnyway, NoGain: "nothing is injected", baseline: true, inject: nothing},
	}
	list[0].NoGain = "pods are placed as fast as they come"
	return list
}

// NotInjected are the causes that no case injects into a scheduler: cause -> reason.
func NotInjected(kumiki bool) map[bottleneck.Cause]string {
	out := map[bottleneck.Cause]string{}
	if kumiki {
		return out
	}
	for _, c := range Cases() {
		if c.Kumiki && !c.baseline {
			out[c.Cause] = c.Why
		}
	}
	return out
}

// between draws a whole number.
func between(r *rand.Rand, lo, hi int) int { return lo + r.IntN(hi-lo+1) }

func slowCreator(_ context.Context, g *ground, r *rand.Rand) (string, error) {
	rate := between(r, 5, 30)
	g.load(rate, nil)
	return fmt.Sprintf("%d pods/s", rate), nil
}
