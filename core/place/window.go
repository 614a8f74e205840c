// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Window is the order in which searches of the FixedWindow strategy look at nodes, and where the next one begins
// (upstream: backend/cache/node_tree.go, schedule_one.go; parallelism 1). One Window serves all profiles.
//
// The order takes a node of each zone in turn. It is made anew when nodes have come or gone since the last search; a
// node that only changed its zone keeps its place until then, as upstream's snapshot has it.
type Window struct {
	zones []zone // kept
	nodes int    // derived: the size of zones. In zones

	order []string            // kept; as the last search saw it
	known map[string]struct{} // derived: the names in order. The names in order
	rows  []cluster.NodeIdx   // derived: the rows of order. Of order, at nodeSet
	set   uint64              // derived: of rows. Snapshot.NodeSet of rows
	start int                 // kept; where the next search begins
}

// zone is the nodes of one zone, in the order in which they came.
type zone struct {
	key   string   // kept
	names []string // kept
}

// NewWindow returns a window on no nodes.
func NewWindow() *Window { return &Window{known: map[string]struct{}{}} }

// zoneKey is a node's region and zone; empty when it has neither (upstream: component-helpers/node/topology,
// GetZoneKey).
func zoneKey(labels map[string]string) string {
	pick := func(key, old string) string {
		if v, ok := labels[key]; ok {
			return v
		}
		return labels[old]
	}
	where := pick(v1.LabelTopologyZone, v1.LabelFailureDomainBetaZone)
	region := pick(v1.LabelTopologyRegion, v1.LabelFailureDomainBetaRegion)
	if where == "" && region == "" {
		return ""
	}
	return region + ":\x00:" + where
}

// SetNodes learns of all nodes, in the order of their rows.
func (w *Window) SetNodes(s cluster.Snapshot) {
	for n := range cluster.NodeIdx(s.Rows()) {
		if node := s.Node(n); node != nil {
			w.SetNode(nil, node)
		}
	}
}

// SetNode learns of a node, or of a change of one. old is nil for a new one.
func (w *Window) SetNode(old, node *cluster.Node) {
	key := zoneKey(node.Labels)
	if old != nil {
		if zoneKey(old.Labels) == key {
			return
		}
		w.DeleteNode(old)
	}
	w.nodes++
	for i := range w.zones {
		if w.zones[i].key == key {
			w.zones[i].names = append(w.zones[i].names, node.Name)
			return
		}
	}
	w.zones = append(w.zones, zone{key, []string{node.Name}})
}

// DeleteNode learns that a node is gone.
func (w *Window) DeleteNode(old *cluster.Node) {
	key := zoneKey(old.Labels)
	for i := range w.zones {
		z := &w.zones[i]
		if at := slices.Index(z.names, old.Name); z.key == key && at >= 0 {
			w.nodes--
			if z.names = slices.Delete(z.names, at, at+1); len(z.names) == 0 {
				w.zones = slices.Delete(w.zones, i, i+1)
			}
			return
		}
	}
}

// refresh brings the order in line with which nodes there are.
func (w *Window) refresh(s cluster.Snapshot) {
	if w.set == s.NodeSet() && w.rows != nil {
		return
	}
	if w.changed() {
		w.order, w.known = w.order[:0], map[string]struct{}{}
		for turn := 0; len(w.order) < w.nodes; turn++ {
			for _, z := range w.zones {
				if turn < len(z.names) {
					w.order = append(w.order, z.names[turn])
					w.known[z.names[turn]] = struct{}{}
				}
			}
		}
	}
	w.rows, w.set = w.rows[:0], s.NodeSet()
	for _, name := range w.order {
		if n, ok := s.Find(name); ok {
			w.rows = append(w.rows, n)
		}
	}
}

// changed reports whether the nodes are others than those in order.
func (w *Window) changed() bool {
	if len(w.order) != w.nodes {
		return true
	}
	for _, z := range w.zones {
		for _, name := range z.names {
			if _, ok := w.known[name]; !ok {
				return true
			}
		}
	}
	return false
}

// Advance moves the beginning of the next search on by the nodes that the search of an outcome evaluated.
func (w *Window) Advance(out Outcome) {
	if out.Nodes > 0 {
		w.start = (w.start + out.Advance) % out.Nodes
	}
}

// The bounds of a window (upstream: schedule_one.go, minFeasibleNodesToFind and minFeasibleNodesPercentageToFind).
const (
	leastNodes      = 100
	leastPercentage = 5
)

// Quota is how many of n nodes have to fit before a search ends (upstream: numFeasibleNodesToFind). The 5 % floor is
// for the adaptive formula alone.
func Quota(percentage int32, n int) int {
	if n < leastNodes {
		return n
	}
	if percentage == 0 {
		percentage = max(50-int32(n)/125, leastPercentage)
	}
	return max(int(int32(n)*percentage/100), leastNodes)
}

// applyWindow makes the rows Unseen that a window search does not reach, and returns how many nodes it judged. After
// an error of a filter, which may be about a row that the search does not reach, it judges row by row: the search ends
// at the first row that fails.
func (pl *Placer) applyWindow(s cluster.Snapshot, sr *search) (looked int) {
	singly := sr.err != nil
	sr.err = nil
	w := pl.profile.Window
	order := w.rows
	if sr.rows != nil || sr.only != nil {
		order = sr.allowed(s)
	}
	if len(order) == 0 {
		return 0
	}
	quota := Quota(pl.profile.Search.Percentage, len(order))
	if len(pl.profile.Scorers) == 0 && pl.profile.Foreign == nil {
		quota = 1 // nothing ranks, so the first one will do
	}
	sr.ownRows()
	fits, rejected, over := 0, 0, false
	for i := range order {
		n := order[(w.start+i)%len(order)]
		if singly && !over && sr.mayFail(n) {
			sr.verdicts[n] = pl.evaluate(s, sr, s.View(n))
			over = sr.err != nil
		}
		switch {
		case over:
			sr.verdicts[n] = plugin.Unseen
		case sr.verdicts[n] != plugin.Fits:
			rejected++
		case fits == quota: // one more than enough ends the search
			sr.verdicts[n] = plugin.Unseen
			over = true
		default:
			fits++
		}
	}
	if singly && pl.failsOnNominated(s, sr) {
		return fits + rejected
	}
	return fits + rejected + sr.countNominated(s, order)
}

// failsOnNominated reports whether the node that the pod is nominated to was judged first with an error; such nodes
// are not counted.
func (pl *Placer) failsOnNominated(s cluster.Snapshot, sr *search) bool {
	n, ok := s.Find(sr.pod.Nominated)
	if sr.pod.Nominated == "" || !ok {
		return false
	}
	err := sr.err
	sr.err = nil
	pl.evaluate(s, sr, s.View(n))
	failed := sr.err != nil
	sr.err = err
	return failed
}

// mayFail reports whether a row fits so far, or was rejected by a filter that can fail, which says so of rows where
// it does.
func (sr *search) mayFail(n cluster.NodeIdx) bool {
	i, rejected := sr.verdicts[n].Filter()
	if !rejected {
		return sr.verdicts[n] == plugin.Fits
	}
	_, can := sr.plans[i].Filter.(plugin.Failing)
	return can
}

// allowed are the rows that plans leave, sorted by name: upstream visits them in no particular order.
func (sr *search) allowed(s cluster.Snapshot) []cluster.NodeIdx {
	rows := slices.Clone(sr.rows)
	if rows == nil {
		rows = rowsOf(s, sr.only, nil)
	}
	slices.SortFunc(rows, func(a, b cluster.NodeIdx) int {
		if s.NodeName(a) < s.NodeName(b) {
			return -1
		}
		return 1
	})
	return rows
}

// countNominated counts the node that the pod is nominated to, if it was judged and the search has not reached it.
func (sr *search) countNominated(s cluster.Snapshot, order []cluster.NodeIdx) int {
	if sr.pod.Nominated == "" {
		return 0
	}
	n, ok := s.Find(sr.pod.Nominated)
	if !ok || sr.verdicts[n] != plugin.Unseen && slices.Contains(order, n) {
		return 0
	}
	return 1
}
