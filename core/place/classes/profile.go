// SPDX-License-Identifier: Apache-2.0

package classes

import (
	"fmt"
	"math"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Scorer is a plugin with its weight in a profile.
type Scorer struct {
	plugin.Scorer
	Weight int64
}

// PreScoreError returns the error of an attempt in which the scorer cannot score.
func (sc Scorer) PreScoreError(err error) error {
	return fmt.Errorf("running PreScore plugin %q: %w", sc.Name(), err)
}

// Meter receives the name of the plugin that runs; see engine.Meter.
type Meter interface {
	Plugin(at plugin.Point, name string)
}

// profile is the plugins that a Cache runs. It does not change after New.
type profile struct {
	filters []plugin.Filter
	scorers []Scorer
	// wide: filter -> it is prepared anew for each decision.
	wide []bool
	// firstWide is the index of the first wide filter, len(filters) without one. Filters after it run anew for each
	// decision too, so that the first filter that rejects a row is the one that is reported.
	firstWide int
	// compactable is set if each total of the scorers fits a rowCode.
	compactable bool
}

func newProfile(filters []plugin.Filter, scorers []Scorer) profile {
	if len(filters) > 255 {
		panic(fmt.Sprintf("classes: %d filters, at most 255 fit a verdict", len(filters)))
	}
	pr := profile{filters: filters, scorers: scorers, firstWide: len(filters), compactable: fitCodes(scorers)}
	for i, f := range filters {
		_, wide := f.(plugin.WideFilter)
		pr.wide = append(pr.wide, wide)
		if wide && i < pr.firstWide {
			pr.firstWide = i
		}
	}
	return pr
}

// fitCodes reports whether totals of scorers fit a rowCode.
func fitCodes(scorers []Scorer) bool {
	var most int64
	for _, sc := range scorers {
		if sc.Weight < 0 || sc.Weight > math.MaxInt16 {
			return false
		}
		most += sc.Weight * plugin.MaxScore
	}
	return most <= math.MaxInt16
}

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

// keyOf is the spec that identifies the class of p.
func keyOf(p *cluster.Pod) *cluster.PodSpec {
	if p.Spec.Alike != nil {
		return p.Spec.Alike
	}
	return p.Spec
}

// Representative returns p as node-local plugins may see it: with the spec that all pods of its class have.
func Representative(p *cluster.Pod) *cluster.Pod {
	if p.Spec.Alike == nil {
		return p
	}
	q := *p
	q.Spec = p.Spec.Alike
	return &q
}
