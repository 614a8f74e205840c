// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// unitRows are what units hold, row by row, kept between searches: pods that go by themselves, and the parts of gangs that
// go whole. The Finder that owns them is their one writer; they follow the store's journals. Who may go for whom is not kept.
type unitRows struct {
	rows  []unitRow
	gangs []unitGang                // by id
	ids   map[cluster.GangKey]int32 // gang that holds room -> its id
	free  []int32                   // ids that no gang has
	// The store's journals are applied up to here.
	changes, renewals, objects uint64
	known                      bool

	due      []cluster.NodeIdx // rows to be read anew; space
	isDue    []bool            // row -> it is in due
	touched  []int32           // gangs to be judged anew; space
	isTouchd []bool            // id -> it is in touched
}

// unitRow is one row.
type unitRow struct {
	// alone are the pods that go by themselves, those of higher priority first, with the priority that protects them; parts are
	// what gangs that go whole hold, in the same order.
	alone []cell
	parts []unitPart
	// going are the pods that are terminating. They are in neither.
	going []*cluster.Pod
	// gangs are those with pods here, however they go, by id.
	gangs []int32
	// huge is set when a pod holds more than sums are safe with.
	huge bool
}

// unitPart is the pods on one row of a gang that goes whole.
type unitPart struct {
	held     cell // sums, with the gang's priority and one of the pods
	gang     int32
	pods     []*cluster.Pod
	priority int32
}

// unitGang is a gang that holds room.
type unitGang struct {
	key  cluster.GangKey
	rule UnitRule
	// priority protects it where it goes whole: what it declares, or the highest of its members' (answer A3).
	priority int32
	oldest   record.Time // the start of the pod that has run longest
	// above: a pod by itself of a priority above this would break the gang, or what protects it, by going for pods one by one.
	above   int32
	members []placed // those that are not terminating
	sorted  bool     // members are by name
	bound   bool     // rule is set; not so for an id that no gang has
}

// goesWhole tells whether there is anybody of the gang to go, and all at once.
func (g *unitGang) goesWhole() bool { return g.bound && g.rule.Whole && len(g.members) > 0 }

// follow brings everything in line with the store. rule is the question's.
func (ur *unitRows) follow(s cluster.Snapshot, rule func(cluster.GangKey) UnitRule) {
	changed, changes, ok := s.Changes(ur.changes)
	renewed, renewals, ok2 := s.Renewals(ur.renewals)
	objects, next, ok3 := s.KindChanges(cluster.KindGang, ur.objects)
	ur.changes, ur.renewals, ur.objects = changes, renewals, next
	if !ur.known || !ok || !ok2 || !ok3 || len(changed)+len(renewed) > 4*s.Rows() {
		ur.anew(s)
	}
	for n := len(ur.rows); n < s.Rows(); n++ {
		ur.rows, ur.isDue = append(ur.rows, unitRow{}), append(ur.isDue, false)
		ur.dueRow(cluster.NodeIdx(n))
	}

	for _, n := range changed {
		ur.dueRow(n)
	}
	for _, n := range renewed {
		ur.dueRow(n)
	}
	for _, n := range ur.due {
		ur.members(s, n)
	}
	for _, key := range objects {
		source, name, _ := strings.Cut(key.Name, "/")
		if id, is := ur.ids[cluster.GangKey{Source: cluster.GangSource(source), Namespace: key.Namespace, Name: name}]; is {
			ur.touch(id)
		}
	}
	for _, id := range ur.touched {
		ur.judge(s, id, rule)
	}
	ur.touched = ur.touched[:0]
	for _, n := range ur.due {
		ur.isDue[n] = false
		ur.fill(s, n)
	}
	ur.due = ur.due[:0]
}

// GoesByUnits tells whether a pod by itself of a priority must look for victims in units: one of lower priority is in a gang
// that goes whole, or is protected by what its gang declares. Otherwise units are pods.
func (f *Finder) GoesByUnits(s cluster.Snapshot, priority int32, rule func(cluster.GangKey) UnitRule) bool {
	if !s.AnyGang() {
		return false
	}
	f.unitRows.follow(s, rule)
	for id := range f.unitRows.gangs {
		if g := &f.unitRows.gangs[id]; g.bound && g.above < priority {
			return true
		}
	}
	return false
}

// anew forgets everything.
func (ur *unitRows) anew(s cluster.Snapshot) {
	*ur = unitRows{known: true, ids: map[cluster.GangKey]int32{}, changes: ur.changes, renewals: ur.renewals, objects: ur.objects,
		rows: make([]unitRow, 0, s.Rows()), isDue: make([]bool, 0, s.Rows())}
}

func (ur *unitRows) dueRow(n cluster.NodeIdx) {
	if !ur.isDue[n] {
		ur.isDue[n] = true
		ur.due = append(ur.due, n)
	}
}

func (ur *unitRows) touch(id int32) {
	if !ur.isTouchd[id] {
		ur.isTouchd[id] = true
		ur.touched = append(ur.touched, id)
	}
}

// members notes which gangs have pods on a row. Those that had and those that have are touched.
func (ur *unitRows) members(s cluster.Snapshot, n cluster.NodeIdx) {
	row := &ur.rows[n]
	for _, id := range row.gangs {
		ur.touch(id)
	}
	row.gangs = row.gangs[:0]
	s.EachHeld(n, func(_ *cluster.Pod, key *cluster.GangKey) {
		if key == nil {
			return
		}
		id := ur.id(*key)
		ur.touch(id)
		if !slices.Contains(row.gangs, id) {
			row.gangs = append(row.gangs, id)
		}
	})
}

// id is that of a gang, which is given one at first sight.
func (ur *unitRows) id(key cluster.GangKey) int32 {
	id, is := ur.ids[key]
	if is {
		return id
	}
	if last := len(ur.free) - 1; last >= 0 {
		id, ur.free = ur.free[last], ur.free[:last]
		ur.gangs[id] = unitGang{key: key, members: ur.gangs[id].members[:0]}
	} else {
		id = int32(len(ur.gangs))
		ur.gangs, ur.isTouchd = append(ur.gangs, unitGang{key: key}), append(ur.isTouchd, false)
	}
	ur.ids[key] = id
	return id
}

// judge works out anew what a gang is. Where it goes otherwise than before, or is protected otherwise, all its rows are due.
func (ur *unitRows) judge(s cluster.Snapshot, id int32, rule func(cluster.GangKey) UnitRule) {
	ur.isTouchd[id] = false
	g := &ur.gangs[id]
	was := *g
	g.members, g.sorted, g.oldest, g.priority = g.members[:0], false, notStarted, math.MinInt32
	if s.GangHolds(g.key) == 0 {
		delete(ur.ids, g.key)
		ur.free = append(ur.free, id)
		g.bound = false
		return
	}
	g.rule, g.bound = rule(g.key), true
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
		g.oldest = min(g.oldest, startOf(p))
		g.members = append(g.members, placed{p, n})
	})
	g.priority = g.rule.Protects(g.priority)
	if was.bound && was.rule == g.rule && was.priority == g.priority {
		return
	}
	s.EachInGang(g.key, func(_ *cluster.Pod, n cluster.NodeIdx) { ur.dueRow(n) })
}

// fill reads a row.
func (ur *unitRows) fill(s cluster.Snapshot, n cluster.NodeIdx) {
	row := &ur.rows[n]
	row.alone, row.parts, row.going, row.huge = row.alone[:0], row.parts[:0], row.going[:0], false
	s.EachHeld(n, func(p *cluster.Pod, key *cluster.GangKey) {
		if p.Terminating {
			row.going = append(row.going, p)
			return
		}
		held := &p.Spec.Held
		row.huge = row.huge || tooMuch(held)
		c := cell{pod: p, start: startOf(p), cpu: held.MilliCPU, memory: held.Memory, ephemeral: held.Ephemeral, priority: p.Spec.Priority}
		if key == nil {
			row.alone = append(row.alone, c)
			return
		}
		id := ur.ids[*key]
		g := &ur.gangs[id]
		c.priority = g.rule.Protects(c.priority)
		if !g.rule.Whole {
			row.alone = append(row.alone, c)
			return
		}
		row.join(id, g.priority, c)
	})
	slices.SortStableFunc(row.alone, moreImportant)
	slices.SortFunc(row.parts, func(a, b unitPart) int {
		if d := cmp.Compare(b.priority, a.priority); d != 0 {
			return d
		}
		return ur.gangs[a.gang].key.Compare(ur.gangs[b.gang].key)
	})
}

// join adds a pod to what its gang holds on the row.
func (row *unitRow) join(id, priority int32, c cell) {
	at := slices.IndexFunc(row.parts, func(p unitPart) bool { return p.gang == id })
	if at < 0 {
		at = len(row.parts)
		if at < cap(row.parts) {
			row.parts = row.parts[:at+1]
			row.parts[at] = unitPart{held: c, gang: id, priority: priority, pods: append(row.parts[at].pods[:0], c.pod)}
		} else {
			row.parts = append(row.parts, unitPart{held: c, gang: id, priority: priority, pods: []*cluster.Pod{c.pod}})
		}
		return
	}
	part := &row.parts[at]
	part.held.cpu += c.cpu
	part.held.memory += c.memory
	part.held.ephemeral += c.ephemeral
	part.pods = append(part.pods, c.pod)
}

// live are the pods of a gang that are not terminating, by name.
func (ur *unitRows) live(id int32) []placed {
	g := &ur.gangs[id]
	if !g.sorted {
		slices.SortFunc(g.members, func(a, b placed) int { return byName(a.pod, b.pod) })
		g.sorted = true
	}
	return g.members
}
