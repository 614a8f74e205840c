// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"math"
	"math/bits"
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
}

// Nominations tells where pods are expected that are not there yet.
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
	classes map[*cluster.PodSpec]*class
	newest  *class // ends of the list by last use
	oldest  *class
	bytes   int
	budget  int
	spare   *class // the last one dropped, for its columns

	scratch lookup // for pods that are judged on a few nodes only
}

// Meter is told which plugin works; see engine.Meter.
type Meter interface{ Plugin(name string) }

// New returns a Placer that keeps at most budget bytes of classes.
func New(p Profile, m Meter, budget int) *Placer {
	if len(p.Filters) > 255 {
		panic(fmt.Sprintf("place: %d filters, at most 255 fit a verdict", len(p.Filters)))
	}
	return &Placer{profile: p, meter: m, classes: map[*cluster.PodSpec]*class{}, budget: budget}
}

// Outcome is the answer of a search.
type Outcome struct {
	Nodes    int // how many nodes there are
	Feasible int // how many of them fit
	// Node is the chosen row, cluster.NoNode when none fits.
	Node  cluster.NodeIdx
	Total int64
	// Tied is how many nodes share the best total; the draw chose among them.
	Tied int
	// RunnerUp is the next best row, cluster.NoNode when only one fits.
	RunnerUp      cluster.NodeIdx
	RunnerUpTotal int64
	// Err is set, and Node is cluster.NoNode, when nodes fit but cannot be ranked (see plugin.BrokenScore).
	Err error

	look *lookup // what the answer was read from; good until the Placer's next search
}

// lookup holds the verdicts and raw scores of rows for one pod or one class of pods.
type lookup struct {
	plans    []plugin.FilterPlan // per filter of the profile
	narrowed []string            // filters that left nodes out before looking at them
	only     map[string]struct{} // names of the nodes to look at; nil means all
	reject   int                 // index of the filter that rejects the pod as a whole, -1
	scorers  []prepared          // in profile order, without those that skip the pod
	broken   error               // why the first scorer that cannot score the pod cannot

	verdicts []plugin.Verdict  // row -> verdict
	base     []int64           // row -> weighted sum of the scores that need no normalising
	patches  []patch           // verdicts that hold for the present decision only
	rows     []cluster.NodeIdx // the rows to look at; nil means all
}

// patch remembers the verdict that nominations have overruled.
type patch struct {
	row cluster.NodeIdx
	was plugin.Verdict
}

// prepared is a scorer prepared for a class, with its column.
type prepared struct {
	Scorer
	score plugin.PodScore
	raw   []int64 // row -> raw score
	// nonZero counts rows with a raw score other than 0, feasible or not.
	nonZero int
	epoch   uint64
}

// prepare runs PreFilter and PreScore.
func (pl *Placer) prepare(s cluster.Snapshot, p *cluster.Pod, l *lookup) {
	*l = lookup{reject: -1, plans: l.plans[:0], scorers: l.scorers[:0], narrowed: l.narrowed[:0], verdicts: l.verdicts,
		base: l.base, rows: l.rows}
	for i, f := range pl.profile.Filters {
		pl.meter.Plugin(f.Name())
		plan := f.PrepareFilter(s, p)
		l.plans = append(l.plans, plan)
		if plan.Reject != "" {
			l.reject = i
			return
		}
		if plan.Nodes != nil {
			l.narrowed = append(l.narrowed, f.Name())
			l.only = intersect(l.only, plan.Nodes)
		}
	}
	columns := l.scorers[:cap(l.scorers)] // of whatever was prepared here before
	for _, sc := range pl.profile.Scorers {
		pl.meter.Plugin(sc.Name())
		if score := sc.PrepareScore(s, p); score != nil {
			next := prepared{Scorer: sc, score: score, epoch: score.Epoch(s)}
			if i := len(l.scorers); i < len(columns) {
				next.raw = columns[i].raw
			}
			l.scorers = append(l.scorers, next)
			if b, isBroken := score.(plugin.BrokenScore); isBroken && l.broken == nil {
				l.broken = fmt.Errorf("running PreScore plugin %q: %w", sc.Name(), b.Err)
			}
		}
	}
}

func intersect(a, b map[string]struct{}) map[string]struct{} {
	if a == nil {
		return b
	}
	both := map[string]struct{}{}
	for name := range a { // order: builds a set
		if _, ok := b[name]; ok {
			both[name] = struct{}{}
		}
	}
	return both
}

// fewNodes is up to how many named nodes a pod is judged on singly.
const fewNodes = 64

// Place looks for the best node for p. draw(n) chooses among n tied nodes; it is called at most once.
func (pl *Placer) Place(s cluster.Snapshot, p *cluster.Pod, noms Nominations, draw func(n int) int) Outcome {
	l := pl.look(s, p)
	if l.reject >= 0 || l.only != nil && len(l.only) == 0 {
		return Outcome{Nodes: s.Nodes(), Node: cluster.NoNode, RunnerUp: cluster.NoNode, look: l}
	}
	l.nominated(s, p, noms)
	if n, ok := l.own(s, p); ok {
		return Outcome{Nodes: s.Nodes(), Feasible: 1, Node: n, Tied: 1, RunnerUp: cluster.NoNode, look: l}
	}
	return l.choose(s, draw)
}

// look returns verdicts and scores for p, up to date.
func (pl *Placer) look(s cluster.Snapshot, p *cluster.Pod) *lookup {
	if c := pl.classes[p.Spec]; c != nil {
		c.unpatch()
		pl.used(c)
		if c.stale(s) {
			pl.fill(s, p, c)
		} else {
			c.catchUp(s)
		}
		return &c.lookup
	}
	l := &pl.scratch
	l.unpatch()
	pl.prepare(s, p, l)
	if l.reject >= 0 {
		return l
	}
	if l.only != nil && len(l.only) <= fewNodes {
		l.few(s)
		return l
	}
	c := pl.newClass(p.Spec)
	pl.fill(s, p, c)
	pl.remember(c)
	return &c.lookup
}

// few judges the named nodes alone.
func (l *lookup) few(s cluster.Snapshot) {
	if l.rows = l.rows[:0]; l.rows == nil {
		l.rows = []cluster.NodeIdx{} // nil would mean all rows, and perhaps none of the names exists
	}
	for name := range l.only { // order: the rows are sorted below
		if n, ok := s.Find(name); ok {
			l.rows = append(l.rows, n)
		}
	}
	slices.Sort(l.rows)
	l.grow(s.Rows())
	for _, n := range l.rows {
		l.judge(s, n, n+1)
		l.score(s, n, n+1)
	}
	for i := range l.scorers {
		if mutant == leftoversRead {
			break
		}
		l.scorers[i].nonZero = 1 // the columns hold leftovers elsewhere: always normalise over the rows
	}
}

func (l *lookup) grow(rows int) {
	for len(l.verdicts) < rows {
		l.verdicts = append(l.verdicts, plugin.NoNode)
	}
	if len(l.base) < rows {
		l.base = append(l.base, make([]int64, rows-len(l.base))...)
	}
	for i := range l.scorers {
		sc := &l.scorers[i]
		if len(sc.raw) < rows {
			sc.raw = append(sc.raw, make([]int64, rows-len(sc.raw))...)
		}
	}
}

// judge brings the verdicts on rows lo to hi-1 up to date.
func (l *lookup) judge(s cluster.Snapshot, lo, hi cluster.NodeIdx) {
	for n := lo; n < hi; n++ {
		l.verdicts[n] = l.before(s, n)
	}
	for i := range l.plans {
		if f := l.plans[i].Filter; f != nil {
			f.Column(s, lo, hi, plugin.TagOf(i), l.verdicts)
		}
	}
}

// score brings the scores of rows lo to hi-1 up to date.
func (l *lookup) score(s cluster.Snapshot, lo, hi cluster.NodeIdx) {
	base := l.base[lo:hi]
	clear(base)
	for i := range l.scorers {
		sc := &l.scorers[i]
		raw := sc.raw[lo:hi]
		sc.nonZero -= nonZero(raw)
		sc.score.Column(s, lo, hi, sc.raw)
		sc.nonZero += nonZero(raw)
		if sc.Normal() == plugin.AsIs {
			for n, v := range raw {
				base[n] += sc.Weight * v
			}
		}
	}
}

func nonZero(raw []int64) int {
	n := 0
	for _, v := range raw {
		if v != 0 {
			n++
		}
	}
	return n
}

// before is the verdict on a row ahead of any filter.
func (l *lookup) before(s cluster.Snapshot, n cluster.NodeIdx) plugin.Verdict {
	node := s.Node(n)
	if node == nil {
		return plugin.NoNode
	}
	if l.only != nil {
		if _, ok := l.only[node.Name]; !ok {
			return plugin.Excluded
		}
	}
	return plugin.Fits
}

// nominated judges the rows anew that have nominated pods of p's priority or more: with them, and, where p still fits,
// without (upstream: RunFilterPluginsWithNominatedPods).
func (l *lookup) nominated(s cluster.Snapshot, p *cluster.Pod, noms Nominations) {
	for _, name := range noms.NominatedNodes() {
		n, ok := s.Find(name)
		if !ok || l.rows != nil && !slices.Contains(l.rows, n) || l.verdicts[n] == plugin.Excluded {
			continue
		}
		view, added := s.View(n), false
		for _, other := range noms.NominatedOn(name) {
			if other.UID != p.UID && other.Spec.Priority >= p.Spec.Priority {
				view.AddPod(other)
				added = true
			}
		}
		if !added {
			continue
		}
		// The first pass has the first word: when it rejects, its reasons are the ones that are told.
		if v := l.plain(s, view); v != plugin.Fits {
			l.patches = append(l.patches, patch{n, l.verdicts[n]})
			l.verdicts[n] = v
		}
	}
}

// unpatch restores the verdicts that held without nominations.
func (l *lookup) unpatch() {
	if mutant == nominationStays {
		l.patches = nil
	}
	for i := len(l.patches) - 1; i >= 0; i-- {
		l.verdicts[l.patches[i].row] = l.patches[i].was
	}
	l.patches = l.patches[:0]
}

// plain is the verdict on a supposed node.
func (l *lookup) plain(s cluster.Snapshot, v *cluster.NodeView) plugin.Verdict {
	for i := range l.plans {
		if f := l.plans[i].Filter; f != nil {
			if code := f.Plain(s, v); code != plugin.Fit {
				return plugin.TagOf(i).With(code)
			}
		}
	}
	return plugin.Fits
}

// own tries the node that p is itself nominated to, ahead of all others (upstream: evaluateNominatedNode).
func (l *lookup) own(s cluster.Snapshot, p *cluster.Pod) (cluster.NodeIdx, bool) {
	if p.Nominated == "" {
		return cluster.NoNode, false
	}
	n, ok := s.Find(p.Nominated)
	if !ok || l.rows != nil && !slices.Contains(l.rows, n) {
		return cluster.NoNode, false
	}
	return n, l.verdicts[n] == plugin.Fits
}

// totals computes a row's total: base plus the normalised scores.
type totals struct {
	base  []int64
	flat  int64 // what every row gets from scorers whose raw score is 0 everywhere
	extra []normalised
}

type normalised struct {
	raw     []int64
	normal  plugin.Normal
	weight  int64
	largest int64 // among the rows that fit
}

func (t *totals) of(n cluster.NodeIdx) int64 {
	total := t.base[n] + t.flat
	for i := range t.extra {
		e := &t.extra[i]
		total += e.weight * e.normal.Apply(e.raw[n], e.largest)
	}
	return total
}

func (l *lookup) totals() totals {
	t := totals{base: l.base}
	for i := range l.scorers {
		sc := &l.scorers[i]
		switch {
		case sc.Normal() == plugin.AsIs:
		case sc.nonZero == 0:
			t.flat += sc.Weight * sc.Normal().Apply(0, 0)
		default:
			t.extra = append(t.extra, normalised{sc.raw, sc.Normal(), sc.Weight, l.largest(sc.raw)})
		}
	}
	return t
}

func (l *lookup) largest(raw []int64) int64 {
	var top int64
	for i := range l.len() {
		if n := l.at(i); (l.verdicts[n] == plugin.Fits || mutant == normalOverAll) && raw[n] > top {
			top = raw[n]
		}
	}
	return top
}

// len and at run over the rows to look at, in index order.
func (l *lookup) len() int {
	if l.rows != nil {
		return len(l.rows)
	}
	return len(l.verdicts)
}

func (l *lookup) at(i int) cluster.NodeIdx {
	if l.rows != nil {
		return l.rows[i]
	}
	return cluster.NodeIdx(i)
}

// choose picks the best of the rows that fit.
func (l *lookup) choose(s cluster.Snapshot, draw func(n int) int) Outcome {
	out := Outcome{Nodes: s.Nodes(), Node: cluster.NoNode, RunnerUp: cluster.NoNode, look: l}
	t := l.totals()
	top := topTwo{first: cluster.NoNode, second: cluster.NoNode, next: math.MinInt64}
	if l.rows == nil && len(t.extra) == 0 {
		out.Feasible = top.scanFlat(l.verdicts, &t)
	} else {
		for i := range l.len() {
			if n := l.at(i); l.verdicts[n] == plugin.Fits {
				out.Feasible++
				top.see(n, t.of(n))
			}
		}
	}
	switch {
	case top.first < 0:
		return out
	case out.Feasible > 1 && l.broken != nil:
		out.Err = l.broken
		return out
	}
	out.Node, out.Total, out.Tied = top.first, top.best, top.tied
	if out.RunnerUp = top.second; out.RunnerUp != cluster.NoNode {
		out.RunnerUpTotal = top.next
	}
	if out.Tied > 1 && mutant != tieToFirst {
		l.breakTie(&out, &t, draw(out.Tied))
	}
	return out
}

// topTwo is the best total and the next best one, each with the lowest row that has it.
type topTwo struct {
	first, second cluster.NodeIdx
	best, next    int64
	tied          int // rows with the best total
}

func (top *topTwo) see(n cluster.NodeIdx, total int64) {
	switch {
	case top.first < 0 || total > top.best:
		if top.first >= 0 {
			top.second, top.next = top.first, top.best
		}
		top.first, top.best, top.tied = n, total, 1
	case total == top.best:
		top.tied++
	case total > top.next:
		top.second, top.next = n, total
	}
}

// scanFlat sees every row that fits when no score needs normalising, which is the common case, and returns their number.
// Rows that cannot be among the two best cost one comparison.
func (top *topTwo) scanFlat(verdicts []plugin.Verdict, t *totals) (feasible int) {
	base := t.base[:len(verdicts)]
	for n, v := range verdicts {
		if v != plugin.Fits {
			continue
		}
		feasible++
		if total := base[n] + t.flat; total > top.next {
			top.see(cluster.NodeIdx(n), total)
		}
	}
	return feasible
}

// breakTie makes the k-th of the tied rows the winner, and the first of the others the runner-up.
func (l *lookup) breakTie(out *Outcome, t *totals, k int) {
	if k < 0 || k >= out.Tied {
		panic(fmt.Sprintf("place: draw gave %d of %d tied nodes", k, out.Tied))
	}
	out.RunnerUp, out.RunnerUpTotal = out.Node, out.Total
	want := k
	if k == 0 {
		want = 1 // the first row wins, the second is the runner-up
	}
	seen := 0
	for i := range l.len() {
		n := l.at(i)
		if l.verdicts[n] != plugin.Fits || len(t.extra) == 0 && t.base[n]+t.flat != out.Total || t.of(n) != out.Total {
			continue
		}
		if seen == want {
			if k == 0 {
				out.RunnerUp = n
			} else {
				out.Node = n
			}
			return
		}
		seen++
	}
}

// Draw is the draw among ties of one decision: the same for the same seed and decision number, whatever was drawn
// before. The mixing function is splitmix64 (Steele, Lea, Flood 2014).
func Draw(seed, decision uint64) func(n int) int {
	return func(n int) int {
		z := seed + (decision+1)*0x9e3779b97f4a7c15
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		z ^= z >> 31
		hi, _ := bits.Mul64(z, uint64(n))
		return int(hi)
	}
}
