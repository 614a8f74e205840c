// SPDX-License-Identifier: Apache-2.0

package classes

import (
	"fmt"
	"math"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Scorer is a plugin with its weight in a profile.
type Scorer struct {
	plugin.Scorer
	Weight int64
}

// Reads returns what the plugin declares to read.
func (sc Scorer) Reads() plugin.Reads { return plugin.ReadsOf(sc.Scorer) }

// PreScoreError returns the error of an attempt in which the scorer cannot score.
func (sc Scorer) PreScoreError(err error) error {
	return fmt.Errorf("running PreScore plugin %q: %w", sc.Name(), err)
}

// Meter receives the name of the plugin that runs, and amounts of work; see engine.Meter.
type Meter interface {
	Plugin(at plugin.Point, name string)
	Did(work record.Work, n int)
}

// profile is the plugins that a Cache runs. It does not change after New.
type profile struct {
	filters []plugin.Filter
	scorers []Scorer
	// reads: filter -> what it declares to read.
	reads []plugin.Reads
	// uncached: filter -> it is prepared anew for each decision.
	uncached []bool
	// firstUncached is the index of the first uncached filter, len(filters) without one. Filters after it run anew for
	// each decision too, so that the first filter that rejects a row is the one that is reported.
	firstUncached int
	// compactable is set if each total of the scorers fits a rowCode.
	compactable bool
}

func newProfile(filters []plugin.Filter, scorers []Scorer) profile {
	if len(filters) > 255 {
		panic(fmt.Sprintf("classes: %d filters, at most 255 fit a verdict", len(filters)))
	}
	pr := profile{filters: filters, scorers: scorers, firstUncached: len(filters), compactable: fitCodes(scorers)}
	for i, f := range filters {
		reads := plugin.ReadsOf(f)
		uncached := !reads.Cached()
		pr.reads, pr.uncached = append(pr.reads, reads), append(pr.uncached, uncached)
		if uncached && i < pr.firstUncached {
			pr.firstUncached = i
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
