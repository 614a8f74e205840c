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

// Nominations returns the nodes on which pods are expected that are not there yet.
type Nominations interface {
	// NominatedNodes are the nodes with nominated pods, sorted by name.
	NominatedNodes() []string
	// NominatedOn are the pods nominated to a node, in a fixed order.
	NominatedOn(node string) []*cluster.Pod
}

// DefaultClassBytes bounds the memory of the classes of one Placer.
const DefaultClassBytes = 256 << 20

// Placer searches for one profile. It remembers classes of pods between decisions.
type Placer struct {
	profile Profile
	meter   Meter
	cache   *classes.Cache
	search  search // the one in hand

	view cluster.NodeView // of the row in hand

	eachRow bool // only tests set it: look at each row in every decision

	within []cluster.NodeIdx // the rows that the search in hand is kept to; nil means all

	facetSpace []plugin.Facet
	judged     []plugin.Verdict // row -> Fits; where the first rows of groups are judged
}

// Meter receives the name of the plugin that runs; see engine.Meter.
type Meter = classes.Meter

// New returns a Placer for a profile of at most 255 filters. It keeps at most budget bytes of classes.
func New(p Profile, m Meter, budget int) *Placer {
	return &Placer{profile: p, meter: m, cache: classes.New(p.Filters, p.Scorers, m, budget)}
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
	// Looked is by how many nodes the search moved on in the window; see Window.Advance.
	Looked int

	// Path is how the nodes were looked at.
	Path Path

	look *search // what the answer was read from; good until the Placer's next search
}

// Path is a way to search the nodes. All paths have the same result.
type Path uint8

// The ways, the cheapest first.
const (
	// Scanned looks at each row.
	Scanned Path = iota
	// Grouped judges one row of each group of rows that no wide plugin can distinguish.
	Grouped
	// Ranked looks at no row: the class has them in order.
	Ranked
)

// fewNodes is up to how many named nodes a pod is judged on singly.
const fewNodes = 64

// Place looks for the best node for p. draw(n) chooses among n: nodes to sample first, if the strategy samples, tied
// nodes last. Nothing of the Placer's Window moves; see Outcome.Looked.
func (pl *Placer) Place(s cluster.Snapshot, p *cluster.Pod, noms Nominations, draw func(n int) int) Outcome {
	out := pl.place(s, p, noms, draw)
	if out.Node == cluster.NoNode {
		out.look.unfold() // readers of the outcome read every row
	}
	return out
}

func (pl *Placer) place(s cluster.Snapshot, p *cluster.Pod, noms Nominations, draw func(n int) int) Outcome {
	if pl.profile.Search.Strategy == FixedWindow {
		pl.profile.Window.refresh(s) // also for a pod that no node is looked at for: upstream takes a snapshot for it
	}
	sr := pl.begin(s, p)
	if n, ok := pl.ownFirst(s, sr, noms); ok {
		return Outcome{Nodes: s.Nodes(), Node: n, RunnerUp: cluster.NoNode, Feasible: 1, Tied: 1, look: sr}
	}
	pl.nominated(s, sr, noms)
	if sr.err == nil && !sr.nowhere() && !pl.group(s, sr) {
		pl.lateFilters(s, sr)
	}
	out := Outcome{Nodes: s.Nodes(), Node: cluster.NoNode, RunnerUp: cluster.NoNode, look: sr}
	if sr.err != nil {
		pl.forgiveOwn(s, sr)
	}
	windowed := pl.profile.Search.Strategy == FixedWindow && sr.judged
	if out.Err = sr.err; out.Err != nil && !windowed || sr.nowhere() {
		return out
	}
	if sr.err == nil {
		if n, ok := pl.own(s, sr); ok {
			out.Node, out.Feasible, out.Tied = n, 1, 1
			return out
		}
	}
	if windowed {
		out.Looked = pl.lookThrough(s, sr)
	}
	if out.Err = sr.err; out.Err != nil {
		return out
	}
	if sr.grouped.active {
		out.Path = Grouped
		pl.chooseGrouped(s, sr, &out, draw)
		if out.Node == cluster.NoNode {
			pl.complete(s, sr)
		}
		return out
	}
	pl.askForeign(s, sr)
	if out.Err = sr.err; out.Err != nil {
		return out
	}
	found := sr.sample(pl.profile.Search, draw)
	pl.choose(s, sr, &out, draw)
	out.Feasible = max(out.Feasible, found)
	return out
}

// Explain is Place without what would show outside: foreign code is not asked, nothing is sampled, every node is looked
// at, and nothing is chosen by a draw.
func (pl *Placer) Explain(s cluster.Snapshot, p *cluster.Pod, noms Nominations) Outcome {
	sr := pl.look(s, p, noms)
	if sr.err == nil && !sr.nowhere() {
		pl.lateFilters(s, sr)
	}
	out := Outcome{Nodes: s.Nodes(), Node: cluster.NoNode, RunnerUp: cluster.NoNode, look: sr}
	if out.Err = sr.err; out.Err != nil || sr.nowhere() {
		return out
	}
	for i := range sr.len() {
		if sr.verdicts[sr.at(i)] == plugin.Fits {
			out.Feasible++
		}
	}
	return out
}

// look returns the verdicts of the native filters before the first wide one for p, up to date.
func (pl *Placer) look(s cluster.Snapshot, p *cluster.Pod, noms Nominations) *search {
	sr := pl.find(s, p, noms)
	sr.unfold()
	return sr
}

// find is look, with verdicts that may have to be unfolded before rows are looked at.
func (pl *Placer) find(s cluster.Snapshot, p *cluster.Pod, noms Nominations) *search {
	sr := pl.begin(s, p)
	pl.nominated(s, sr, noms)
	return sr
}

// begin is find before nominations.
func (pl *Placer) begin(s cluster.Snapshot, p *cluster.Pod) *search {
	sr := &pl.search
	sr.begin(pl, s, p)
	var kept bool
	sr.class, kept = pl.cache.Find(s, p)
	pl.preFilter(s, sr)
	if sr.err != nil || sr.nowhere() {
		return sr
	}
	few := sr.only != nil && len(sr.only) <= fewNodes
	switch {
	case few:
		sr.rows = rowsOf(s, sr.only, sr.rowSpace)
		sr.rowSpace = sr.rows
		if !kept {
			pl.cache.EvaluateSingle(s, p, sr.rows)
		}
	case !kept:
		sr.class = pl.cache.Keep(s, p)
	}
	sr.judged, sr.folded = true, true
	if sr.only != nil && !few {
		sr.exclude(s)
	}
	if pl.within != nil {
		sr.stayWithin(pl.within)
	}
	return sr
}

// complete judges each row where groups were judged.
func (pl *Placer) complete(s cluster.Snapshot, sr *search) {
	if sr.grouped.active && sr.grouped.late {
		sr.grouped.late = false
		pl.lateFilters(s, sr)
	}
}

func rowsOf(s cluster.Snapshot, names map[string]struct{}, into []cluster.NodeIdx) []cluster.NodeIdx {
	if into = into[:0]; into == nil {
		into = []cluster.NodeIdx{} // nil would mean all rows, and perhaps none of the names exists
	}
	for name := range names { // order: the rows are sorted below
		if n, ok := s.Find(name); ok {
			into = append(into, n)
		}
	}
	slices.Sort(into)
	return into
}
