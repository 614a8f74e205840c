// SPDX-License-Identifier: Apache-2.0

package classes

import (
	"math"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// rowCode is what is known of a row in two bytes: a total of weighted scores where it fits, ^i where the verdict is
// number i in sharedClass.dictionary.
type rowCode = int16

// sharedClass is the equivalence class shared by specs that differ in requests alone (`cluster.PodSpec.WithoutRequests`): what
// those filters and scorers say that read only node objects (plugin.ReadsNode).
type sharedClass struct {
	spec    *cluster.PodSpec
	filters []taggedFilter
	scorers []Scorer // that need no normalising
	scores  []plugin.PodScore
	// raws are the scores that are normalised: what a row gets from them depends on which rows fit. Few rows differ in
	// them, so a row has the number of a set of them.
	raws   []rawScore
	sets   []rawSet         // Invariant: sets[0] is 0 in all scores
	setIDs map[rawSet]int16 // set -> index in sets
	setOf  []int16          // row -> index in sets. Invariant: as long as codes

	codes []rowCode // row -> code by filters and scorers, without raws
	// dictionary numbers verdicts, those of the classes included.
	dictionary []plugin.Verdict
	codesOf    map[plugin.Verdict]rowCode // verdict -> its code. Invariant: dictionary[^codesOf[v]] == v
	// overflowed is set if dictionary or sets is full, or a total does not fit a code: no class that uses it is
	// compact.
	overflowed  bool
	lastVerdict plugin.Verdict // the one that was looked up last
	lastCode    rowCode

	generation uint64      // how often all rows were evaluated anew, from 1
	seq        uint64      // the store's journal of nodes is applied up to here
	versions   []versioned // of scores and raws that depend on more than the row
	invalid    bool        // a panic may have interrupted an update
	size       int         // bytes that it counts for
	users      int         // classes that use it. Invariant: at least 1 while it is in sharedClasses
}

// rawSet is the raw scores of a row, in the order of sharedClass.raws.
type rawSet [maxRaws]int64

type rawScore struct {
	plugin.PodScore
	normal plugin.Normal
	weight int64
}

// taggedFilter is a prepared filter with its index in the profile.
type taggedFilter struct {
	plugin.PodFilter
	tag plugin.Tag
}

func newSharedClass() *sharedClass {
	return &sharedClass{
		codesOf: map[plugin.Verdict]rowCode{},
		sets:    make([]rawSet, 1),
		setIDs:  map[rawSet]int16{{}: 0},
	}
}

func (k *sharedClass) bytes() int { return 4 * len(k.codes) }

// update brings codes and sets up to date.
func (k *sharedClass) update(w *workspace, s cluster.Snapshot) {
	changes, next, ok := s.NodeChanges(k.seq)
	rows := s.Rows()
	k.seq = next
	if len(k.codes) < rows {
		none := k.codeOf(plugin.NoNode)
		for len(k.codes) < rows {
			k.codes, k.setOf = append(k.codes, none), append(k.setOf, 0)
		}
	}
	if k.generation == 0 || k.invalid || !ok || len(changes) > rows || k.stale(s) {
		k.generation++
		k.invalid = false
		k.versions = k.versions[:0]
		for _, score := range k.scores {
			k.versions = appendVersion(k.versions, score, s)
		}
		for _, score := range k.raws {
			k.versions = appendVersion(k.versions, score.PodScore, s)
		}
		w.meter.Did(record.RowsEvaluated, rows)
		k.evaluate(w, s, 0, cluster.NodeIdx(rows))
		return
	}
	w.meter.Did(record.RowsCaughtUp, len(changes))
	for _, n := range changes {
		k.evaluate(w, s, n, n+1)
	}
}

// stale reports whether scores of rows may have changed whose node did not.
func (k *sharedClass) stale(s cluster.Snapshot) bool {
	return outdated(k.versions, s)
}

// evaluate brings rows lo to hi-1 up to date.
func (k *sharedClass) evaluate(w *workspace, s cluster.Snapshot, lo, hi cluster.NodeIdx) {
	w.grow(int(hi))
	verdicts, sums, scores := w.verdicts[:hi], w.sums[:hi], w.scores[:hi]
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
		score.Column(s, lo, hi, scores)
		addWeighted(sums[lo:hi], scores[lo:hi], k.scorers[i].Weight)
	}
	for n := lo; n < hi; n++ {
		k.codes[n] = k.combine(0, verdicts[n], sums[n])
	}
	k.evaluateRaws(s, scores, lo, hi)
}

// evaluateRaws brings the sets of rows lo to hi-1 up to date.
func (k *sharedClass) evaluateRaws(s cluster.Snapshot, scores []int64, lo, hi cluster.NodeIdx) {
	clear(k.setOf[lo:hi])
	for i := range k.raws {
		k.raws[i].Column(s, lo, hi, scores)
		for n := lo; n < hi; n++ {
			if scores[n] != 0 && s.Node(n) != nil {
				set := k.sets[k.setOf[n]]
				set[i] = scores[n]
				k.setOf[n] = k.setID(set)
			}
		}
	}
}

// setID numbers a set.
func (k *sharedClass) setID(set rawSet) int16 {
	id, known := k.setIDs[set]
	if !known {
		if len(k.sets) > math.MaxInt16 {
			k.overflowed = true
			return 0
		}
		id = int16(len(k.sets))
		k.sets, k.setIDs[set] = append(k.sets, set), id
	}
	return id
}

// combine is the code of a row: shared is its code in the sharedClass, to which v and sum are added.
func (k *sharedClass) combine(shared rowCode, v plugin.Verdict, sum int64) rowCode {
	if shared >= 0 {
		if v != plugin.Fits {
			return k.codeOf(v)
		}
		if sum += int64(shared); uint64(sum) > math.MaxInt16 {
			k.overflowed = true
			return 0
		}
		return rowCode(sum)
	}
	// The first filter that rejects decides; without one, the row has no node.
	was := k.dictionary[^shared]
	if v == plugin.Fits || was < v {
		return shared
	}
	return k.codeOf(v)
}

// codeOf numbers a verdict.
func (k *sharedClass) codeOf(v plugin.Verdict) rowCode {
	if v == k.lastVerdict && v != plugin.Fits {
		return k.lastCode
	}
	c, known := k.codesOf[v]
	if !known {
		if len(k.dictionary) > math.MaxInt16 {
			k.overflowed = true
			return ^rowCode(0)
		}
		c = ^rowCode(len(k.dictionary))
		k.dictionary = append(k.dictionary, v)
		k.codesOf[v] = c
	}
	k.lastVerdict, k.lastCode = v, c
	return c
}

// verdict is the verdict of a code.
func (k *sharedClass) verdict(c rowCode) plugin.Verdict {
	if c >= 0 {
		return plugin.Fits
	}
	return k.dictionary[^c]
}

func addWeighted(sums, scores []int64, weight int64) {
	scores = scores[:len(sums)]
	for i, v := range scores {
		sums[i] += weight * v
	}
}
