// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/pace"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Flight is a decided pod on its way.
type Flight struct {
	Pod                 *cluster.Pod
	Node                string
	Decision            uint64
	Preparing, Recalled bool
}

// Flights lists the decided pods on their way, by their decisions.
func Flights(e *Engine) []Flight {
	var list []Flight
	for _, f := range e.binds.of { // order: sorted below
		list = append(list, Flight{f.pod, f.node, f.decision, f.stage == preparing, f.recalled != ""})
	}
	slices.SortFunc(list, func(a, b Flight) int { return cmp.Compare(a.Decision, b.Decision) })
	return list
}

// Gate is what holds the unit of a pod of the default namespace, and why.
func Gate(e *Engine, name string) (gate, reason string) {
	for _, p := range e.pending { // order: one pod has the name
		if p.Name == name {
			if u, _, ok := e.queue.Lookup(p.UID); ok {
				return u.Gate, u.GateReason
			}
		}
	}
	return "", ""
}

// ClosedGate is the gate behind which the unit of a pod waits, and whether it, or another one, holds the unit if it
// is asked now.
func ClosedGate(e *Engine, uid string) (gate string, closed bool) {
	u, _, _ := e.queue.Lookup(cluster.UID(uid))
	if u.Gang != (cluster.GangKey{}) {
		a := gangRules{e}.Admit(u)
		return cmp.Or(a.Gate, u.Gate), a.Gate != ""
	}
	if u.Pod().Gang != nil {
		if a := (gangRules{e}).Admit(u); a.Gate != "" {
			return a.Gate, true
		}
	}
	for _, g := range e.profiles[u.Pod().Spec.SchedulerName].Gates {
		if _, open := g.Gated(e.store.Snapshot(), u.Pod()); !open {
			return g.Name(), true
		}
	}
	return u.Gate, false
}

// WorksInSessions reports whether every unit is tried again and again, whatever wakes it.
func WorksInSessions(e *Engine) bool { return !e.pace.Wakes() }

// UnderWay is what the engine is in the middle of: whether it holds capacity, how many gangs and pods by themselves
// have victims that are not gone, and how many preemptors budgets bar.
func UnderWay(e *Engine) (holds bool, gangs, pods, barred int) {
	gangs, pods, barred = e.evictions.UnderWay()
	_, holds = e.blocked.Held()
	return holds, gangs, pods, barred
}

// InSession reports whether a session is under way.
func InSession(e *Engine) bool {
	s, is := e.pace.(*pace.Sessions)
	return is && s.Open()
}

// EndSessionWith makes the next session of e due when that of other is.
func EndSessionWith(e, other *Engine) {
	if InSession(e) {
		panic("the session goes on")
	}
	st := e.pace.State(nil)
	st.Due = other.pace.State(nil).Due
	if err := e.pace.Restore(st, nil); err != nil {
		panic(err)
	}
}

// GangsRemembered is how many gangs something is remembered of.
func GangsRemembered(e *Engine) int {
	all := map[cluster.GangKey]bool{} // gang -> something is known of it
	for key := range e.gangs.of {     // order: a set is made
		all[key] = true
	}
	e.blocked.Each(func(key cluster.GangKey) { all[key] = true })
	return len(all)
}

// Plain is an engine whose attempts all scan the nodes: the slow twin of the negative-result cache.
func Plain(e *Engine) *Engine {
	e.search.last.off = true
	return e
}

// Tryable is a unit that may be tried now, or that backs off after a rejection and may fit.
type Tryable struct {
	Gang, Key string // Gang is empty for a pod by itself
	Priority  int32
	Placed    int // pods of its gang that have a place and are not going away
}

// TryableUnits lists them.
func TryableUnits(e *Engine) (units []Tryable) {
	for _, sub := range []record.SubQueue{record.Active, record.Backoff} {
		e.queue.Each(sub, func(u *queue.Unit) {
			if u.Resting() || sub == record.Backoff && u.ErrorCount > 0 {
				return
			}
			t := Tryable{Key: u.Key, Priority: u.Priority()}
			if u.Gang != (cluster.GangKey{}) {
				t.Gang, t.Placed = u.Gang.Name, e.gangLive(u.Gang)
			}
			units = append(units, t)
		})
	}
	return units
}

// Stale is what the queue knows of a unit in a gang that is not so any more; empty for nothing. It asks anew all
// that the queue keeps: the slow twin of which pods are woken when.
func Stale(e *Engine) string {
	if _, is := e.pace.(*pace.Sessions); is {
		return ""
	}
	rules, stale := gangRules{e}, ""
	if err := e.blocked.CheckWaiting(); err != nil {
		stale = err.Error() + "; "
	}
	e.queue.EachGang(func(u *queue.Unit) {
		_, where, _ := e.queue.Lookup(u.UID())
		if where == record.InFlight || u.Aside != "" {
			return
		}
		if extra := rules.Extra(u); extra != u.Extra() {
			stale += fmt.Sprintf("gang %s in %s is taken to be extra: %v, and is: %v; ", u.Key, where, u.Extra(), extra)
		}
		if priority, _ := rules.Priority(u); priority != u.Priority() {
			stale += fmt.Sprintf("gang %s in %s is taken to be of priority %d, and is of %d; ", u.Key, where, u.Priority(), priority)
		}
		if where == record.Unschedulable || u.Gate == plugin.DefaultPreemptionName && e.evictions.Unanswered(u.Gang) {
			return // its gates are asked when it is woken, or with EvictDone
		}
		a := rules.Admit(u)
		more := slices.ContainsFunc(a.Members, func(name string) bool { return !slices.Contains(u.MemberGates(), name) })
		if a.Gate != "" && len(a.Members) > 0 && (u.Gate == "" || more) {
			return // an object that a member's gate reads is gone: it is asked when the unit is tried, or when it is woken
		}
		if a.Gate != u.Gate || a.Reason != u.GateReason {
			stale += fmt.Sprintf("gang %s in %s is taken to wait behind %q (%s), and waits behind %q (%s); ", u.Key, where, u.Gate, u.GateReason, a.Gate, a.Reason)
		}
	})
	return stale
}

// KeptIn is the gang in which a pod is kept though it says otherwise now, and how many pods of that have a place.
func KeptIn(e *Engine, p *cluster.Pod) (gang string, holds int) {
	known := e.pending[p.UID]
	if known == nil || known.Gang == nil || p.Gang != nil && p.Gang.Key == known.Gang.Key {
		return "", 0
	}
	return known.Gang.Key.String(), e.store.Snapshot().GangHolds(known.Gang.Key)
}

// ConfigOf is the configuration with which an engine was made.
func ConfigOf(e *Engine) Config { return e.cfg }

// IsPlain reports whether Plain has made an engine the slow twin.
func IsPlain(e *Engine) bool { return e.search.last.off }
