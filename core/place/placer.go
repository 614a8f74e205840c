// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place/classes"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Scorer is a plugin with its weight in a profile.
type Scorer = classes.Scorer

// Profile is what a search needs of a scheduling profile. The order of Filters decides which plugin is reported for a
// rejection: the first one that rejects.
type Profile struct {
	Filters []plugin.Filter
	Scorers []Scorer
	Search  Search
	// Window is what searches of the Window strategy share, across profiles; nil when no profile has it.
	Window *Window
	// Foreign may be nil.
	Foreign Foreign
}

// DefaultClassBytes bounds the memory of the classes of one Placer.
const DefaultClassBytes = 256 << 20

// Placer searches for one profile. It remembers classes of pods between decisions.
type Placer struct {
	profile Profile
	meter   Meter
	cache   *classes.Cache
	search  search // the current one
	fitOf   classFit

	// ignoresPods: filter -> the pods of a row make no difference to its verdict.
	ignoresPods []bool

	view cluster.NodeView // of the row that is evaluated

	eachRow bool // only tests set it: look at each row in every decision

	shared []plugin.Shared // of the plugins; each once

	within []cluster.NodeIdx // the rows to which the current search is restricted; nil means all

	facetSpace []plugin.Facet
	judged     []plugin.Verdict // row -> Fits; where the first rows of groups are judged
}

// Meter receives the name of the plugin that runs, and amounts of work; see engine.Meter.
type Meter = classes.Meter

// New returns a Placer for a profile of at most 255 filters. It keeps at most budget bytes of classes.
func New(p Profile, m Meter, budget int) *Placer {
	p.Scorers = slices.Clone(p.Scorers)
	for i, sc := range p.Scorers {
		if _, uncached := sc.Scorer.(plugin.UncachedScorer); !uncached && !sc.Reads().Cached() {
			p.Scorers[i].Scorer = plugin.ScoreEachDecision(sc.Scorer)
		}
	}
	pl := &Placer{profile: p, meter: m, cache: classes.New(p.Filters, p.Scorers, m, budget)}
	for _, f := range p.Filters {
		pl.ignoresPods = append(pl.ignoresPods, plugin.ReadsOf(f).IgnoresPods())
		pl.share(f)
	}
	for _, sc := range p.Scorers {
		pl.share(sc.Scorer)
	}
	return pl
}

// share notes the state that a plugin shares with others, if there is any.
func (pl *Placer) share(p plugin.Plugin) {
	if sharing, is := p.(plugin.Sharing); is && !slices.Contains(pl.shared, sharing.Shared()) {
		pl.shared = append(pl.shared, sharing.Shared())
	}
}

// decide starts a decision in the state that plugins share.
func (pl *Placer) decide(s cluster.Snapshot, p *cluster.Pod) {
	for _, state := range pl.shared {
		state.Begin(s, p)
	}
}

// Drop forgets what is known of pods like p. A panic in a plugin may have interrupted an update of it.
func (pl *Placer) Drop(p *cluster.Pod) { pl.cache.Drop(p) }

// Classes returns the number of classes and the bytes they take.
func (pl *Placer) Classes() (n, bytes int) { return pl.cache.Size() }

// Outcome is the answer of a search.
type Outcome struct {
	Nodes    int // how many nodes there are
	Feasible int // how many of them were found to fit
	// Node is the chosen row, cluster.NoNode when none fits.
	Node  cluster.NodeIdx
	Total int64
	// Tied is how many nodes share the best total; the draw chose among them.
	Tied int
	// RunnerUp is the next best row, cluster.NoNode when only one was ranked.
	RunnerUp      cluster.NodeIdx
	RunnerUpTotal int64
	// Err is set, and Node is cluster.NoNode, when a plugin or foreign code met an error.
	Err error
	// Advance is by how many nodes the search moved on in the window; see Window.Advance.
	Advance int

	// Path is how the nodes were searched.
	Path Path

	search *search // what the answer was read from; valid until the Placer's next search
}

// Path is a way to search the nodes. All paths have the same result.
type Path uint8

// The ways, the cheapest first.
const (
	// Scanned looks at each row.
	Scanned Path = iota
	// Grouped judges one row of each group of rows that no uncached plugin can distinguish.
	Grouped
	// Ranked looks at no row: the class has them in order.
	Ranked
)
