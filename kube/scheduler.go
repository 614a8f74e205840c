// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/core/question"
	"github.com/kumiki-scheduler/kumiki/kube/call"
	"github.com/kumiki-scheduler/kumiki/kube/effects"
	"github.com/kumiki-scheduler/kumiki/kube/intake"
	"github.com/kumiki-scheduler/kumiki/kube/serve"
)

// ErrLeaseLost is why Run ended when another scheduler may lead now. The process must end with it: what was decided is
// not to be acted on any more.
var ErrLeaseLost = errors.New("leader election lost")

// handOver is how long binds in flight get to end before the lease is given back.
const handOver = 10 * time.Second

// Scheduler is the parts of this package put together.
type Scheduler struct {
	Informers *intake.Informers
	Loop      *Loop
	Executor  *effects.Executor
	// Election is nil when leader election is off.
	Election *Election
	// Dumps asks for a dump with each value; nil for never. See DumpSignals.
	Dumps <-chan os.Signal
	// AuditPeriod is how often the watches of a leader are checked against lists; 0 for never.
	AuditPeriod time.Duration
	// DelayWatches keeps a standby from watching; it then lists when it has become the leader.
	DelayWatches bool
}

// Run schedules until ctx ends, then hands over: no more decisions, binds in flight end, the lease is given back. It
// returns nil after that, ErrLeaseLost when the lease was lost. All goroutines have ended when it returns.
//
// The World's calls must not end with ctx, or there would be nothing to hand over.
func (s *Scheduler) Run(ctx context.Context) error {
	if s.Election != nil {
		s.Loop.lead = s.Election.Holds
		s.Executor.Fence(s.Election.Left)
		s.obeyPauses(&s.Election.lock.pausing)
	}
	s.Loop.tally.Watches = s.Informers
	s.Loop.mayDecide = func() { s.tookOver(ctx) }
	inside, stop := context.WithCancel(context.WithoutCancel(ctx))
	var parts sync.WaitGroup
	defer parts.Wait()
	defer stop()

	defer s.Informers.Stop()
	parts.Go(func() { s.Loop.Run(inside) })
	parts.Go(func() { s.Executor.Tend(inside) })
	if planners := s.Loop.cfg.Planners; planners != nil {
		parts.Go(func() { planners.Run(inside) })
	}
	if e, can := s.Loop.cfg.Engine.(viewed); can {
		parts.Go(func() { (&dumper{s.Loop, question.New(e.View()), s.Informers.Client, settle}).run(inside, s.Dumps) })
	}

	elected, resign := context.WithCancel(inside)
	defer resign()
	var over chan struct{} // closed when the election has ended; nil without one
	if s.Election == nil {
		s.Informers.Start(inside)
	} else {
		over = make(chan struct{})
		parts.Go(func() {
			defer close(over)
			s.Election.Run(elected)
		})
		if !s.awaitLease(ctx, inside) {
			s.Executor.Stop(call.Expired())
			return nil
		}
	}
	s.Loop.Decide(true)
	audit := intake.NewAuditor(s.Informers, s.Loop.cfg.Metrics, s.AuditPeriod, func() { s.Informers.Start(inside) })
	parts.Go(func() { audit.Run(inside) })

	select {
	case <-over:
		s.Executor.Stop(call.Expired())
		return ErrLeaseLost
	case <-ctx.Done():
	}
	s.retire(inside, func() {
		resign()
		if over != nil {
			<-over
		}
	})
	return nil
}

// awaitLease follows the cluster until the lease is held. It reports whether the lease was won before ctx ended.
//
// The lists begin after the first read of the lease. If that read found the lease free and the lease was won on top of
// it, no other process has bound a pod since, and the lists are complete. In any other case another process may have
// bound pods after the lists, and everything is listed once more.
func (s *Scheduler) awaitLease(ctx, inside context.Context) bool {
	if !happened(ctx, s.Election.FirstRead()) {
		return false
	}
	if !s.DelayWatches {
		s.Informers.Start(inside)
	}
	if !happened(ctx, s.Election.Won()) {
		return false
	}
	if s.DelayWatches || s.Election.Contested() {
		s.Informers.Start(inside)
	}
	return true
}

// happened waits for a channel to be closed. It reports whether that happened before ctx ended.
func happened(ctx context.Context, event <-chan struct{}) bool {
	select {
	case <-event:
		return true
	case <-ctx.Done():
		return false
	}
}

// tookOver tells how long it took from the lease to the first turn that may decide.
func (s *Scheduler) tookOver(ctx context.Context) {
	if s.Election == nil {
		return
	}
	took := time.Since(s.Election.wonAt())
	s.Loop.cfg.Metrics.Takeover.Set(took.Seconds())
	nodes, pods := s.Loop.cfg.Inbox.Known()
	klog.FromContext(ctx).Info("Took over: the cluster is known as it was when the lease was won, or later",
		"seconds", took.Seconds(),
		"listedAgain", s.Election.Contested(), "nodes", nodes, "boundPods", pods)
}

// obeyPauses lets the lease stop and start what acts. It comes before the election begins. Nothing has to be waited for
// when a pause is read: what a turn under way still decides is recalled by the binder and the evictor, and held by the
// writer.
func (s *Scheduler) obeyPauses(p *pausing) {
	p.hold = func(on bool) {
		s.Executor.Hold(on)
		s.Loop.Hold(on)
	}
	p.inFlight = s.Executor.InFlight
	p.tell = s.Loop.cfg.Metrics.SetPaused
}

// Health is the state that a server shows of this scheduler. ending is closed when the process begins to end.
func (s *Scheduler) Health(ending <-chan struct{}) serve.Health {
	h := s.Loop.health(ending)
	if e := s.Election; e != nil {
		h.Lease, h.Candidate = e.Health(), e.synced
		h.Leads = func() bool {
			select {
			case <-e.Won():
				return true
			default:
				return false
			}
		}
	}
	return h
}

// Paused is the pause that the lease asks for, nil when it asks for none or when there is no election.
func (s *Scheduler) Paused() *Pause {
	if s.Election == nil {
		return nil
	}
	return s.Election.Paused()
}

// retire stops deciding and lets what is under way end, while the lease is still ours. Events are written when it is
// given back: the next leader need not wait for them.
func (s *Scheduler) retire(ctx context.Context, giveBack func()) {
	log := klog.FromContext(ctx)
	log.Info("Handing over: no more decisions")
	s.Loop.Decide(false)
	patience, cancel := context.WithTimeout(ctx, handOver)
	defer cancel()
	settle := func() {
		if err := s.Loop.Ask(patience, func() {}); err != nil {
			log.Error(err, "The loop did not answer")
		}
	}
	settle() // the turn that decides at this moment ends first, so that its writes are known to the writer
	s.Executor.Evictor.Drain(patience)
	s.Executor.Writer.Drain(patience)
	settle() // outcomes of the last writes become binds
	s.Executor.Binder.Drain(patience)
	settle() // outcomes of the last binds become events
	s.Executor.Gangs.Drain(patience)
	s.Executor.Patcher.Stop()
	giveBack()
	log.Info("Handing over: done")
	s.Executor.Events.Stop(patience)
}
