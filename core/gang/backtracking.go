// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// backtracker is a backtracking search over rows other than the first choice, member by member in one order (limited
// discrepancy search, Harvey and Ginsberg 1995; a dead end returns to a member that contributed to it,
// conflict-directed backjumping, Prosser 1993). The first choice is the row with the least capacity left after the
// member.
type backtracker struct {
	*search
	order   []int
	rows    []cluster.NodeIdx   // that fit some member
	of      [][]cluster.NodeIdx // kind -> the rows among them that fit it
	all     []cluster.NodeIdx   // the searched rows, for the reported reason; nil for all
	classes *classes
	width   int // how many rows of a member are tried at most
	missing int // members without a node
	// rest and ask are, by position, the kinds of the members from there on, and their demand by resource. They are
	// nil if there are too many rows for a scan in each step.
	rest [][]int
	ask  [][]int64
	have []int64 // scratch
	// cut: something was left untried below the current member.
	cut    bool
	banned [][]ban // kind -> where no member of it needs to be tried
}

// ban means that members of a kind need not be tried on rows of a class, or on a row that a member is on: another
// member of the kind was tried there at position pos and refuted.
type ban struct {
	row   cluster.NodeIdx
	class int32 // touched for a row that a member is on
	pos   int
}

// anyNumber means no limit.
const anyNumber = math.MaxInt32

// backtrack searches in each order, from few discrepancies to any number. rows are those to search, nil for all;
// fitting are the ones among them that fit some member, and only these matter.
func (sr *search) backtrack(ways [][]int, rows, fitting []cluster.NodeIdx) result {
	classes, of := sr.kinds.classify(fitting), make([][]cluster.NodeIdx, len(sr.kinds.all))
	for k := range of {
		of[k] = sr.kinds.among(k, fitting)
	}
	exact := sr.kinds.alone && sr.kinds.known
	for _, left := range []int{1, 2, 4, anyNumber} {
		for w := len(ways) - 1; w >= 0; w-- { // the unit's order, the least promising one, last
			d := &backtracker{search: sr, order: ways[w], rows: fitting, of: of, all: rows, classes: classes,
				width:  narrow,
				banned: make([][]ban, len(sr.kinds.all))}
			d.forwardCheck()
			if left == anyNumber {
				d.width = wide
			}
			sr.start()
			ok, _ := d.from(0, left)
			switch {
			case ok:
				sr.best = sr.now
				return found
			case sr.err != nil:
				sr.g.rollback(0)
				return broken
			case exact && !d.cut:
				return none
			case sr.spent():
				return unknown
			}
		}
	}
	return unknown
}

// The numbers of rows of one member that are tried.
const (
	narrow = 4
	wide   = 64
)

// from places the members from a position of the order on, with at most left discrepancies. If it fails, nothing from
// there on is placed, and conflicts is the set of earlier positions that contributed.
func (d *backtracker) from(pos, left int) (ok bool, conflicts conflictSet) {
	if pos == len(d.order) {
		return true, conflictSet{}
	}
	conflicts = d.none(pos)
	if d.spent() {
		d.cut = true
		return false, conflicts.everything()
	}
	if d.hopeless(pos) {
		return false, conflicts.everything()
	}
	i := d.order[pos]
	rows, more := d.candidates(i, &conflicts)
	if d.err != nil {
		return false, conflicts.everything()
	}
	d.cut = d.cut || more
	bans := len(d.banned[d.kinds.of[i]])
	defer func() { d.banned[d.kinds.of[i]] = d.banned[d.kinds.of[i]][:bans] }()
	for c, row := range rows {
		if c > 0 && left <= 0 {
			d.cut = true
			break
		}
		ok, theirs, tried := d.on(pos, row, left-min(c, 1))
		switch {
		case ok:
			return true, conflictSet{}
		case !tried:
			continue
		case d.err != nil:
			return false, theirs
		case !theirs.has(pos):
			return false, theirs
		}
		conflicts.join(theirs, pos)
	}
	if d.missing == d.slack {
		return false, conflicts
	}
	if len(rows) > 0 && left <= 0 {
		d.cut = true
		return false, conflicts
	}
	return d.passOver(pos, left-min(len(rows), 1), conflicts)
}

// passOver continues without the member of a position.
func (d *backtracker) passOver(pos, left int, conflicts conflictSet) (bool, conflictSet) {
	d.missing++
	ok, theirs := d.from(pos+1, left)
	d.missing--
	if ok {
		return true, conflictSet{}
	}
	if !theirs.has(pos) {
		return false, theirs
	}
	conflicts.join(theirs, pos)
	return false, conflicts
}

// on places the member of a position on a row and continues from there.
func (d *backtracker) on(pos int, row cluster.NodeIdx, left int) (ok bool, conflicts conflictSet, tried bool) {
	i := d.order[pos]
	class := d.classes.base[row]
	if slices.Contains(d.now.nodes, row) {
		class = touched
	}
	if no := d.take(i, place.Outcome{Nodes: d.kinds.state.Nodes(), Node: row, RunnerUp: cluster.NoNode}); no != nil {
		if no.err != nil {
			d.refused(i, no)
			return false, d.none(pos).everything(), true
		}
		d.cut = true
		return false, conflictSet{}, false
	}
	cut := d.cut
	d.cut = false
	ok, conflicts = d.from(pos+1, left)
	if ok {
		return true, conflicts, true
	}
	d.untake(i)
	if !d.cut && d.kinds.alone {
		k := d.kinds.of[i]
		d.banned[k] = append(d.banned[k], ban{row, class, pos})
	}
	d.cut = d.cut || cut
	return false, conflicts, true
}

// candidates returns the rows on which to try a member, those with the least capacity left first, one of each class.
// more reports that there are others. It adds to conflicts the members that took rows which are not candidates.
func (d *backtracker) candidates(i int, conflicts *conflictSet) (rows []cluster.NodeIdx, more bool) {
	d.tried++
	k := &d.kinds.all[d.kinds.of[i]]
	rows = d.of[d.kinds.of[i]]
	if d.all == nil && len(rows) > len(d.classes.base)/4 {
		rows = nil // a scan of all rows has the same result, and all rows are scanned at once
	}
	out, fit := d.g.Placer.FitWithin(d.g.state(), d.need.Members[i], d.g.noms, rows, d.fit[:0])
	d.fit = fit
	if out.Err != nil {
		d.fail(i, out.Err)
		return nil, false
	}
	d.classes.touch(&d.now)
	rows = nil
	var best []candidate
	for _, n := range fit {
		class := d.classes.of(n)
		if d.isBanned(d.kinds.of[i], n, class, conflicts) || !d.classes.first(class) {
			continue
		}
		var dropped bool
		best, dropped = keepTightest(best, candidate{n, d.kinds.tightness(k, n)}, d.width)
		more = more || dropped
	}
	for _, c := range best {
		rows = append(rows, c.row)
	}
	if len(fit) == 0 && d.missing == d.slack && d.now.count > d.best.count {
		d.now.blocked = -1
		d.look(i, d.all, byScore)
		d.keepBest()
	}
	d.addConflicts(k, conflicts)
	return rows, more
}

// fewTests is the number of rows and kinds up to which each step checks the demand of the remaining members.
const fewTests = 4096

// forwardCheck prepares the bounds that hopeless reads.
func (d *backtracker) forwardCheck() {
	if len(d.rows)*len(d.kinds.all) > fewTests || !d.kinds.known {
		return
	}
	d.rest, d.ask = make([][]int, len(d.order)+1), make([][]int64, len(d.order)+1)
	d.ask[len(d.order)] = make([]int64, len(d.kinds.resources))
	for pos := len(d.order) - 1; pos >= 0; pos-- {
		k := d.kinds.of[d.order[pos]]
		d.rest[pos], d.ask[pos] = d.rest[pos+1], slices.Clone(d.ask[pos+1])
		if !slices.Contains(d.rest[pos], k) {
			d.rest[pos] = append(slices.Clone(d.rest[pos]), k)
		}
		for at, amount := range d.kinds.all[k].amounts {
			d.ask[pos][at] = resource.Add(d.ask[pos][at], amount)
		}
	}
}

// hopeless reports whether it is proved that the members from a position on, if none of them may be left out any
// more, demand more of a resource than the rows have together that still fit one of them.
func (d *backtracker) hopeless(pos int) bool {
	if d.rest == nil || d.missing < d.slack {
		return false
	}
	have := d.have[:0]
	for range d.kinds.resources {
		have = append(have, 0)
	}
	d.have = have
	for _, n := range d.rows {
		if !d.useful(pos, n) {
			continue
		}
		for at := range have {
			have[at] = resource.Add(have[at], d.kinds.free(at, n))
		}
	}
	for at, ask := range d.ask[pos] {
		if ask > have[at] {
			return true
		}
	}
	return false
}

// useful reports whether a row has capacity for one of the members from a position on.
func (d *backtracker) useful(pos int, n cluster.NodeIdx) bool {
	for _, k := range d.rest[pos] {
		if d.kinds.copies(&d.kinds.all[k], n, 1) > 0 {
			return true
		}
	}
	return false
}

func (d *backtracker) isBanned(k int, n cluster.NodeIdx, class int32, conflicts *conflictSet) bool {
	for _, b := range d.banned[k] {
		if b.row == n && class == b.class || class != touched && b.class == class {
			conflicts.add(b.pos)
			return true
		}
	}
	return false
}

// candidate is a row with the capacity left after the member.
type candidate struct {
	row  cluster.NodeIdx
	left int64
}

// keepTightest inserts a candidate among the best so far, at most width. It reports whether a candidate was dropped for
// that.
func keepTightest(best []candidate, c candidate, width int) (kept []candidate, dropped bool) {
	at, _ := slices.BinarySearchFunc(best, c.left+1, func(b candidate, left int64) int {
		if b.left < left {
			return -1
		}
		return 1
	})
	if at >= width {
		return best, true
	}
	best = slices.Insert(best, at, c)
	if len(best) > width {
		return best[:width], true
	}
	return best, false
}

// addConflicts adds the members that may have taken rows from a member: those on a row that fitted it at first, and
// those that were passed over before it. If members depend on each other across rows, that may be any of them.
func (d *backtracker) addConflicts(k *kind, conflicts *conflictSet) {
	if !d.kinds.alone {
		*conflicts = conflicts.everything()
		return
	}
	for pos, i := range d.order[:conflicts.before] {
		n := d.now.nodes[i]
		if n == cluster.NoNode || n != cluster.NoNode && k.fits.Has(n) {
			conflicts.add(pos)
		}
	}
}
