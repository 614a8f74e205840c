// SPDX-License-Identifier: Apache-2.0

package place

import (
	"math"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// code is what is known of a row in two bytes: a total of weighted scores where it fits, ^i where the verdict is
// number i in `kin.book`.
type code = int16

// `kin` is the equivalence class shared by specs that differ in requests alone (`cluster.PodSpec.Kin`): what those
// filters and scorers say that read only node objects (plugin.OfNode).
type kin struct {
	spec    *cluster.PodSpec
	filters []ofNode
	scorers []Scorer // that need no normalising, and their prepared forms
	scores  []plugin.PodScore
	// raws are the scores that are normalised: what a row gets from them depends on which rows fit. Few rows differ in
	// them, so they are kept by sets; set 0 is 0 in all of them.
	raws   []rawScore
	sets   []rawSet
	setIDs map[rawSet]int16
	setOf  []int16 // row -> index in sets

	codes []code // without what raws give
	// book numbers verdicts, those of classes included. When closed is set, it or sets is full, and no class that
	// shares it keeps codes.
	book   []plugin.Verdict
	number map[plugin.Verdict]code // verdict -> its code
	closed bool
	last   plugin.Verdict // the one that was looked up last
	lastAs code

	made    uint64 // how often all rows were judged anew, from 1
	seq     uint64 // the store's journal of nodes is applied up to here
	epochs  []uint64
	spoiled bool // a search that panicked may have left it half done
	classes int  // that use it
}

// maxRaws is the maximum number of normalised scorers in a `kin`: upstream has two of them that read nodes alone.
const maxRaws = 3

// rawSet is the raw scores of a row, in the order of `kin.raws`.
type rawSet [maxRaws]int64

type rawScore struct {
	plugin.PodScore
	normal plugin.Normal
	weight int64
}

type ofNode struct {
	plugin.PodFilter
	tag plugin.Tag
}

// part of a profile that a class needs besides its `kin`: filters and scorers that read amounts.
type sized struct {
	filters []ofNode
	scorers []Scorer
	scores  []plugin.PodScore
	halves  []half // of scores, in their order
	rawAt   []int  // `kin.raws` -> index in the scorers of the class
}

// half is the part of a score that is the same for all classes; is is nil for a score without one.
type half struct {
	is   plugin.Halved
	of   any // its name
	fill func(s cluster.Snapshot, lo, hi cluster.NodeIdx, out []int64)
}

func halfOf(score plugin.PodScore) half {
	if h, can := score.(plugin.Halved); can {
		if of := h.Half(); of != nil {
			return half{h, of, h.HalfColumn}
		}
	}
	return half{}
}

// split sorts what a class has prepared into what its `kin` shares and what it has for itself; ok is false when there
// is something else, or totals may not fit a code.
func (pl *Placer) split(k *kept) (shared *kin, own sized, ok bool) {
	shared = &kin{number: map[plugin.Verdict]code{}, sets: make([]rawSet, 1), setIDs: map[rawSet]int16{{}: 0}}
	if !pl.narrow || k.only != nil {
		return nil, own, false
	}
	for i := range k.covers {
		f := k.plans[i].Filter
		if f == nil {
			continue
		}
		_, ages := f.(plugin.Aging)
		if _, is := f.(plugin.OfNode); is && !ages {
			shared.filters = append(shared.filters, ofNode{f, plugin.TagOf(i)})
		} else if a, can := f.(plugin.OfAmounts); can && a.OfAmounts() {
			own.filters = append(own.filters, ofNode{f, plugin.TagOf(i)})
		} else {
			return nil, own, false
		}
	}
	for i := range k.scorers {
		sc := &k.scorers[i]
		if _, is := sc.score.(plugin.OfNode); is {
			if sc.Normal() == plugin.AsIs {
				shared.scorers, shared.scores = append(shared.scorers, sc.Scorer), append(shared.scores, sc.score)
			} else {
				shared.raws = append(shared.raws, rawScore{sc.score, sc.Normal(), sc.Weight})
				own.rawAt = append(own.rawAt, i)
			}
		} else if a, can := sc.score.(plugin.OfAmounts); can && a.OfAmounts() && sc.Normal() == plugin.AsIs {
			own.scorers, own.scores, own.halves = append(own.scorers, sc.Scorer), append(own.scores, sc.score), append(own.halves, halfOf(sc.score))
		} else {
			return nil, own, false
		}
	}
	return shared, own, len(shared.raws) <= maxRaws
}

// fitsCodes reports whether totals of a profile fit a code.
func fitsCodes(scorers []Scorer) bool {
	var most int64
	for _, sc := range scorers {
		if sc.Weight < 0 || sc.Weight > math.MaxInt16 {
			return false
		}
		most += sc.Weight * plugin.MaxScore
	}
	return most <= math.MaxInt16
}

// kinOf finds or makes the `kin` of a class that was just prepared. It is nil if codes cannot represent the class.
func (pl *Placer) kinOf(s cluster.Snapshot, spec *cluster.PodSpec, k *kept) (*kin, sized) {
	if spec.Kin == nil {
		return nil, sized{}
	}
	fresh, own, ok := pl.split(k)
	if !ok {
		return nil, own
	}
	known := pl.kins[spec.Kin]
	if known == nil {
		known, fresh.spec = fresh, spec.Kin
		pl.kins[spec.Kin] = known
	}
	known.classes++
	pl.bytes -= known.size()
	known.follow(s, pl)
	pl.bytes += known.size()
	return known, own
}

// leave ends the use of k by a class.
func (pl *Placer) leave(k *kin) {
	if k == nil {
		return
	}
	if k.classes--; k.classes == 0 {
		delete(pl.kins, k.spec)
		pl.bytes -= k.size()
	}
}

func (k *kin) size() int { return 4 * len(k.codes) }

// follow brings codes up to date.
func (k *kin) follow(s cluster.Snapshot, pl *Placer) {
	changes, next, ok := s.NodeChanges(k.seq)
	rows := s.Rows()
	k.seq = next
	if len(k.codes) < rows {
		none := k.codeOf(plugin.NoNode)
		for len(k.codes) < rows {
			k.codes, k.setOf = append(k.codes, none), append(k.setOf, 0)
		}
	}
	if k.made == 0 || k.spoiled || !ok || len(changes) > rows || k.stale(s) {
		k.made++
		k.spoiled = false
		k.epochs = k.epochs[:0]
		for _, score := range k.scores {
			k.epochs = append(k.epochs, score.Epoch(s))
		}
		for _, score := range k.raws {
			k.epochs = append(k.epochs, score.Epoch(s))
		}
		k.judge(s, pl, 0, cluster.NodeIdx(rows))
		return
	}
	for _, n := range changes {
		k.judge(s, pl, n, n+1)
	}
}

// stale reports whether scores of rows may have changed whose node did not.
func (k *kin) stale(s cluster.Snapshot) bool {
	for i, score := range k.scores {
		if score.Epoch(s) != k.epochs[i] {
			return true
		}
	}
	for i, score := range k.raws {
		if score.Epoch(s) != k.epochs[len(k.scores)+i] {
			return true
		}
	}
	return false
}

// judge brings rows lo to hi-1 up to date.
func (k *kin) judge(s cluster.Snapshot, pl *Placer, lo, hi cluster.NodeIdx) {
	pl.makeRoom(int(hi))
	verdicts, sums, column := pl.verdicts[:hi], pl.sums[:hi], pl.column[:hi]
	for n := lo; n < hi; n++ {
		verdicts[n], sums[n] = plugin.Fits, 0
		if s.Node(n) == nil {
			verdicts[n] = plugin.NoNode
		}
	}
	for _, f := range k.filters {
		f.Column(s, lo, hi, f.tag, verdicts)
	}
	for i, score := range k.scores {
		score.Column(s, lo, hi, column)
		addWeighted(sums[lo:hi], column[lo:hi], k.scorers[i].Weight)
	}
	for n := lo; n < hi; n++ {
		k.codes[n] = k.join(0, verdicts[n], sums[n])
	}
	k.judgeRaws(s, column, lo, hi)
}

// judgeRaws brings the sets of rows lo to hi-1 up to date.
func (k *kin) judgeRaws(s cluster.Snapshot, column []int64, lo, hi cluster.NodeIdx) {
	clear(k.setOf[lo:hi])
	for i := range k.raws {
		k.raws[i].Column(s, lo, hi, column)
		for n := lo; n < hi; n++ {
			if column[n] != 0 && s.Node(n) != nil {
				set := k.sets[k.setOf[n]]
				set[i] = column[n]
				k.setOf[n] = k.setID(set)
			}
		}
	}
}

// setID numbers a set.
func (k *kin) setID(set rawSet) int16 {
	id, known := k.setIDs[set]
	if !known {
		if len(k.sets) > math.MaxInt16 {
			k.closed = true
			return 0
		}
		id = int16(len(k.sets))
		k.sets, k.setIDs[set] = append(k.sets, set), id
	}
	return id
}

// join is the code of a row: shared is the code in the `kin`, to which v and sum are added.
func (k *kin) join(shared code, v plugin.Verdict, sum int64) code {
	if shared >= 0 {
		if v != plugin.Fits {
			return k.codeOf(v)
		}
		if sum += int64(shared); uint64(sum) > math.MaxInt16 {
			k.closed = true
			return 0
		}
		return code(sum)
	}
	// The first filter that rejects has the word; without one, the row has no node.
	was := k.book[^shared]
	if v == plugin.Fits || was < v {
		return shared
	}
	return k.codeOf(v)
}

// codeOf numbers a verdict.
func (k *kin) codeOf(v plugin.Verdict) code {
	if v == k.last && v != plugin.Fits {
		return k.lastAs
	}
	c, known := k.number[v]
	if !known {
		if len(k.book) > math.MaxInt16 {
			k.closed = true
			return ^code(0)
		}
		c = ^code(len(k.book))
		k.book = append(k.book, v)
		k.number[v] = c
	}
	k.last, k.lastAs = v, c
	return c
}

func (k *kin) verdict(c code) plugin.Verdict {
	if c >= 0 {
		return plugin.Fits
	}
	return k.book[^c]
}

func addWeighted(sums, column []int64, weight int64) {
	column = column[:len(sums)]
	for i, v := range column {
		sums[i] += weight * v
	}
}

// makeRoom makes the columns that are worked in long enough for some rows.
func (pl *Placer) makeRoom(rows int) {
	if more := rows - len(pl.verdicts); more > 0 {
		pl.verdicts = append(pl.verdicts, make([]plugin.Verdict, more)...)
		pl.sums = append(pl.sums, make([]int64, more)...)
	}
	if more := rows - len(pl.column); more > 0 {
		pl.column = append(pl.column, make([]int64, more)...)
	}
}
