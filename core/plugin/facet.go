// SPDX-License-Identifier: Apache-2.0

package plugin

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// Facet is one thing that rows differ in. An uncached plugin whose word on a row depends on a few facets alone lets a
// search judge groups of rows instead of rows: two rows with the same values get the same verdict and the same raw
// score in one decision. The value of a facet on a row changes only when the row does.
//
// Facets are compared: the same facet means the same values.
type Facet struct {
	kind facetKind
	by   *cluster.Topology
	pods *cluster.Counter
	// version is the counter's; another one means that rows may have other values without having changed.
	version uint64
	term    *cluster.Carried
}

// Like reports whether two facets are one, if not of the same version.
func (f Facet) Like(o Facet) bool {
	f.version = o.version
	return f == o
}

type facetKind uint8

const (
	byValue    facetKind = iota // which value of the topology a node has
	podsThere                   // whether a node has a value, and how many pods count on it
	termsThere                  // whether a node has a value, and how many pods carry a term on it
	hasValue                    // whether a node has a value
)

// GroupFilter is an uncached PodFilter that judges by facets.
type GroupFilter interface {
	PodFilter
	// Facets appends what the verdict on a row depends on; ok is false when that is not known to be few things.
	Facets(s cluster.Snapshot, into []Facet) (facets []Facet, ok bool)
}

// GroupScorer is an UncachedScorer that scores by facets.
type GroupScorer interface {
	UncachedScorer
	// ScoreFacets appends what the raw score of a row depends on; ok is false when that is not known to be few things.
	ScoreFacets(s cluster.Snapshot, p *cluster.Pod, into []Facet) (facets []Facet, ok bool)
	// PrepareGroups is PrepareUncached for a row of each group, in no order, and how many rows of each fit.
	PrepareGroups(s cluster.Snapshot, p *cluster.Pod, rows []cluster.NodeIdx, sizes []int) (UncachedScore, error)
}

// coarse is up to how many values a topology may have for rows to be grouped by them.
const coarse = 64

// TopologyFacet is the facet of a topology with few values; ok is false when it has many.
func TopologyFacet(by *cluster.Topology) (f Facet, ok bool) {
	return Facet{kind: byValue, by: by}, by.Domains() <= coarse
}

// PresenceFacet is whether a row has a value of a topology.
func PresenceFacet(by *cluster.Topology) Facet { return Facet{kind: hasValue, by: by} }

// NodePodsFacet is whether a row has a value of a topology, and how many pods count on the row.
func NodePodsFacet(by *cluster.Topology, pods *cluster.Counter) Facet {
	return Facet{kind: podsThere, by: by, pods: pods, version: pods.Version()}
}

// PodsFacet is how many pods count on a row's value of a topology; ok is false when no facet says it.
func PodsFacet(by *cluster.Topology, pods *cluster.Counter) (f Facet, ok bool) {
	if f, ok := TopologyFacet(by); ok {
		return f, true
	}
	return NodePodsFacet(by, pods), OneNodePerValue(by)
}

// TermsFacet is how many pods carry a term on a row's value of its topology; ok is false when no facet says it.
func TermsFacet(by *cluster.Topology, term *cluster.Carried) (f Facet, ok bool) {
	if f, ok := TopologyFacet(by); ok {
		return f, true
	}
	return Facet{kind: termsThere, by: by, term: term}, OneNodePerValue(by)
}

// OneNodePerValue reports whether no two nodes share a value: what counts on a value then counts on its row.
func OneNodePerValue(by *cluster.Topology) bool { return by.Domains() == by.Nodes() }

// noValue is the value of facets on rows without the label.
const noValue = -1

// Of is the value on a row.
func (f *Facet) Of(n cluster.NodeIdx) int64 {
	id := f.by.Column()[n]
	switch {
	case id == cluster.NoValue:
		return noValue
	case f.kind == hasValue:
		return 0
	case f.kind == podsThere:
		return int64(f.pods.Rows()[n])
	case f.kind == termsThere:
		return int64(f.term.OnValue(id))
	}
	return int64(id)
}
