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

// compareMembers orders the pods of a unit: by priority, by age, by name (rule R13).
func compareMembers(a, b *cluster.Pod) int {
	return cmp.Or(
		cmp.Compare(b.Spec.Priority, a.Spec.Priority),
		cmp.Compare(a.Created, b.Created),
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.UID, b.UID),
	)
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

// index returns the position of a pod among the members, -1 if it is none.
func (u *Unit) index(uid cluster.UID) int {
	return slices.IndexFunc(u.Members, func(p *cluster.Pod) bool { return p.UID == uid })
}

// changed updates what is derived from the members of a unit.
func (q *Queue) changed(u *Unit) {
	u.oldest = u.Members[0].Created
	if u.Gang == (cluster.GangKey{}) {
		u.rank = u.Members[0]
		return
	}
	for _, p := range u.Members[1:] {
		u.oldest = min(u.oldest, p.Created)
	}
	slices.SortFunc(u.Members, compareMembers)
	u.kinds = u.kinds[:0]
	rank, spec := *u.Members[0], *u.Members[0].Spec
	spec.Priority, u.declared = q.cfg.Gangs.Priority(u)
	rank.Spec = &spec
	u.rank, u.extra = &rank, q.cfg.Gangs.Extra(u)
	for _, p := range u.Members {
		q.nominated.rank(p, u.rankOf(p))
	}
	switch u.at {
	case active:
		q.active.fix(u)
	case backoff:
		q.backoff.fix(u)
	case errorBackoff:
		q.errors.fix(u)
	}
}

// oneOfEachSpec returns the first member of each spec. It finds them at the first call after a change: they are not
// needed each time that a pod joins a large gang.
func (u *Unit) oneOfEachSpec() []*cluster.Pod {
	if len(u.kinds) == 0 {
		known := map[*cluster.PodSpec]bool{}
		for _, p := range u.Members {
			if !known[p.Spec] {
				known[p.Spec] = true
				u.kinds = append(u.kinds, p)
			}
		}
	}
	return u.kinds
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

// gangName returns the gang's name in records, empty for a pod in no gang.
func (u *Unit) gangName() string {
	if u.Gang == (cluster.GangKey{}) {
		return ""
	}
	return u.Key
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
	q.requeueAs(u, afterBackoff, n)
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
	q.requeueAs(u, afterBackoff, note{event: gangChanged, cause: cause})
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

// Before reports whether a unit is ordered before another in the active queue.
func (q *Queue) Before(a, b *Unit) bool { return q.before(a, b) }

// Hurry makes a gang skip its backoff whenever an event may help it: capacity is reserved for it and must not stay
// idle.
func (q *Queue) Hurry(key cluster.GangKey) {
	if u := q.gangs[key]; u != nil {
		u.urgent = true
	}
}

// EndHurry ends the effect of Hurry.
func (q *Queue) EndHurry(key cluster.GangKey) {
	if u := q.gangs[key]; u != nil {
		u.urgent = false
	}
}

// Part removes the members that have a node from a unit in flight. It reports whether any is left; if none is, the
// unit is gone as after Done.
func (q *Queue) Part(u *Unit, placed map[cluster.UID]bool) (left bool) {
	stay := u.Members[:0:0]
	for _, p := range u.Members {
		if placed[p.UID] {
			delete(q.units, p.UID)
			continue
		}
		stay = append(stay, p)
	}
	if len(stay)+len(u.joining) == 0 {
		q.put(u, nowhere, note{event: done, cause: "the attempt is over"})
		return false
	}
	if len(stay) == 0 {
		stay, u.joining = u.joining, nil
	}
	u.Members = stay
	q.changed(u)
	return true
}

// Stay requeues what Part left of a unit. Its attempt did not fail, so it is active at once, and no failure is
// counted.
func (q *Queue) Stay(u *Unit) {
	if !q.refresh(u) {
		return
	}
	u.Plugins, u.Pending, u.Message = u.Plugins[:0], u.Pending[:0], ""
	q.toActive(u, note{event: gangChanged,
		cause: "its gang has what it needs; these are tried after what others need"})
}

// Readmit requeues a unit in flight that a gate has closed meanwhile, as if it had not been tried.
func (q *Queue) Readmit(u *Unit) {
	if !q.refresh(u) {
		return
	}
	u.Attempts--
	q.toActive(u, note{event: gangChanged, cause: "its gate is open again"})
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
// only member.
func (q *Queue) Rejoin(p *cluster.Pod, cause string) { q.rejoin(p, 0, cause) }

// RejoinFailed is Rejoin after an error: a pod that waits as the gang's only member backs off as for an error.
func (q *Queue) RejoinFailed(p *cluster.Pod, cause string) { q.rejoin(p, 1, cause) }

func (q *Queue) rejoin(p *cluster.Pod, errorCount int, cause string) {
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
	if u.ErrorCount = errorCount; errorCount > 0 {
		u.BackoffUntil = q.backoffEnd(u)
	}
	q.requeueAs(u, afterBackoff, n)
}

// settle applies what happened to the members of a unit while it was in flight. It reports whether a member is left;
// if not, the unit is unchanged.
func (q *Queue) settle(u *Unit) bool {
	left := len(u.joining)
	for _, p := range u.Members {
		if !u.gone[p.UID] {
			left++
		}
	}
	if left == 0 {
		return false
	}
	if len(u.next)+len(u.gone)+len(u.joining) == 0 {
		return true
	}
	stay := make([]*cluster.Pod, 0, left)
	for _, p := range u.Members {
		switch newer := u.next[p.UID]; {
		case u.gone[p.UID]:
			delete(q.units, p.UID)
		case newer != nil:
			stay = append(stay, newer)
		default:
			stay = append(stay, p)
		}
	}
	u.Members = append(stay, u.joining...)
	u.joining, u.next, u.gone = nil, nil, nil
	return true
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
	at   record.Time
	unit *Unit
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
