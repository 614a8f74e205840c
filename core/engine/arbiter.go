// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/arbiter"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/core/replica"
	"github.com/kumiki-scheduler/kumiki/core/shard"
	"github.com/kumiki-scheduler/kumiki/record"
)

// arbiterRole decides units, lends others, and carries out what fits of the placements that planners propose. Package
// arbiter owns what it knows.
type arbiterRole struct {
	alone
	a *arbiter.Arbiter
}

// becomeArbiter makes the engine the arbiter of the log's epoch. What the store has now is in the log.
func (e *Engine) becomeArbiter(log *replica.Writer) {
	e.store.KeepChanges()
	e.role = arbiterRole{alone{e}, arbiter.New(arbiter.Config{
		Host: arbiterHost{e}, Queue: e.queue, Deadlines: &e.deadlines, Phase: phasePromises,
		Name: e.cfg.Instances.Name, Policy: e.cfg.Instances.Policy, Log: log,
	})}
}

func (r arbiterRole) handle(ev Event) bool { return r.a.Handle(ev) }

func (r arbiterRole) proceed(ev Event) {
	for r.note(); r.a.Waiting(); r.note() {
		r.e.atomic(ev, r.a.Next)
	}
}

func (r arbiterRole) note()                              { r.a.Note(r.e.store.TakeChanges()) }
func (r arbiterRole) lends(u *queue.Unit) bool           { return r.a.Lends(u) }
func (r arbiterRole) lent(p *cluster.Pod) (string, bool) { return r.a.Lent(p) }
func (r arbiterRole) departed(u *queue.Unit)             { r.a.Placed(u) }
func (r arbiterRole) waits(p *cluster.Pod)               { r.a.Waits(p) }
func (r arbiterRole) gone(p *cluster.Pod)                { r.a.Gone(p) }
func (r arbiterRole) due()                               { r.a.Due() }

func (r arbiterRole) regrouped(key cluster.GangKey) {
	for _, p := range r.e.waitingOf(key) {
		r.a.Waits(p)
	}
}

func (r arbiterRole) end() {
	r.note()
	r.a.Flush()
}

// LogSnapshot returns the state at the log's last position, for a planner that joins; nil if the engine is no arbiter.
func (e *Engine) LogSnapshot() []byte {
	if r, is := e.role.(arbiterRole); is {
		return r.a.Snapshot(e.store)
	}
	return nil
}

// arbiterHost is the engine as package arbiter sees it.
type arbiterHost struct{ e *Engine }

func (h arbiterHost) Emit(f Effect)            { h.e.emit(f) }
func (h arbiterHost) Now() record.Time         { return h.e.now }
func (h arbiterHost) Foreign(name string) bool { return h.e.profiles[name].Foreign != nil }
func (h arbiterHost) Decide(u *queue.Unit)     { h.e.decide(u) }

func (h arbiterHost) GangOf(uid cluster.UID) cluster.GangKey {
	if f := h.e.binds.of[uid]; f != nil && f.gang != nil {
		return f.pod.Gang.Key
	}
	return cluster.GangKey{}
}

// Keeps reports whether a unit has more than its pods: nominations, evictions, capacity that is held for it, or claims
// of which the choice is not in a proposal.
func (h arbiterHost) Keeps(u *queue.Unit) bool {
	if held, is := h.e.blocked.Held(); u.Extra() || is && held.Gang == u.Gang {
		return true
	}
	return slices.ContainsFunc(u.Members, func(p *cluster.Pod) bool {
		return !h.e.hasNoNomination(p) || len(p.Spec.Volumes) > 0 || p.Spec.Devices != nil
	})
}

func (h arbiterHost) Fits(p *cluster.Pod, node string) bool {
	s := h.e.store.Snapshot()
	n, there := s.Find(node)
	if !there {
		return false
	}
	_, no := h.e.profiles[p.Spec.SchedulerName].placer.Admit(s, p, n, h.e.blocked.NominationsFor([]*cluster.Pod{p}))
	return no == nil
}

// Take judges the rows of a placement as a cycle judges those that it finds, and goes on as the cycle does.
func (h arbiterHost) Take(unit *queue.Unit, on []shard.Placement) *arbiter.Rejection {
	defer h.e.cfg.Meter.Leave()
	h.e.cfg.Meter.Enter(StepSearch)
	h.e.count.decisions++
	prof := h.e.profiles[unit.Pod().Spec.SchedulerName]
	if unit.Gang != (cluster.GangKey{}) {
		return h.e.takeGang(unit, prof, on)
	}
	return h.e.takePod(unit, prof, on)
}

func (e *Engine) takePod(unit *queue.Unit, prof *profile, on []shard.Placement) *arbiter.Rejection {
	s := e.store.Snapshot()
	rows, no := arbiter.Rows(s, unit.Members, on)
	if no != nil {
		return no
	}
	out, rejected := prof.placer.Admit(s, unit.Pod(), rows[0].Row, e.blocked.NominationsFor(unit.Members))
	if rejected != nil {
		return &arbiter.Rejection{Node: on[0].Node, Plugin: rejected.Plugin, Reason: rejected.Reason}
	}
	if _, no := e.keep(unit, prof, out); no != nil {
		return &arbiter.Rejection{Node: on[0].Node, Plugin: no.plugin, Reason: cmp.Or(no.reject, fmt.Sprint(no.err))}
	}
	return nil
}

// takeGang is takePod for a gang. Members that have no node in the proposal are tried on their own.
func (e *Engine) takeGang(unit *queue.Unit, prof *profile, on []shard.Placement) *arbiter.Rejection {
	s := e.store.Snapshot()
	a := e.gangAttempt(unit)
	a.Number, a.Nominations = e.count.decisions, e.nominationsFor(unit)
	rows, no := arbiter.Rows(s, a.Need.Members, on)
	if no != nil {
		return no
	}
	trial := e.store.Trial()
	answer, rejected := gang.Take(a.Need, rows, e.ground(prof, &a, trial))
	if rejected != nil {
		trial.Discard()
		node := ""
		if rejected.Member >= 0 {
			node = s.NodeName(rejected.Row)
		}
		return &arbiter.Rejection{Node: node, Plugin: rejected.Plugin, Reason: rejected.Text()}
	}
	a.Answer, a.Answer.Cut = answer, len(a.Need.Members)-len(rows)
	if no := e.keepGang(unit, prof, a, trial); no != nil {
		return &arbiter.Rejection{Node: no.Node, Plugin: no.Plugin, Reason: no.Text()}
	}
	return nil
}
