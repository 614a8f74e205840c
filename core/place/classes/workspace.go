// SPDX-License-Identifier: Apache-2.0

package classes

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// maxRaws is the maximum number of normalised scorers in a sharedClass: upstream has two of them that read nodes alone.
const maxRaws = 3

// workspace holds the columns in which the classes of a Cache compute, so that no class needs its own. Each column is
// valid until the next computation.
type workspace struct {
	meter    Meter
	recent   cluster.Recent
	scores   []int64 // of one scorer at a time
	verdicts []plugin.Verdict
	sums     []int64
	expanded expanded
}

// expanded is the verdicts and scores of a class in its compact form, written out by row.
type expanded struct {
	verdicts []plugin.Verdict
	base     []int64
	raws     [maxRaws][]int64 // in the order of sharedClass.raws
}

// growScores makes the column of scores long enough for some rows.
func (w *workspace) growScores(rows int) {
	if more := rows - len(w.scores); more > 0 {
		w.scores = append(w.scores, make([]int64, more)...)
	}
}

// grow makes the columns long enough for some rows.
func (w *workspace) grow(rows int) {
	if more := rows - len(w.verdicts); more > 0 {
		w.verdicts = append(w.verdicts, make([]plugin.Verdict, more)...)
		w.sums = append(w.sums, make([]int64, more)...)
	}
	w.growScores(rows)
}

// grow makes the columns long enough for some rows.
func (e *expanded) grow(rows int) {
	more := rows - len(e.verdicts)
	if more <= 0 {
		return
	}
	e.verdicts = append(e.verdicts, make([]plugin.Verdict, more)...)
	e.base = append(e.base, make([]int64, more)...)
	for i := range e.raws {
		e.raws[i] = append(e.raws[i], make([]int64, more)...)
	}
}
