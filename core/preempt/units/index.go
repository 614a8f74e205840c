// SPDX-License-Identifier: Apache-2.0

package units

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/preempt/victim"
	"github.com/kumiki-scheduler/kumiki/record"
)

// index is what units hold on each node, kept between searches: pods that are evicted one by one, and the parts of
// gangs that are evicted whole. It follows the store's journals; only the Finder that owns it writes to it. Which
// units may be evicted for which preemptor is not kept.
type index struct {
	rows  []nodeUnits
	gangs []gangUnits               // id -> gang
	ids   map[cluster.GangKey]int32 // gang with pods on nodes -> its id. Invariant: gangs[ids[key]].key == key.
	free  []int32                   // unused ids. Invariant: each id is in ids or in free.
	// The store's journals are applied up to these positions.
	changes, renewals, objects uint64
	known                      bool

	// Invariant: between searches nothing is due.
	dueRows   []cluster.NodeIdx // rows to read again; reused memory
	rowIsDue  []bool            // row -> it is in dueRows
	dueGangs  []int32           // gangs to read again; reused memory
	gangIsDue []bool            // id -> it is in dueGangs
}

// nodeUnits is what units hold on one node.
type nodeUnits struct {
	// pods are those that are evicted one by one, the highest priority first; the priority is the one that protects
	// them. parts are what gangs hold that are evicted whole, in the same order. Invariant: both are sorted, and the
	// gang of each part is in gangs.
	pods  []victim.Entry
	parts []gangPart
	// terminating are the terminating pods, which are in neither list.
	terminating []*cluster.Pod
	// gangs are the ids of all gangs with pods here.
	gangs []int32
	// tooLarge is set if a pod holds an amount that sums are not safe with (see victim.TooLarge).
	tooLarge bool
}

// gangPart is the pods on one node of a gang that is evicted whole.
type gangPart struct {
	held     victim.Entry // sums, with one of the pods
	gang     int32
	pods     []*cluster.Pod
	priority int32
}

// gangUnits is a gang with pods on nodes.
type gangUnits struct {
	key  cluster.GangKey
	rule Rule
	// priority protects a gang that is evicted whole: the declared one, or the highest of its members' (answer A3).
	priority int32
	oldest   record.Time // earliest start of its pods
	// above: a single pod of a priority above this one would break the gang, or ignore what protects it, if it
	// evicted pods one by one.
	above   int32
	members []podAt // pods that are not terminating
	sorted  bool    // members are ordered by name
	known   bool    // rule is set; false for an unused id
}

// goesWhole reports whether the gang has pods that may be evicted, and only all at once.
func (g *gangUnits) goesWhole() bool { return g.known && g.rule.Whole && len(g.members) > 0 }

// follow applies the changes of the store since the last call. rule is Question.Rule.
func (ur *index) follow(s cluster.Snapshot, rule func(cluster.GangKey) Rule) {
	changed, changes, ok := s.Changes(ur.changes)
	renewed, renewals, ok2 := s.Renewals(ur.renewals)
	objects, next, ok3 := s.KindChanges(cluster.KindGang, ur.objects)
	ur.changes, ur.renewals, ur.objects = changes, renewals, next
	if !ur.known || !ok || !ok2 || !ok3 || len(changed)+len(renewed) > 4*s.Rows() {
		ur.reset(s)
	}
	for n := len(ur.rows); n < s.Rows(); n++ {
		ur.rows, ur.rowIsDue = append(ur.rows, nodeUnits{}), append(ur.rowIsDue, false)
		ur.markRow(cluster.NodeIdx(n))
	}
	for _, n := range changed {
		ur.markRow(n)
	}
	for _, n := range renewed {
		ur.markRow(n)
	}
	for _, n := range ur.dueRows {
		ur.readGangs(s, n)
	}
	for _, key := range objects {
		source, name, _ := strings.Cut(key.Name, "/")
		gang := cluster.GangKey{Source: cluster.GangSource(source), Namespace: key.Namespace, Name: name}
		if id, is := ur.ids[gang]; is {
			ur.markGang(id)
		}
	}
	for _, id := range ur.dueGangs {
		ur.readGang(s, id, rule)
	}
	ur.dueGangs = ur.dueGangs[:0]
	for _, n := range ur.dueRows {
		ur.rowIsDue[n] = false
		ur.readRow(s, n)
	}
	ur.dueRows = ur.dueRows[:0]
}

// reset empties the index.
func (ur *index) reset(s cluster.Snapshot) {
	*ur = index{known: true, ids: map[cluster.GangKey]int32{},
		changes: ur.changes, renewals: ur.renewals, objects: ur.objects,
		rows: make([]nodeUnits, 0, s.Rows()), rowIsDue: make([]bool, 0, s.Rows())}
}

func (ur *index) markRow(n cluster.NodeIdx) {
	if !ur.rowIsDue[n] {
		ur.rowIsDue[n] = true
		ur.dueRows = append(ur.dueRows, n)
	}
}

func (ur *index) markGang(id int32) {
	if !ur.gangIsDue[id] {
		ur.gangIsDue[id] = true
		ur.dueGangs = append(ur.dueGangs, id)
	}
}

// readGangs reads which gangs have pods on a row. Gangs that had pods there before are due too.
func (ur *index) readGangs(s cluster.Snapshot, n cluster.NodeIdx) {
	row := &ur.rows[n]
	for _, id := range row.gangs {
		ur.markGang(id)
	}
	row.gangs = row.gangs[:0]
	s.EachHeld(n, func(_ *cluster.Pod, key *cluster.GangKey) {
		if key == nil {
			return
		}
		id := ur.id(*key)
		ur.markGang(id)
		if !slices.Contains(row.gangs, id) {
			row.gangs = append(row.gangs, id)
		}
	})
}

// id returns the id of a gang, and assigns one if it has none.
func (ur *index) id(key cluster.GangKey) int32 {
	id, is := ur.ids[key]
	if is {
		return id
	}
	if last := len(ur.free) - 1; last >= 0 {
		id, ur.free = ur.free[last], ur.free[:last]
		ur.gangs[id] = gangUnits{key: key, members: ur.gangs[id].members[:0]}
	} else {
		id = int32(len(ur.gangs))
		ur.gangs, ur.gangIsDue = append(ur.gangs, gangUnits{key: key}), append(ur.gangIsDue, false)
	}
	ur.ids[key] = id
	return id
}

// readGang reads a gang again. If the way it is evicted or the priority that protects it has changed, all its rows
// are due.
func (ur *index) readGang(s cluster.Snapshot, id int32, rule func(cluster.GangKey) Rule) {
	ur.gangIsDue[id] = false
	g := &ur.gangs[id]
	was := *g
	g.members, g.sorted, g.oldest, g.priority = g.members[:0], false, victim.NotStarted, math.MinInt32
	if s.GangHolds(g.key) == 0 {
		delete(ur.ids, g.key)
		ur.free = append(ur.free, id)
		g.known = false
		return
	}
	g.rule, g.known = rule(g.key), true
	weakest, together := int32(math.MaxInt32), s.GangHolds(g.key) > 1 && g.rule.Whole
	g.above = math.MaxInt32
	s.EachInGang(g.key, func(p *cluster.Pod, n cluster.NodeIdx) {
		g.priority, weakest = max(g.priority, p.Spec.Priority), min(weakest, p.Spec.Priority)
		if guard := g.rule.Protects(p.Spec.Priority); guard != p.Spec.Priority {
			g.above = min(g.above, p.Spec.Priority, guard)
		} else if together {
			g.above = min(g.above, p.Spec.Priority)
		}
		if p.Terminating {
			return
		}
		g.oldest = min(g.oldest, victim.StartOf(p))
		g.members = append(g.members, podAt{p, n})
	})
	g.priority = g.rule.Protects(g.priority)
	if was.known && was.rule == g.rule && was.priority == g.priority {
		return
	}
	s.EachInGang(g.key, func(_ *cluster.Pod, n cluster.NodeIdx) { ur.markRow(n) })
}

// readRow reads a row again.
func (ur *index) readRow(s cluster.Snapshot, n cluster.NodeIdx) {
	row := &ur.rows[n]
	row.pods, row.parts, row.terminating, row.tooLarge = row.pods[:0], row.parts[:0], row.terminating[:0], false
	s.EachHeld(n, func(p *cluster.Pod, key *cluster.GangKey) {
		if p.Terminating {
			row.terminating = append(row.terminating, p)
			return
		}
		row.tooLarge = row.tooLarge || victim.TooLarge(&p.Spec.Held)
		c := victim.NewEntry(p)
		if key == nil {
			row.pods = append(row.pods, c)
			return
		}
		id := ur.ids[*key]
		g := &ur.gangs[id]
		c.Priority = g.rule.Protects(c.Priority)
		if !g.rule.Whole {
			row.pods = append(row.pods, c)
			return
		}
		row.join(id, g.priority, c)
	})
	slices.SortStableFunc(row.pods, victim.CompareImportance)
	slices.SortFunc(row.parts, func(a, b gangPart) int {
		if d := cmp.Compare(b.priority, a.priority); d != 0 {
			return d
		}
		return ur.gangs[a.gang].key.Compare(ur.gangs[b.gang].key)
	})
}

// join adds a pod to what its gang holds on the node.
func (row *nodeUnits) join(id, priority int32, c victim.Entry) {
	at := slices.IndexFunc(row.parts, func(p gangPart) bool { return p.gang == id })
	if at < 0 {
		at = len(row.parts)
		if at < cap(row.parts) {
			row.parts = row.parts[:at+1]
			row.parts[at] = gangPart{held: c, gang: id, priority: priority, pods: append(row.parts[at].pods[:0], c.Pod)}
		} else {
			row.parts = append(row.parts, gangPart{held: c, gang: id, priority: priority, pods: []*cluster.Pod{c.Pod}})
		}
		return
	}
	part := &row.parts[at]
	part.held.MilliCPU += c.MilliCPU
	part.held.Memory += c.Memory
	part.held.Ephemeral += c.Ephemeral
	part.pods = append(part.pods, c.Pod)
}

// live returns the pods of a gang that are not terminating, by name.
func (ur *index) live(id int32) []podAt {
	g := &ur.gangs[id]
	if !g.sorted {
		slices.SortFunc(g.members, func(a, b podAt) int { return victim.CompareNames(a.pod, b.pod) })
		g.sorted = true
	}
	return g.members
}

// podAt is a pod with its row.
type podAt struct {
	pod *cluster.Pod
	row cluster.NodeIdx
}
