// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"time"

	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/shard"
	"github.com/kumiki-scheduler/kumiki/kube/instances"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
	"github.com/kumiki-scheduler/kumiki/record"
)

// loadPeriod is how often the loop states whether it is busy: it rests for less than two fifths of its time.
const loadPeriod = record.Second

// verdictNames: a verdict -> its label.
var verdictNames = map[shard.Verdict]string{shard.Taken: "taken", shard.Refused: "refused", shard.Gone: "gone"}

// planning is what a loop with local planners knows of them. It belongs to the loop. Its methods do nothing on nil.
type planning struct {
	runner *instances.Runner
	counts *metrics.Metrics
	asked  bool // the planners were asked to join
	joined int  // how many have joined, at least once
	// proposals are not checked yet: the loop may not decide, or too many decisions have no outcome.
	proposals []shard.Proposal
	// busy is what the engine knows; rest is the time that the loop has rested since the moment since.
	busy  bool
	rest  time.Duration
	since record.Time
}

func newPlanning(r *instances.Runner, counts *metrics.Metrics) *planning {
	if r == nil {
		return nil
	}
	return &planning{runner: r, counts: counts}
}

// ready returns a channel that has a value if planners have said something.
func (p *planning) ready() <-chan struct{} {
	if p == nil {
		return nil
	}
	return p.runner.Ready()
}

func (p *planning) rested(during time.Duration) {
	if p != nil {
		p.rest += during
	}
}

// carry carries the effects of a Step to the planners, and counts.
func (p *planning) carry(effects []engine.Effect) {
	if p == nil {
		return
	}
	p.runner.Carry(effects)
	for _, f := range effects {
		switch f := f.(type) {
		case message.Lend:
			p.counts.PodsLent.Add(float64(len(f.Pods)))
		case message.Answers:
			for _, ans := range f.List {
				p.counts.Proposals.WithLabelValues(verdictNames[ans.Verdict], ans.Plugin).Inc()
			}
		}
	}
}

// gathered reports whether all planners have joined. Until then the loop decides nothing: it would wait for extenders
// itself.
func (p *planning) gathered() bool { return p == nil || p.joined >= p.runner.Planners() }

// load returns whether the loop is busy if the engine must learn that now.
func (p *planning) load(now record.Time) (ev message.Busy, tell bool) {
	if now < p.since+loadPeriod {
		return ev, false
	}
	busy := p.rest*5 < time.Duration(now-p.since)*2
	tell = p.since != 0 && busy != p.busy
	p.rest, p.since = 0, now
	if tell {
		p.busy = busy
	}
	return message.Busy{Busy: busy}, tell
}

// takePlanned takes what the planners have said. Proposals wait until the loop decides.
func (l *Loop) takePlanned(log klog.Logger, now record.Time) {
	p := l.planning
	if p == nil {
		return
	}
	if ev, tell := p.load(now); tell {
		l.step(log, ev, moments{})
	}
	for _, m := range p.runner.Take() {
		if m.Attempt != nil {
			l.attempted(log, m.Attempt)
			continue
		}
		switch ev := m.Event.(type) {
		case nil:
			said := []engine.Effect{m.Effect}
			l.tally.Planner(m.Effect)
			logStep(log, said)
			l.execute(said)
		case message.Proposed:
			p.proposals = append(p.proposals, ev.List...)
		case message.Joined:
			p.joined++
			l.step(log, ev, moments{})
		default:
			l.step(log, ev, moments{})
		}
	}
}

// attempted shows a planner's attempt that placed nothing as one of the loop's.
func (l *Loop) attempted(log klog.Logger, a *instances.Attempt) {
	l.tally.Attempted(&a.Decision, a.Took)
	effects := []engine.Effect{engine.Decided{Decision: a.Decision}}
	for _, see := range l.cfg.Observers {
		see(nil, effects)
	}
	logStep(log, effects)
}

// stepProposals gives the engine the proposals that wait, as one batch. The loop must decide: those that fit are bound,
// as what a cycle decides.
func (l *Loop) stepProposals(log klog.Logger) {
	p := l.planning
	if p == nil {
		return
	}
	if !p.asked {
		p.asked = true
		p.runner.Join()
	}
	n := min(len(p.proposals), max(0, l.cfg.DecidedAhead-l.unanswered-l.evicting))
	if n == 0 || l.held.Load() {
		return
	}
	batch := p.proposals[:n:n]
	p.proposals = p.proposals[n:]
	l.step(log, message.Proposed{List: batch}, moments{})
}
