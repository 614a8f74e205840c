// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Scorer is a plugin with its weight in a profile.
type Scorer struct {
	plugin.Scorer
	Weight int64
}

// Profile is what a search needs of a scheduling profile. The order of Filters decides which plugin a rejection is
// laid at: the first one that rejects.
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

// Placer searches for one profile. It remembers classes between decisions.
type Placer struct {
	profile Profile
	meter   Meter
	// firstLate is the index of the first filter that runs anew for each decision. Filters after a wide one run then
	// too, so that a rejection is laid at the first filter that rejects.
	firstLate int
	wide      []bool // by filter: it is prepared anew for each decision
	search    search // the one in hand

	classes map[*cluster.PodSpec]*class // see cluster.PodSpec.Alike
	newest  *class                      // ends of the list by last use
	oldest  *class
	bytes   int
	budget  int
	spare   *class // the last one dropped, for its columns

	kins   map[*cluster.PodSpec]*kin // see `cluster.PodSpec.Kin`
	recent cluster.Recent
	narrow bool // totals fit a code

	view cluster.NodeView // of the row in hand

	scratch  kept     // for pods that are judged on a few nodes only
	unfolded unfolded // of a class in its short form, where a search needs it

	// Columns that are worked in, by row or by change.
	column   []int64 // score, of one scorer at a time
	verdicts []plugin.Verdict
	sums     []int64

	eachRow bool // only tests set it: look at each row in every decision

	within []cluster.NodeIdx // the rows that the search in hand is kept to; nil means all

	groupings  []*grouping // those of all classes
	groupUses  uint64
	groupBytes int // of all groupings; bounded as classes are, apart from them
	facetSpace []plugin.Facet
	judged     []plugin.Verdict // row -> Fits; where the first rows of groups are judged
}

// Meter receives the name of the plugin that runs; see engine.Meter.
type Meter interface {
	Plugin(at plugin.Point, name string)
}

// New returns a Placer that keeps at most budget bytes of classes.
func New(p Profile, m Meter, budget int) *Placer {
	if len(p.Filters) > 255 {
		panic(fmt.Sprintf("place: %d filters, at most 255 fit a verdict", len(p.Filters)))
	}
	pl := &Placer{profile: p, meter: m, classes: map[*cluster.PodSpec]*class{}, kins: map[*cluster.PodSpec]*kin{},
		narrow: fitsCodes(p.Scorers), budget: budget, firstLate: len(p.Filters)}
	for i, f := range p.Filters {
		_, wide := f.(plugin.WideFilter)
		pl.wide = append(pl.wide, wide)
		if wide && i < pl.firstLate {
			pl.firstLate = i
		}
	}
	return pl
}

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
	if sr.grouped.grouping != nil {
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
	key := alike(p)
	c := pl.classes[key]
	if c != nil {
		pl.follow(s, p, c)
		pl.used(c)
		sr.kept = &c.kept
	} else {
		sr.kept = &pl.scratch
		pl.prepareFilters(s, p, sr.kept)
	}
	pl.preFilter(s, sr)
	if sr.err != nil || sr.nowhere() {
		return sr
	}
	few := sr.only != nil && len(sr.only) <= fewNodes
	switch {
	case few:
		sr.rows = rowsOf(s, sr.only, sr.rowSpace)
		sr.rowSpace = sr.rows
		if c == nil {
			pl.prepareScores(s, p, sr.kept)
			sr.kept.few(s, sr.rows)
		}
	case c == nil:
		c = pl.newClass(key)
		c.filters, pl.scratch.filters = pl.scratch.filters, c.filters
		pl.fill(s, p, c)
		pl.remember(c)
		sr.kept = &c.kept
	}
	if !few {
		sr.class = c
	}
	sr.verdicts, sr.base, sr.judged = sr.kept.verdicts, sr.kept.base, true
	if c != nil && c.coded.kin != nil {
		sr.coded, sr.folded = &c.coded, true
	}
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
	if sr.grouped.grouping != nil && sr.grouped.late {
		sr.grouped.late = false
		pl.lateFilters(s, sr)
	}
}

// alike is the key of p's class.
func alike(p *cluster.Pod) *cluster.PodSpec {
	if p.Spec.Alike != nil {
		return p.Spec.Alike
	}
	return p.Spec
}

// reduced is p as node-local plugins may see it: all pods of its class have this spec.
func reduced(p *cluster.Pod) *cluster.Pod {
	if p.Spec.Alike == nil {
		return p
	}
	q := *p
	q.Spec = p.Spec.Alike
	return &q
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
