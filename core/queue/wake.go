// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"
	"strings"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"

	"github.com/kumiki-scheduler/kumiki/record"
)

// strategy is the effect of an event on a unit.
type strategy uint8

const (
	stay         strategy = iota // it cannot help
	afterBackoff                 // it may help once the backoff is over
	atOnce                       // it may help, and the backoff is skipped
)

// verdict is a strategy with the plugin that decided, if one did.
type verdict struct {
	how   strategy
	by    string
	cause string
}

// note returns the verdict for the record.
func (v verdict) note(event string) note { return note{event, v.by, v.cause} }

// group is a set of waiting units for which every event means the same, except for the hints of single pods: same
// profile, same rejecting plugins, same gate.
type group struct {
	key              string   // see groupFor; empty for the units set aside
	profile          *profile // nil for the units set aside
	plugins, pending []string // sorted
	gate             string
	memberGates      []string       // sorted
	gateWakes        []plugin.Event // the registrations of the gate's plugin, and of those of member gates
	selfOpening      bool           // the owner of the gate activates single pods itself
	waitsFor         string         // the plugins, for display

	n        int                       // units
	alike    []*alike                  // Invariant: alike[i].at == i, and none is empty. In no order.
	alikeOf  map[alikeKey]*alike       // their common key -> the same
	meanings map[plugin.Event]*meaning // computed on demand
}

// alike is a set of units of a group that a hint cannot distinguish if it reads only the key: the hint is called once
// for all of them. With 10,000 waiting pods of a hundred templates, a change of a node takes a hundred calls.
type alike struct {
	alikeKey
	at    int     // in group.alike
	units []*Unit // Invariant: units[i].slot == i. In no order.
}

// alikeKey is the common key of units: the namespace and the spec of their pod. A gang has pods of several specs and
// has its own key.
type alikeKey struct {
	namespace string
	spec      *cluster.PodSpec
	gang      cluster.GangKey
}

func (u *Unit) alikeKey() alikeKey {
	if u.Gang != (cluster.GangKey{}) {
		return alikeKey{gang: u.Gang}
	}
	return alikeKey{namespace: u.Pod().Namespace, spec: u.Pod().Spec}
}

// meaning is the effect of a kind of event on a group.
type meaning struct {
	asks   []ask
	cause  string // of moves that need no hint
	any    bool   // it wakes without a hint: a wildcard, or no plugin has rejected
	once   bool   // one result holds for all indistinguishable units
	closed bool   // it cannot open the gate
}

// wakes reports whether the event can wake a unit of the group at all. If not, no hint would wake one.
func (m *meaning) wakes() bool { return !m.closed && (m.any || len(m.asks) > 0) }

// ask is a hint to be called.
type ask struct {
	plugin  string
	hint    func(*cluster.Pod, plugin.Change) plugin.Hint // nil: always QueueHint
	pending bool
	cause   string // of moves when the result is QueueHint
}

func (g *group) add(u *Unit) {
	key := u.alikeKey()
	a := g.alikeOf[key]
	if a == nil {
		a = &alike{alikeKey: key, at: len(g.alike)}
		g.alike = append(g.alike, a)
		if g.alikeOf == nil {
			g.alikeOf = map[alikeKey]*alike{}
		}
		g.alikeOf[key] = a
	}
	g.n++
	u.group, u.alike, u.slot = g, a, len(a.units)
	a.units = append(a.units, u)
}

func (g *group) remove(u *Unit) {
	a := u.alike
	g.n--
	u.alike = nil
	last := len(a.units) - 1
	moved := a.units[last]
	a.units[u.slot], moved.slot = moved, u.slot
	a.units[last] = nil
	a.units = a.units[:last]
	if last > 0 {
		return
	}
	last = len(g.alike) - 1
	g.alike[a.at], g.alike[last].at = g.alike[last], a.at
	g.alike[last] = nil
	g.alike = g.alike[:last]
	delete(g.alikeOf, a.alikeKey)
}

// changed moves a waiting unit to the set of units with its present key.
func (g *group) changed(u *Unit) {
	if u.alike.alikeKey != u.alikeKey() {
		g.remove(u)
		g.add(u)
	}
}

// each visits all units, in no order.
func (g *group) each(visit func(*Unit)) {
	for _, a := range g.alike {
		for _, u := range a.units {
			visit(u)
		}
	}
}

// groupFor returns the group in which a unit that is in no group would wait.
func (q *Queue) groupFor(u *Unit) *group {
	if g := u.group; g != nil && g.profile == u.profile && g.gate == u.Gate &&
		slices.Equal(g.plugins, u.Plugins) && slices.Equal(g.pending, u.Pending) &&
		slices.Equal(g.memberGates, u.memberGates) {
		return g
	}
	plugins, pending := strings.Join(u.Plugins, ", "), strings.Join(u.Pending, ", ")
	key := strings.Join([]string{u.profile.name, u.Gate, plugins, pending, strings.Join(u.memberGates, ", ")}, "\x00")
	g := q.groupOf[key]
	if g == nil {
		g = &group{
			key: key, profile: u.profile, plugins: slices.Clone(u.Plugins), pending: slices.Clone(u.Pending),
			gate: u.Gate, memberGates: slices.Clone(u.memberGates), gateWakes: slices.Clone(q.gateWakes[u.Gate]),
			selfOpening: u.profile.selfOpening(u.Gate),
			waitsFor:    strings.Join(append(slices.Clone(u.Plugins), u.Pending...), ", "),
			meanings:    map[plugin.Event]*meaning{},
		}
		for _, name := range u.memberGates {
			g.gateWakes = append(g.gateWakes, q.gateWakes[name]...)
		}
		q.groupOf[key] = g
		at, _ := slices.BinarySearchFunc(q.groups, key, func(g *group, key string) int {
			return strings.Compare(g.key, key)
		})
		q.groups = slices.Insert(q.groups, at, g)
	}
	u.group = g
	return g
}

// of returns the meaning of a kind of event for the group, computed once.
func (g *group) of(ev plugin.Event) *meaning {
	m := g.meanings[ev]
	if m != nil {
		return m
	}
	label := ev.String()
	m = &meaning{any: ev.IsWildcard() || len(g.plugins)+len(g.pending) == 0, cause: label + " wakes it"}
	m.once = !m.any
	for _, r := range g.profile.wakes {
		pending := slices.Contains(g.pending, r.plugin)
		if !pending && !slices.Contains(g.plugins, r.plugin) || !r.Event.Matches(ev) {
			continue
		}
		m.once = m.once && (r.Hint == nil || r.Alike)
		m.asks = append(m.asks, ask{r.plugin, r.Hint, pending, label + " may help " + r.plugin})
	}
	if g.gate != "" && !ev.IsWildcard() {
		m.closed = !slices.ContainsFunc(g.gateWakes, func(w plugin.Event) bool { return w.Matches(ev) })
	}
	g.meanings[ev] = m
	return m
}

// interesting reports whether any plugin of any profile registered for the event.
func (q *Queue) interesting(ev plugin.Event) bool {
	if ev.IsWildcard() {
		return true
	}
	known, ok := q.interest[ev]
	if ok {
		return known
	}
	for _, p := range q.profiles { // order: any match suffices
		known = known || slices.ContainsFunc(p.wakes, func(r registration) bool { return r.Event.Matches(ev) })
	}
	q.interest[ev] = known
	return known
}

// judgeGroup appends the units of a group that a change wakes.
func (q *Queue) judgeGroup(g *group, ch plugin.Change, movers []mover) []mover {
	once := g.of(ch.Event).once
	own := q.changedUnit(ch)
	for _, a := range g.alike {
		if g.selfOpening && a.gang == (cluster.GangKey{}) {
			continue
		}
		var all verdict // for the units of one key
		asked := false
		for _, u := range a.units {
			if ch.OnlyUpTo != nil && u.Priority() > *ch.OnlyUpTo || ch.OnlyOthers && u == own {
				continue
			}
			v := all
			if !once || !asked || u == own {
				v = q.judgeUnit(g, u, ch)
			}
			if once && u != own {
				all, asked = v, true
			}
			if v.how != stay {
				if u.urgent {
					v.how = atOnce
				}
				movers = append(movers, mover{u, v})
			} else if asked && (own == nil || own.alike != a) {
				break
			}
		}
	}
	return movers
}

// changedUnit returns the unit that a change is about, nil if it is about none. A hint may treat it unlike others.
func (q *Queue) changedUnit(ch plugin.Change) *Unit {
	switch {
	case ch.NewPod != nil:
		return q.units[ch.NewPod.UID]
	case ch.OldPod != nil:
		return q.units[ch.OldPod.UID]
	}
	return nil
}

// judge determines what a change means for a pod that the plugins of a group rejected (upstream:
// isPodWorthRequeuing). It ignores gates.
func (q *Queue) judge(g *group, p *cluster.Pod, ch plugin.Change) verdict {
	m := g.of(ch.Event)
	if m.any {
		// A wildcard with an object concerns that pod only.
		other := ch.NewNode != nil || ch.NewPod != nil && ch.NewPod.UID != p.UID
		if ch.Event.IsWildcard() && len(g.plugins)+len(g.pending) > 0 && other {
			return verdict{how: stay}
		}
		return verdict{how: afterBackoff, cause: m.cause}
	}
	ch.State = q.cfg.State
	best := verdict{how: stay}
	for i := range m.asks {
		a := &m.asks[i]
		hint, panicked := q.callHint(a, p, ch)
		if hint == plugin.SkipHint {
			continue
		}
		v := verdict{how: afterBackoff, by: a.plugin, cause: a.cause}
		if panicked {
			v.cause = "the hint of " + a.plugin + " panicked on " + ch.Event.String()
		}
		if a.pending {
			v.how = atOnce
			return v
		}
		if len(g.pending) == 0 {
			return v
		}
		if best.how == stay {
			best = v
		}
	}
	return best
}

// callHint calls a hint and reports the call to the meter.
func (q *Queue) callHint(a *ask, p *cluster.Pod, ch plugin.Change) (hint plugin.Hint, panicked bool) {
	if a.hint != nil {
		q.cfg.Meter.Did(record.HintsEvaluated, 1)
	}
	q.cfg.Meter.Ask()
	hint, panicked = a.of(p, ch)
	q.cfg.Meter.Answered(a.plugin, ch.Event, hint, panicked)
	return hint, panicked
}

// of calls the hint. A hint that panics must not keep the pod waiting.
func (a *ask) of(p *cluster.Pod, ch plugin.Change) (hint plugin.Hint, panicked bool) {
	if a.hint == nil {
		return plugin.QueueHint, false
	}
	defer func() {
		if recover() == nil {
			return
		}
		hint, panicked = plugin.QueueHint, true
	}()
	return a.hint(p, ch), false
}
