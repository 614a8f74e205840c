// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"cmp"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Gangs answers the queue's questions about units of several pods: the minimum number of pods, and their priority.
type Gangs interface {
	// Admit returns whether a unit whose pods declare a gang may be tried. It must not change the unit.
	Admit(u *Unit) Admission
	// Apart reports whether the pods of a group are scheduled one by one, each as a unit of its own. When the answer
	// changes, Regroup must be called.
	Apart(key cluster.GangKey) bool
	// Priority returns the unit's priority in the queue. declared: the gang's object declares it, and not its pods;
	// then its nominated pods have this priority too.
	Priority(u *Unit) (priority int32, declared bool)
	// Extra reports whether the unit's gang has its minimum without the unit's pods. Such surplus members are tried
	// after all required pods of the same priority.
	Extra(u *Unit) bool
}

// Admission is the result of Admit. The zero value admits the unit.
type Admission struct {
	// Gate is the plugin that keeps the unit out of the active queue, empty for none, and Reason is its reason.
	Gate, Reason string
	// Members are the gates that keep single members back, by plugin name: an event for which such a plugin
	// registered may admit the unit.
	Members []string
	// Again is when to call Admit again at the latest; 0 means when the unit changes, or on Reconsider.
	Again record.Time
}

// gangOf returns the gang with which a pod waits, zero for none. A pod with an invalid declaration waits on its own.
func (q *Queue) gangOf(p *cluster.Pod) cluster.GangKey {
	key := q.named(p)
	if key != (cluster.GangKey{}) && q.cfg.Gangs.Apart(key) {
		return cluster.GangKey{}
	}
	return key
}

// named returns the gang that a pod declares, zero for none or an invalid declaration.
func (q *Queue) named(p *cluster.Pod) cluster.GangKey {
	if q.cfg.Gangs == nil || p.Gang == nil || p.Gang.Bad != "" {
		return cluster.GangKey{}
	}
	return p.Gang.Key
}

// replace replaces a pod by its newer version.
func (q *Queue) replace(u *Unit, p *cluster.Pod) {
	at := u.index(p.UID)
	q.apart.remove(q.named(u.Members[at]), u)
	u.Members[at] = p
	q.apart.add(q.named(p), u)
	q.changed(u)
	if u.alike != nil {
		u.group.changed(u)
	}
}

// seen records a newer version of a member in flight, lost that it was deleted.
func (u *Unit) seen(p *cluster.Pod) {
	if u.next == nil {
		u.next = map[cluster.UID]*cluster.Pod{}
	}
	u.next[p.UID] = p
	delete(u.gone, p.UID)
}

func (u *Unit) lost(uid cluster.UID) {
	if u.gone == nil {
		u.gone = map[cluster.UID]bool{}
	}
	u.gone[uid] = true
}

// join adds a pod to an existing unit.
func (q *Queue) join(u *Unit, p *cluster.Pod, n note) {
	q.units[p.UID] = u
	u.Joined = q.now
	if u.at == inFlight {
		u.joining = append(u.joining, p)
		return
	}
	u.Members = append(u.Members, p)
	q.changed(u)
	q.NominateAsStatus(p)
	q.regrouped(u, n)
}

// leave removes a pod from a unit that is not in flight.
func (q *Queue) leave(u *Unit, uid cluster.UID, n note) {
	if len(u.Members) == 1 {
		q.put(u, nowhere, n)
		return
	}
	delete(q.units, uid)
	u.Members = slices.Delete(u.Members, u.index(uid), u.index(uid)+1)
	q.changed(u)
	q.regrouped(u, n)
}

// regrouped moves a unit whose members changed to the state in which it belongs now: a gate may have opened or
// closed, and the plugin that rejected it may not apply any more.
func (q *Queue) regrouped(u *Unit, n note) {
	if u.at == aside {
		u.Aside = ""
	}
	q.requeueAs(u, u.soonest(), n)
}

// soonest returns when a unit that may fit now is tried: at once if its backoff is skipped.
func (u *Unit) soonest() strategy {
	if u.urgent {
		return atOnce
	}
	return afterBackoff
}

// Reconsider runs the gates of a gang again, because something that they read of it has changed.
func (q *Queue) Reconsider(key cluster.GangKey, cause string) { q.reconsider(q.gangs[key], cause) }

// ReconsiderPod runs the gates of a pod's unit again; the pod may be in no gang.
func (q *Queue) ReconsiderPod(uid cluster.UID, cause string) { q.reconsider(q.units[uid], cause) }

func (q *Queue) reconsider(u *Unit, cause string) {
	if u == nil || u.at == inFlight || u.at == aside {
		return
	}
	q.changed(u)
	q.requeueAs(u, u.soonest(), note{event: gangChanged, cause: cause})
}

// TryGang makes a gang that was rejected active, whatever its backoff; the gates still apply.
func (q *Queue) TryGang(key cluster.GangKey, cause string) {
	u, n := q.gangs[key], note{event: gangChanged, cause: cause}
	switch {
	case u == nil:
	case u.at == waiting:
		q.toActive(u, n)
	case u.at == backoff:
		q.fromBackoff(u, n)
	}
}

// Gang returns the unit of a gang's waiting pods; nil if none waits.
func (q *Queue) Gang(key cluster.GangKey) *Unit { return q.gangs[key] }

// EachGang visits the units of gangs, in no order.
func (q *Queue) EachGang(visit func(*Unit)) {
	for _, u := range q.gangs { // order: documented as none
		visit(u)
	}
}

// HasGang reports whether pods of a gang wait, together or one by one.
func (q *Queue) HasGang(key cluster.GangKey) bool {
	return q.gangs[key] != nil || len(q.apart[key]) > 0
}

// SkipBackoff makes a gang skip its backoff whenever an event may help it, until RestoreBackoff: capacity is reserved
// for it and must not stay idle.
func (q *Queue) SkipBackoff(key cluster.GangKey) {
	if u := q.gangs[key]; u != nil {
		u.urgent = true
	}
}

// RestoreBackoff makes a gang wait for its backoff again.
func (q *Queue) RestoreBackoff(key cluster.GangKey) {
	if u := q.gangs[key]; u != nil {
		u.urgent = false
	}
}

// needed returns the first unit that backs off after a rejection and is ordered before a surplus one; nil for none.
// Surplus members are not tried before it, as nothing is tried before an active unit: released capacity is first for
// the units that require it.
func (q *Queue) needed(extra *Unit) (first *Unit) {
	for _, u := range q.backoff.units {
		if !u.extra && q.before(u, extra) && (first == nil || q.before(u, first)) {
			first = u
		}
	}
	return first
}

// Needed reports whether a waiting unit is ordered before the surplus members of a gang that has its minimum.
func (q *Queue) Needed(u *Unit) bool {
	left := *u
	left.extra = true
	head := q.active.head()
	switch {
	case head == nil || !q.before(head, &left):
	case !head.extra:
		return true
	default: // surplus units of a higher priority, active again in a session that has others to try
		if slices.ContainsFunc(q.active.units, func(u *Unit) bool { return !u.extra && q.before(u, &left) }) {
			return true
		}
	}
	return q.needed(&left) != nil
}

// ReconsiderExtras tries the rejected surplus units again: capacity that was reserved for others may be free.
func (q *Queue) ReconsiderExtras(cause string) {
	var extras []*Unit
	for _, u := range q.gangs { // order: sorted below
		if u.extra && u.at == waiting && u.Gate == "" {
			extras = append(extras, u)
		}
	}
	slices.SortFunc(extras, func(a, b *Unit) int { return cmp.Compare(a.seq, b.seq) })
	for _, u := range extras {
		q.requeueAs(u, afterBackoff, note{event: gangChanged, cause: cause})
	}
}

// Rejoin requeues a pod of a gang that lost its node. If its gang waits it joins it; otherwise it waits as the gang's
// only member, after a backoff as for an error if why is one.
func (q *Queue) Rejoin(p *cluster.Pod, why Rejection, cause string) {
	if q.units[p.UID] != nil {
		return
	}
	n := note{event: scheduleAttemptFailure, cause: cause}
	if u := q.gangs[q.gangOf(p)]; u != nil {
		q.join(u, p, n)
		return
	}
	u := q.newUnit(p)
	u.Attempts = 1
	if why.Err {
		u.ErrorCount = 1
		u.BackoffUntil = q.backoffEnd(u)
	}
	q.requeueAs(u, afterBackoff, n)
}

// gangGate returns the gate that keeps a unit of a gang out of the active queue, and schedules the next check.
func (q *Queue) gangGate(u *Unit) (gate, reason string) {
	a := q.cfg.Gangs.Admit(u)
	u.ask = 0
	u.memberGates = setOf(u.memberGates, a.Members)
	if a.Gate == "" {
		return "", ""
	}
	if a.Again != 0 {
		u.ask = a.Again
		at, _ := slices.BinarySearchFunc(q.asks, a.Again+1, func(a gangAsk, t record.Time) int {
			return cmp.Compare(a.at, t)
		})
		q.asks = slices.Insert(q.asks, at, gangAsk{a.Again, u})
	}
	return a.Gate, a.Reason
}

// askGangs runs the gates whose check is due.
func (q *Queue) askGangs() {
	for len(q.asks) > 0 && q.asks[0].at <= q.now {
		due := q.asks[0]
		q.asks = q.asks[1:]
		if u := due.unit; u.ask == due.at && u.at == waiting && u.Gate != "" {
			q.requeueAs(u, afterBackoff, note{event: gangChanged, cause: "the time that its gate named has come"})
			if u.Gate != "" {
				q.asked = append(q.asked, u)
			}
		}
	}
}

// TakeAsked returns the units whose gates were checked at their time since the last call and stayed closed.
func (q *Queue) TakeAsked() []*Unit {
	taken := q.asked
	q.asked = nil
	return taken
}

// TakeShut returns the gangs that a gate has closed since the last call, in order.
func (q *Queue) TakeShut() []cluster.GangKey {
	taken := q.shut
	q.shut = nil
	return taken
}

// gangAsk is a scheduled check of a unit's gate. It is valid only while the unit still has that time.
type gangAsk struct {
	at   record.Time // kept
	unit *Unit       // kept
}

// judgeUnit determines what a change means for a unit: a change that may help one of its members may help the unit.
// Hints that read more of a pod than its spec are called for each member.
func (q *Queue) judgeUnit(g *group, u *Unit, ch plugin.Change) verdict {
	pods := u.Members
	switch {
	case u.Gang == (cluster.GangKey{}):
		return q.judge(g, u.Pod(), ch)
	case g.of(ch.Event).once:
		pods = u.oneOfEachSpec()
	}
	best := verdict{how: stay}
	for _, p := range pods {
		if v := q.judge(g, p, ch); v.how > best.how {
			best = v
		}
	}
	return best
}
