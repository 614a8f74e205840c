// SPDX-License-Identifier: Apache-2.0

package podaffinity

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// podAffinityScore is the score by counters; podAffinityScanScore says what it means.
type podAffinityScore struct {
	pl     *InterPodAffinity
	groups []scoreGroup
}

// scoreGroup is what counts by one topology key.
type scoreGroup struct {
	by      *cluster.Topology
	own     []ownPreference
	carried []carriedPreference
}

// ownPreference is a preferred term of the pod that waits: what each pod that the term is about adds.
type ownPreference struct {
	pods   *cluster.Counter
	weight int64
}

// carriedPreference is a term of pods on nodes: what each pod that carries it adds.
type carriedPreference struct {
	term   *cluster.Carried
	weight int64
}

// score returns nil when no term is about a pod on a node with the term's label.
func (pl *InterPodAffinity) score(s cluster.Snapshot, p *cluster.Pod) *podAffinityScore {
	own := pl.own(p)
	f := podAffinityScore{pl: pl}
	prefer := func(terms []cluster.PodTerm, pods []cluster.Selection, sign int32) {
		for i := range terms {
			by, counter := s.Topology(terms[i].TopologyKey), s.Counter(pods[i])
			if _, sum := counter.Totals(by); sum != 0 {
				g := f.group(by)
				g.own = append(g.own, ownPreference{counter, worth(&terms[i], sign)})
			}
		}
	}
	carried := func(kind cluster.TermKind, weight func(t *cluster.Carried) int64) {
		for _, t := range s.CarriedFor(kind, p) {
			if t.Placed() != 0 {
				g := f.group(s.Topology(t.TopologyKey))
				g.carried = append(g.carried, carriedPreference{t, weight(t)})
			}
		}
	}
	prefer(own.prefer, own.preferPods, 1)
	prefer(own.avoid, own.avoidPods, -1)
	hard := int64(pl.args.HardPodAffinityWeight)
	if hard > 0 {
		carried(cluster.RequiredAffinity, func(*cluster.Carried) int64 { return hard })
	}
	carried(cluster.PreferredAffinity, func(t *cluster.Carried) int64 { return worth(&t.PodTerm, 1) })
	carried(cluster.PreferredAntiAffinity, func(t *cluster.Carried) int64 { return worth(&t.PodTerm, -1) })
	if len(f.groups) == 0 {
		return nil
	}
	return &f
}

// worth is signed for a preferred term.
func worth(t *cluster.PodTerm, sign int32) int64 {
	return signed(t.Weight, sign)
}

func (f *podAffinityScore) group(by *cluster.Topology) *scoreGroup {
	i := slices.IndexFunc(f.groups, func(g scoreGroup) bool { return g.by == by })
	if i < 0 {
		i = len(f.groups)
		f.groups = append(f.groups, scoreGroup{by: by})
	}
	return &f.groups[i]
}

// of is what a value of the topology adds to the score of its nodes.
func (g *scoreGroup) of(id int32) (sum int64) {
	for _, p := range g.own {
		byValue, _ := p.pods.Totals(g.by)
		sum += p.weight * int64(byValue[id])
	}
	for _, c := range g.carried {
		sum += c.weight * int64(c.term.OnValue(id))
	}
	return sum
}

func (f *podAffinityScore) Plain(_ cluster.Snapshot, v *cluster.NodeView) (sum int64) {
	for i := range f.groups {
		g := &f.groups[i]
		if value, ok := v.Node.Labels[g.by.Key()]; ok {
			if id := g.by.ID(value); id != cluster.NoValue {
				sum += g.of(id)
			}
		}
	}
	return sum
}

func (f *podAffinityScore) Rows(_ cluster.Snapshot, fit []cluster.NodeIdx, out []int64) {
	out = out[:len(fit)]
	clear(out)
	for i := range f.groups {
		g, column := &f.groups[i], f.groups[i].by.Column()
		if len(fit) <= fewRows {
			for i, n := range fit {
				if id := column[n]; id != cluster.NoValue {
					out[i] += g.of(id)
				}
			}
			continue
		}
		sums := f.pl.sum(g)
		for i, n := range fit {
			if id := column[n]; id != cluster.NoValue {
				out[i] += sums[id]
			}
		}
	}
}

// sum is what each value of the topology adds to the score of its nodes; good until the next call.
func (pl *InterPodAffinity) sum(g *scoreGroup) []int64 {
	size := g.by.Size()
	pl.sums = slices.Grow(pl.sums[:0], size)[:size]
	sums := pl.sums
	clear(sums)
	for _, p := range g.own {
		byValue, _ := p.pods.Totals(g.by)
		for id, pods := range byValue {
			sums[id] += p.weight * int64(pods)
		}
	}
	for _, c := range g.carried {
		c.term.EachValue(func(id, pods int32) { sums[id] += c.weight * int64(pods) })
	}
	return sums
}

func (*podAffinityScore) Normalize(_ cluster.Snapshot, _ []cluster.NodeIdx, scores []int64) {
	spread100(scores)
}
