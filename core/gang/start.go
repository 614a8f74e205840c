// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"cmp"
	"slices"
	"sort"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// mostEnds bounds the ends that KnownEnds returns.
const mostEnds = 4096

// PodEnd is the known end of a pod.
type PodEnd struct {
	Pod   *cluster.Pod
	At    record.Time
	Basis cluster.EndBasis
}

// KnownEnds returns the pods whose ends are known, the earliest first, at most 4096. A pod whose known end is past, or
// that may be evicted (agreed, which may be nil), is expected to go now.
func KnownEnds(s cluster.Snapshot, now record.Time, agreed func(*cluster.Pod) bool) (ends []PodEnd) {
	for n := range cluster.NodeIdx(s.Rows()) {
		s.EachPod(n, func(p *cluster.Pod, _ bool) {
			if agreed != nil && !p.Terminating && agreed(p) {
				ends = append(ends, PodEnd{p, now, cluster.EndsIfEvicted})
			} else if at, basis := p.End(); basis != cluster.EndUnknown {
				ends = append(ends, PodEnd{p, max(at, now), basis})
			}
		})
	}
	slices.SortFunc(ends, func(a, b PodEnd) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Pod.UID, b.Pod.UID))
	})
	return ends[:min(len(ends), mostEnds)]
}

// EarliestStart returns the shortest prefix of ends with which a gang fits, nil if it does not fit with all of them.
// Its last end is the shadow time of EASY backfill (Lifka, The ANL/IBM SP scheduling system, 1995): the earliest start
// if no other pod goes or comes. It is right as far as the ends are; capacity that becomes free before makes it too
// late. fits reports whether the gang fits without the given pods; it is called O(log n) times, and once it is true for
// a prefix, it must be true for all longer ones.
func EarliestStart(ends []PodEnd, fits func(gone []PodEnd) bool) []PodEnd {
	if len(ends) == 0 || !fits(ends) {
		return nil
	}
	return ends[:1+sort.Search(len(ends)-1, func(i int) bool { return fits(ends[:i+1]) })]
}
