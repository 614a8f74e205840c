// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// model is the reference implementation: one list of pods, scanned for every question; time passes second by second;
// every event is kept, and a pod in flight remembers how many there were when it was popped.
type model struct {
	cfg     Config
	now     record.Time
	pods    []*modelPod
	log     []plugin.Change
	arrived int
	wanted  []nomination // in order
}

type nomination struct {
	uid  cluster.UID
	node string
}

type modelPod struct {
	pod              *cluster.Pod
	sub              record.SubQueue
	afterError       bool // backs off after an error
	attempts         int
	rejected, errors int
	since            record.Time
	flushed          record.Time // by the timeout, last
	arrival          int
	plugins, pending []string
	gate             string
	seen             int // length of the log when popped
	deleted, aside   bool
	early            bool // popped before its backoff was over
	rests            bool // backs off, and receives events meanwhile
}

func (m *model) find(uid cluster.UID) *modelPod {
	for _, x := range m.pods {
		if x.pod.UID == uid {
			return x
		}
	}
	return nil
}

func (m *model) drop(x *modelPod) {
	m.pods = slices.DeleteFunc(m.pods, func(y *modelPod) bool { return x == y })
}

func (m *model) hold(x *modelPod, sub record.SubQueue) {
	x.sub, x.rests = sub, false
	if !slices.Contains(m.pods, x) {
		m.pods = append(m.pods, x)
	}
}

// first reports whether x is popped before y out of the active queue.
func (m *model) first(x, y *modelPod) bool {
	if x.pod.Spec.Priority != y.pod.Spec.Priority {
		return x.pod.Spec.Priority > y.pod.Spec.Priority
	}
	return x.arrival < y.arrival
}

// firstInBackoff reports whether x is before y in the backoff queue; errors are after
// all others.
func (m *model) firstInBackoff(x, y *modelPod) bool {
	if x.afterError != y.afterError {
		return !x.afterError
	}
	if x.rests != y.rests {
		return !x.rests
	}
	if a, b := m.backoffEnd(x), m.backoffEnd(y); a != b {
		return a < b
	}
	if m.cfg.PopFromBackoff && !x.afterError && !x.rests {
		return m.first(x, y)
	}
	return x.arrival < y.arrival
}

func (m *model) in(sub record.SubQueue, first func(x, y *modelPod) bool) []*modelPod {
	var found []*modelPod
	for _, x := range m.pods {
		if x.sub != sub {
			continue
		}
		i := 0
		for i < len(found) && first(found[i], x) {
			i++
		}
		found = slices.Insert(found, i, x)
	}
	return found
}

func (m *model) wholeSeconds(t record.Time) record.Time {
	if !m.cfg.PopFromBackoff {
		return t
	}
	return t / record.Second * record.Second
}

// backoffEnd is 0 for no backoff.
func (m *model) backoffEnd(x *modelPod) record.Time {
	failures := x.rejected
	if x.errors > 0 {
		failures = x.errors
	}
	if failures == 0 || m.cfg.MaxBackoff == 0 {
		return 0
	}
	wait := m.cfg.InitialBackoff
	for range failures - 1 {
		wait = min(2*wait, m.cfg.MaxBackoff)
	}
	return m.wholeSeconds(x.since + min(wait, m.cfg.MaxBackoff))
}

func (m *model) backsOff(x *modelPod) bool { return m.backoffEnd(x) >= m.wholeSeconds(m.now) }

func (m *model) arrive(x *modelPod) {
	m.arrived++
	x.since, x.arrival = m.now, m.arrived
}

func (m *model) tick(to record.Time) {
	for s := m.now/record.Second + 1; s*record.Second <= to; s++ {
		m.now = s * record.Second
		for _, x := range m.in(record.Backoff, m.firstInBackoff) {
			if !m.backsOff(x) {
				m.activate(x, !m.cfg.PopFromBackoff || x.rests)
			}
		}
		if s%30 == 0 {
			m.timeouts()
		}
	}
	m.now = to
}

func (m *model) timeouts() {
	ch := plugin.Change{Event: plugin.UnschedulableTimeout}
	any := false
	for _, x := range m.in(record.Unschedulable, byArrival) {
		if !x.aside && m.now-max(x.since, x.flushed) > m.cfg.UnschedulableTimeout {
			any, x.flushed = true, m.now
			m.requeue(x, afterBackoff)
		}
	}
	for _, x := range m.in(record.Gated, byArrival) {
		if m.now-max(x.since, x.flushed) > m.cfg.UnschedulableTimeout {
			any, x.flushed = true, m.now
			m.requeue(x, afterBackoff)
		}
	}
	if any {
		m.log = append(m.log, ch)
	}
}

func byArrival(x, y *modelPod) bool { return x.arrival < y.arrival }

// registered are the events that a plugin asked for in a profile.
func registered(p Profile, name string) []plugin.Wake {
	var wakes []plugin.Wake
	for _, pw := range p.Wakes {
		if pw.Plugin != name {
			continue
		}
		wakes = append(wakes, pw.Wakes...)
	}
	return wakes
}

// gateHears reports whether the gate runs again at the event: its plugin registered for it in any profile, or the event
// stands for any change.
func (m *model) gateHears(x *modelPod, ev plugin.Event) bool {
	if ev.IsWildcard() {
		return true
	}
	for _, p := range m.cfg.Profiles { // in any order, any will do
		for _, w := range registered(p, x.gate) {
			if w.Event.Matches(ev) {
				return true
			}
		}
	}
	return false
}

func (m *model) judge(x *modelPod, ch plugin.Change) strategy {
	if len(x.plugins)+len(x.pending) == 0 {
		return afterBackoff
	}
	if ch.Event.IsWildcard() {
		if ch.NewNode != nil || ch.NewPod != nil && ch.NewPod.UID != x.pod.UID {
			return stay
		}
		return afterBackoff
	}
	best := stay
	for _, name := range append(slices.Clone(x.plugins), x.pending...) {
		for _, w := range registered(m.cfg.Profiles[x.pod.Spec.SchedulerName], name) {
			if !w.Event.Matches(ch.Event) || !says(w, x.pod, ch) {
				continue
			}
			if slices.Contains(x.pending, name) {
				best = atOnce
			}
			best = max(best, afterBackoff)
		}
	}
	return best
}

func says(w plugin.Wake, p *cluster.Pod, ch plugin.Change) (queue bool) {
	defer func() {
		if recover() != nil {
			queue = true
		}
	}()
	return w.Hint == nil || w.Hint(p, ch) == plugin.QueueHint
}

func (m *model) requeue(x *modelPod, how strategy) {
	switch {
	case how == stay && x.rests:
	case how == stay && x.gate != "":
		m.hold(x, record.Gated)
	case how == stay:
		m.hold(x, record.Unschedulable)
	case how == afterBackoff && m.backsOff(x):
		if m.cfg.PopFromBackoff && !m.admit(x) {
			return
		}
		x.afterError = len(x.plugins)+len(x.pending) == 0
		m.hold(x, record.Backoff)
	default:
		m.activate(x, true)
	}
}

func (m *model) activate(x *modelPod, gates bool) {
	if gates && !m.admit(x) {
		return
	}
	m.hold(x, record.Active)
}

func (m *model) admit(x *modelPod) bool {
	gates := slices.Clone(m.cfg.Profiles[x.pod.Spec.SchedulerName].Gates)
	slices.SortStableFunc(gates, func(a, b plugin.Gate) int { // the last one first
		switch x.gate {
		case a.Name():
			return -1
		case b.Name():
			return 1
		}
		return 0
	})
	for _, g := range gates {
		if _, ok := g.Gated(cluster.Snapshot{}, x.pod); !ok {
			x.gate = g.Name()
			if !slices.Contains(x.plugins, x.gate) {
				x.plugins = append(x.plugins, x.gate)
			}
			m.hold(x, record.Gated)
			return false
		}
	}
	x.gate = ""
	return true
}

func (m *model) add(p *cluster.Pod) {
	x := &modelPod{pod: p}
	m.arrive(x)
	m.activate(x, true)
	m.nominate(p, p.Nominated)
}

func (m *model) update(old, p *cluster.Pod) {
	x := m.find(p.UID)
	if x == nil {
		m.add(p)
		return
	}
	x.pod = p
	if x.sub == record.InFlight {
		x.deleted = false
		for _, ev := range plugin.PodChanges(old, p) {
			m.log = append(m.log, plugin.Change{Event: ev, OldPod: old, NewPod: p})
		}
		return
	}
	node := p.Nominated
	if old.Nominated == "" && p.Nominated == "" {
		node = m.nominatedTo(p.UID)
	}
	m.nominate(p, node)
	switch {
	case x.aside:
		if concernsScheduling(old, p) {
			x.aside = false
			m.requeue(x, afterBackoff)
		}
	case x.sub == record.Unschedulable || x.sub == record.Gated || x.rests:
		for _, ev := range plugin.PodChanges(old, p) {
			m.requeue(x, m.judge(x, plugin.Change{Event: ev, OldPod: old, NewPod: p}))
			if x.sub == record.Active || x.sub == record.Backoff && !x.rests {
				return
			}
		}
	}
}

func (m *model) delete(uid cluster.UID) {
	m.unnominate(uid)
	x := m.find(uid)
	switch {
	case x == nil:
	case x.sub == record.InFlight:
		x.deleted = true
	default:
		m.drop(x)
	}
}

func (m *model) pop() *modelPod {
	ready := m.in(record.Active, m.first)
	if m.cfg.PopFromBackoff {
		for _, x := range m.in(record.Backoff, m.firstInBackoff) {
			if !x.afterError && !x.rests {
				ready = append(ready, x)
			}
		}
	}
	if len(ready) == 0 {
		return nil
	}
	x := ready[0]
	x.attempts++
	x.early = x.sub == record.Backoff
	x.seen = len(m.log)
	// Last in the list of all: the order in flight is that of the pops.
	m.drop(x)
	m.hold(x, record.InFlight)
	return x
}

func (m *model) done(uid cluster.UID) {
	if x := m.find(uid); x != nil && x.sub == record.InFlight {
		m.drop(x)
	}
}

func (m *model) fail(x *modelPod, plugins, pending []string) {
	held := m.find(x.pod.UID)
	if held != nil && (held != x || x.sub != record.InFlight) {
		return
	}
	if x.deleted {
		m.drop(x)
		return
	}
	x.plugins, x.pending, x.gate = plugins, pending, ""
	if len(plugins)+len(pending) == 0 {
		x.errors++
	} else {
		x.rejected++
		x.errors = 0
	}
	m.arrive(x)
	how := stay
	if held == nil {
		how = afterBackoff
	}
	if len(plugins)+len(pending) == 0 {
		how = afterBackoff
	} else if held != nil {
		for _, ch := range m.log[x.seen:] {
			how = max(how, m.judge(x, ch))
		}
	}
	m.requeue(x, how)
}

func (m *model) rest(x *modelPod, plugins []string) {
	if x.deleted {
		m.drop(x)
		return
	}
	x.attempts--
	x.plugins, x.pending, x.gate = plugins, nil, ""
	how := stay
	for _, ch := range m.log[x.seen:] {
		how = max(how, m.judge(x, ch))
	}
	if how == stay && m.backsOff(x) {
		m.hold(x, record.Backoff)
		x.rests = true
		return
	}
	m.requeue(x, max(how, afterBackoff))
}

func (m *model) comeBack(x *modelPod) {
	if m.find(x.pod.UID) != nil || x.deleted {
		return
	}
	x.plugins, x.pending = nil, nil
	m.activate(x, true)
}

func (m *model) setAside(x *modelPod) {
	if x.deleted {
		m.drop(x)
		return
	}
	x.plugins, x.pending, x.gate = nil, nil, ""
	x.errors++
	x.aside = true
	m.arrive(x)
	m.hold(x, record.Unschedulable)
}

func (m *model) happened(ch plugin.Change) {
	all := append(m.in(record.Unschedulable, byArrival), m.in(record.Gated, byArrival)...)
	for _, x := range append(all, m.in(record.Backoff, byArrival)...) {
		if ch.OnlyUpTo != nil && x.pod.Spec.Priority > *ch.OnlyUpTo {
			continue
		}
		if x.aside || x.sub == record.Backoff && !x.rests || x.sub == record.Gated && !m.gateHears(x, ch.Event) {
			continue
		}
		if how := m.judge(x, ch); how != stay {
			m.requeue(x, how)
		}
	}
	// An event that no plugin of any profile asked for is not even kept.
	heard := ch.Event.IsWildcard()
	for _, p := range m.cfg.Profiles { // in any order, any will do
		for _, pw := range p.Wakes {
			for _, w := range registered(p, pw.Plugin) {
				heard = heard || w.Event.Matches(ch.Event)
			}
		}
	}
	if heard {
		m.log = append(m.log, ch)
	}
}

func (m *model) force(uid cluster.UID) {
	x := m.find(uid)
	switch {
	case x == nil || x.aside:
	case x.sub == record.InFlight:
		m.log = append(m.log, plugin.Change{Event: plugin.ForceActivate, NewPod: x.pod})
	case x.sub == record.Backoff:
		m.activate(x, !m.cfg.PopFromBackoff || x.rests)
	case x.sub == record.Unschedulable || x.sub == record.Gated:
		m.activate(x, true)
	}
}

func (m *model) nominatedTo(uid cluster.UID) string {
	for _, n := range m.wanted {
		if n.uid == uid {
			return n.node
		}
	}
	return ""
}

func (m *model) nominate(p *cluster.Pod, node string) {
	m.unnominate(p.UID)
	x := m.find(p.UID)
	if node != "" && x != nil && !x.deleted && p.NodeName == "" {
		m.wanted = append(m.wanted, nomination{p.UID, node})
	}
}

func (m *model) unnominate(uid cluster.UID) {
	m.wanted = slices.DeleteFunc(m.wanted, func(n nomination) bool { return n.uid == uid })
}

// inFlightEntries counts the units in flight and the events since the first of them was popped.
func (m *model) inFlightEntries() int {
	flying := 0
	oldest := len(m.log)
	for _, x := range m.pods {
		if x.sub == record.InFlight {
			flying++
			oldest = min(oldest, x.seen)
		}
	}
	if flying == 0 {
		return 0
	}
	return flying + len(m.log) - oldest
}
