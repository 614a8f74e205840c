// SPDX-License-Identifier: Apache-2.0

package podaffinity

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// domain is a set of nodes that count as near each other: those with this value of a label.
type domain struct{ key, value string }

// tally counts pods per domain. A domain without pods is not in it.
type tally map[domain]int64 // domain -> pods, one for each term

func (t tally) add(node *cluster.Node, key string, delta int64) {
	value, ok := node.Labels[key]
	if !ok {
		return
	}
	d := domain{key, value}
	if t[d] += delta; t[d] == 0 {
		delete(t, d)
	}
}

// podAffinityFilter is the filter by counters; podAffinityScan says what it means.
type podAffinityFilter struct {
	pl     *InterPodAffinity
	pod    *cluster.Pod
	labels map[string]string // key -> value, of the pod's namespace

	// near counts the pods that all affinity terms are about; nil without such terms. They must be near by all of
	// nearBy, the topology keys of the terms, each once.
	near   *cluster.Counter
	nearBy []*cluster.Topology
	far    []farTerm
	others []carriers

	// What is supposed on top of the counters; supposed reports whether there is any.
	nearMore, othersMore tally
	supposed             bool
}

// farTerm counts the pods that one anti-affinity term is about.
type farTerm struct {
	pods *cluster.Counter
	by   *cluster.Topology
	more tally // what is supposed
}

// carriers are the terms of one topology key that are about the pod and that pods on nodes carry.
type carriers struct {
	by    *cluster.Topology
	terms []*cluster.Carried
}

// filter returns nil when no node can be wrong for the pod.
func (pl *InterPodAffinity) filter(s cluster.Snapshot, p *cluster.Pod) *podAffinityFilter {
	own := pl.own(p)
	others := carriersFor(s, p)
	if len(own.attract) == 0 && len(own.repel) == 0 && len(others) == 0 {
		return nil
	}
	f := &podAffinityFilter{pl: pl, pod: p, labels: namespaceLabels(s, p.Namespace), others: others}
	if len(own.attract) != 0 {
		f.near = s.Counter(own.nearPods)
	}
	for i := range own.attract {
		if by := s.Topology(own.attract[i].TopologyKey); !slices.Contains(f.nearBy, by) {
			f.nearBy = append(f.nearBy, by)
		}
	}
	for i := range own.repel {
		f.far = append(f.far, farTerm{pods: s.Counter(own.farPods[i]), by: s.Topology(own.repel[i].TopologyKey),
			more: tally{}})
	}
	return f
}

// carriersFor lists the anti-affinity terms that are about p and that pods carry on nodes with the term's label.
func carriersFor(s cluster.Snapshot, p *cluster.Pod) (to []carriers) {
	for _, term := range s.CarriedFor(cluster.RequiredAntiAffinity, p) {
		if term.Placed() == 0 {
			continue
		}
		i := slices.IndexFunc(to, func(c carriers) bool { return c.by == term.Topology() })
		if i < 0 {
			i = len(to)
			to = append(to, carriers{by: s.Topology(term.TopologyKey)})
		}
		to[i].terms = append(to[i].terms, term)
	}
	return to
}

// pods is how many pods of a counter are on nodes with this value of a topology.
func podsOn(c *cluster.Counter, by *cluster.Topology, value string) int64 {
	id := by.ID(value)
	if id == cluster.NoValue {
		return 0
	}
	byValue, _ := c.Totals(by)
	return int64(byValue[id])
}

// on is how many pods carry the terms on nodes with this value.
func (c *carriers) on(id int32) (pods int64) {
	if id == cluster.NoValue {
		return 0
	}
	for _, term := range c.terms {
		pods += int64(term.OnValue(id))
	}
	return pods
}

// isFirst reports whether the pod wants its own kind near and there is none yet where it could count.
func (f *podAffinityFilter) isFirst() bool {
	var placed int64
	for _, by := range f.nearBy {
		_, sum := f.near.Totals(by)
		placed += int64(sum)
	}
	for _, pods := range f.nearMore { // order: a sum is the same in any
		placed += pods
	}
	return placed == 0 && f.near.Counts(f.pod)
}

func (f *podAffinityFilter) Plain(_ cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	return f.of(v.Node, f.leastNear())
}

// leastNear returns the number of pods that the pod's affinity needs near it: 0 if the pod is the first of its kind.
func (f *podAffinityFilter) leastNear() int64 {
	if f.near != nil && f.isFirst() {
		return 0
	}
	return 1
}

func (f *podAffinityFilter) of(node *cluster.Node, leastNear int64) plugin.Code {
	for _, by := range f.nearBy {
		value, ok := node.Labels[by.Key()]
		if !ok || leastNear > 0 && podsOn(f.near, by, value)+f.nearMore[domain{by.Key(), value}] < leastNear {
			return farFromOwn()
		}
	}
	if f.repels(node) {
		return repelledByOwn
	}
	for i := range f.others {
		by := f.others[i].by
		value, ok := node.Labels[by.Key()]
		if ok && f.others[i].on(by.ID(value))+f.othersMore[domain{by.Key(), value}] > 0 {
			return repelledByOthers
		}
	}
	for d, pods := range f.othersMore { // order: any will do
		if value, ok := node.Labels[d.key]; ok && value == d.value && pods > 0 {
			return repelledByOthers
		}
	}
	return plugin.Fit
}

// repels reports whether a pod that an anti-affinity term is about is near.
func (f *podAffinityFilter) repels(node *cluster.Node) bool {
	for _, term := range f.far {
		value, ok := node.Labels[term.by.Key()]
		if ok && podsOn(term.pods, term.by, value)+term.more[domain{term.by.Key(), value}] > 0 {
			return true
		}
	}
	return false
}

// farFromOwn is the code of missing affinity: no eviction brings pods near.
func farFromOwn() plugin.Code {
	return notAttracted | plugin.Unresolvable
}

// fewRows is up to how many rows are looked up one by one.
const fewRows = 64

func (f *podAffinityFilter) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag plugin.Tag, out []plugin.Verdict) {
	leastNear := f.leastNear()
	if f.supposed || hi-lo <= fewRows {
		for n := lo; n < hi; n++ {
			if node := s.Node(n); node != nil && out[n] == plugin.Fits {
				if code := f.of(node, leastNear); code != plugin.Fit {
					out[n] = tag.With(code)
				}
			}
		}
		return
	}
	out = out[lo:hi]
	for _, by := range f.nearBy {
		byValue, _ := f.near.Totals(by)
		wrong := tag.With(farFromOwn())
		for i, id := range by.Column()[lo:hi] {
			if out[i] == plugin.Fits && (id == cluster.NoValue || int64(byValue[id]) < leastNear) {
				out[i] = wrong
			}
		}
	}
	for _, term := range f.far {
		byValue, _ := term.pods.Totals(term.by)
		wrong := tag.With(repelledByOwn)
		for i, id := range term.by.Column()[lo:hi] {
			if out[i] == plugin.Fits && id != cluster.NoValue && byValue[id] > 0 {
				out[i] = wrong
			}
		}
	}
	for i := range f.others {
		marked := f.pl.mark(&f.others[i])
		wrong := tag.With(repelledByOthers)
		for i, id := range f.others[i].by.Column()[lo:hi] {
			if out[i] == plugin.Fits && id != cluster.NoValue && marked[id] {
				out[i] = wrong
			}
		}
	}
}

// mark computes for each value of the topology whether pods on its nodes carry one of the terms; good until the next
// call.
func (pl *InterPodAffinity) mark(c *carriers) []bool {
	size := c.by.Size()
	pl.marks = slices.Grow(pl.marks[:0], size)[:size]
	clear(pl.marks)
	for _, term := range c.terms {
		term.EachValue(func(id, _ int32) { pl.marks[id] = true })
	}
	return pl.marks
}

func (*podAffinityFilter) Reasons(c plugin.Code) []string { return podAffinityReasons(c) }

func (f *podAffinityFilter) AddPod(_ cluster.Snapshot, other *cluster.Pod, v *cluster.NodeView) {
	f.suppose(other, v.Node, 1)
}

func (f *podAffinityFilter) RemovePod(_ cluster.Snapshot, other *cluster.Pod, v *cluster.NodeView) {
	f.suppose(other, v.Node, -1)
}

func (f *podAffinityFilter) suppose(other *cluster.Pod, node *cluster.Node, sign int64) {
	if f.nearMore == nil {
		f.nearMore, f.othersMore = tally{}, tally{}
	}
	if f.near != nil && f.near.Counts(other) {
		for _, by := range f.nearBy {
			f.nearMore.add(node, by.Key(), sign)
		}
	}
	for _, term := range f.far {
		if term.pods.Counts(other) {
			term.more.add(node, term.by.Key(), sign)
		}
	}
	theirs, spaceLabels := f.pl.own(other), f.labels
	for i := range theirs.repel {
		t := &theirs.repel[i]
		if t.Matches(f.pod.Namespace, spaceLabels, f.pod.Spec.Labels) {
			f.othersMore.add(node, t.TopologyKey, sign)
		}
	}
	f.supposed = len(f.nearMore)+len(f.othersMore) != 0
	for _, term := range f.far {
		f.supposed = f.supposed || len(term.more) != 0
	}
}

// Matters reports whether a term of the pod is about other, or an anti-affinity term of other about the pod.
func (f *podAffinityFilter) Matters(other *cluster.Pod) bool {
	if f.near != nil && f.near.Counts(other) {
		return true
	}
	if slices.ContainsFunc(f.far, func(t farTerm) bool { return t.pods.Counts(other) }) {
		return true
	}
	return slices.ContainsFunc(f.pl.own(other).repel, func(t cluster.PodTerm) bool {
		return t.Matches(f.pod.Namespace, f.labels, f.pod.Spec.Labels)
	})
}
