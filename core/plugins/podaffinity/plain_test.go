// SPDX-License-Identifier: Apache-2.0

package podaffinity

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// podAffinityScan is the filter by a scan of all pods: the specification, and the slow twin of podAffinityFilter.
type podAffinityScan struct {
	pod    *cluster.Pod
	own    podTerms          // namespaces by name
	labels map[string]string // key -> value, of the pod's namespace

	attracted tally // pods that all of the pod's affinity terms are about
	repelled  tally // pods that one of its anti-affinity terms is about
	repelling tally // pods one of whose anti-affinity terms is about it
}

// scanPodAffinity counts the pods of all nodes. It returns nil when no node can be wrong for the pod.
func scanPodAffinity(s cluster.Snapshot, p *cluster.Pod) *podAffinityScan {
	read := termsOf(p)
	f := &podAffinityScan{pod: p, labels: namespaceLabels(s, p.Namespace), attracted: tally{}, repelled: tally{},
		repelling: tally{}}
	f.own = podTerms{attract: byName(s, read.attract), repel: byName(s, read.repel)}
	for n := range cluster.NodeIdx(s.Rows()) {
		if node := s.Node(n); node != nil {
			s.EachPod(n, func(other *cluster.Pod, _ bool) { f.count(other, node, 1) })
		}
	}
	if len(f.own.attract) == 0 && len(f.own.repel) == 0 && len(f.repelling) == 0 {
		return nil
	}
	return f
}

func (f *podAffinityScan) count(other *cluster.Pod, node *cluster.Node, sign int64) {
	theirs := termsOf(other)
	for i := range theirs.repel {
		t := &theirs.repel[i]
		if t.Matches(f.pod.Namespace, f.labels, f.pod.Spec.Labels) {
			f.repelling.add(node, t.TopologyKey, sign)
		}
	}
	if coversAll(f.own.attract, other) {
		for i := range f.own.attract {
			f.attracted.add(node, f.own.attract[i].TopologyKey, sign)
		}
	}
	for i := range f.own.repel {
		if t := &f.own.repel[i]; t.Matches(other.Namespace, nil, other.Spec.Labels) {
			f.repelled.add(node, t.TopologyKey, sign)
		}
	}
}

func (f *podAffinityScan) Plain(_ cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	return f.of(v.Node)
}

func (f *podAffinityScan) of(node *cluster.Node) plugin.Code {
	switch {
	case !f.attracts(node):
		return notAttracted | plugin.Unresolvable
	case f.repels(node):
		return repelledByOwn
	}
	for key, value := range node.Labels { // order: any will do
		if f.repelling[domain{key, value}] > 0 {
			return repelledByOthers
		}
	}
	return plugin.Fit
}

// attracts reports whether every affinity term finds the pods it wants near the node. The first pod of a group that
// wants its own kind near may go to any node that has the labels.
func (f *podAffinityScan) attracts(node *cluster.Node) bool {
	near := true
	for i := range f.own.attract {
		key := f.own.attract[i].TopologyKey
		value, ok := node.Labels[key]
		if !ok {
			return false
		}
		near = near && f.attracted[domain{key, value}] > 0
	}
	return near || len(f.attracted) == 0 && coversAll(f.own.attract, f.pod)
}

func (f *podAffinityScan) repels(node *cluster.Node) bool {
	for i := range f.own.repel {
		key := f.own.repel[i].TopologyKey
		if value, ok := node.Labels[key]; ok && f.repelled[domain{key, value}] > 0 {
			return true
		}
	}
	return false
}

func (f *podAffinityScan) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag plugin.Tag, out []plugin.Verdict) {
	for n := lo; n < hi; n++ {
		if node := s.Node(n); node != nil && out[n] == plugin.Fits {
			if code := f.of(node); code != plugin.Fit {
				out[n] = tag.With(code)
			}
		}
	}
}

func (*podAffinityScan) Reasons(c plugin.Code) []string { return podAffinityReasons(c) }

func (f *podAffinityScan) AddPod(_ cluster.Snapshot, other *cluster.Pod, v *cluster.NodeView) {
	f.count(other, v.Node, 1)
}

func (f *podAffinityScan) RemovePod(_ cluster.Snapshot, other *cluster.Pod, v *cluster.NodeView) {
	f.count(other, v.Node, -1)
}

// podAffinityScanScore is the score by a scan of all pods.
type podAffinityScanScore map[string]map[string]int64 // label key -> its value -> sum of weights

// scanPodAffinityScore returns nil when no pod has a preference about another.
func scanPodAffinityScore(s cluster.Snapshot, p *cluster.Pod, hard int32) podAffinityScanScore {
	read := termsOf(p)
	prefer, avoid := byName(s, read.prefer), byName(s, read.avoid)
	of := namespaceLabels(s, p.Namespace)
	sums := podAffinityScanScore{}
	for n := range cluster.NodeIdx(s.Rows()) {
		node := s.Node(n)
		if node == nil {
			continue
		}
		add := func(terms []cluster.PodTerm, about *cluster.Pod, of map[string]string, sign int32) {
			for i := range terms {
				if t := &terms[i]; t.Matches(about.Namespace, of, about.Spec.Labels) {
					sums.add(node, t.TopologyKey, signed(t.Weight, sign))
				}
			}
		}
		s.EachPod(n, func(other *cluster.Pod, _ bool) {
			add(prefer, other, nil, 1)
			add(avoid, other, nil, -1)
			theirs := termsOf(other)
			for i := range theirs.attract {
				if t := &theirs.attract[i]; hard > 0 && t.Matches(p.Namespace, of, p.Spec.Labels) {
					sums.add(node, t.TopologyKey, int64(hard))
				}
			}
			add(theirs.prefer, p, of, 1)
			add(theirs.avoid, p, of, -1)
		})
	}
	if len(sums) == 0 {
		return nil
	}
	return sums
}

func (m podAffinityScanScore) add(node *cluster.Node, key string, weight int64) {
	value, ok := node.Labels[key]
	if !ok {
		return
	}
	if m[key] == nil {
		m[key] = map[string]int64{}
	}
	m[key][value] += weight
}

func (m podAffinityScanScore) of(node *cluster.Node) int64 {
	var sum int64
	for key, values := range m { // order: a sum is the same in any
		if value, ok := node.Labels[key]; ok {
			sum += values[value]
		}
	}
	return sum
}

func (m podAffinityScanScore) Plain(_ cluster.Snapshot, v *cluster.NodeView) int64 {
	return m.of(v.Node)
}

func (m podAffinityScanScore) Rows(s cluster.Snapshot, fit []cluster.NodeIdx, out []int64) {
	for i, n := range fit {
		out[i] = m.of(s.Node(n))
	}
}

func (podAffinityScanScore) Normalize(_ cluster.Snapshot, _ []cluster.NodeIdx, scores []int64) {
	spread100(scores)
}

// byName returns the terms with the names of the namespaces that their selectors select, and without the selectors. An
// empty selector stays.
func byName(s cluster.Snapshot, terms []cluster.PodTerm) []cluster.PodTerm {
	named := make([]cluster.PodTerm, len(terms))
	for i, t := range terms {
		if !t.Matching.Empty() {
			names := map[string]bool{}
			for _, name := range t.Namespaces {
				names[name] = true
			}
			cluster.Each(s, func(ns *v1.Namespace) bool {
				names[ns.Name] = names[ns.Name] || t.Matching.Matches(labels.Set(ns.Labels))
				return true
			})
			maps.DeleteFunc(names, func(_ string, selected bool) bool { return !selected })
			t.Namespaces, t.Matching = slices.Sorted(maps.Keys(names)), labels.Nothing()
		}
		named[i] = t
	}
	return named
}
