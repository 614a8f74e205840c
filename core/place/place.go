// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"

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
