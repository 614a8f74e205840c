// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"slices"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// fitList is the list of the nodes that fit, as PreScore receives it. Most decisions have the list of the one before,
// with few nodes that have changed, so it is kept; as the list of all nodes, it shows the nodes of the newest decision.
type fitList struct {
	from  *plugin.FitRows   // where rows are from
	rows  []cluster.NodeIdx // those of infos, in their order; nil if no list is kept
	infos []fwk.NodeInfo
	// stale are rows whose NodeInfo was made anew since.
	stale []cluster.NodeIdx
}

// mostStale bounds the changes after which a list is still brought up to date.
const mostStale = 64

// changed notes that a row has another NodeInfo.
func (f *fitList) changed(n cluster.NodeIdx) {
	if len(f.stale) == mostStale {
		*f = fitList{}
	}
	if f.rows != nil {
		f.stale = append(f.stale, n)
	}
}

// list returns the NodeInfos of the rows of fit.
func (m *nodeInfos) list(fit *plugin.FitRows) []fwk.NodeInfo {
	f, rows := &m.fit, fit.Rows
	if same := f.rows != nil && (f.from == fit || slices.Equal(f.rows, rows)); !same {
		f.rows, f.stale = nil, f.stale[:0]
		f.infos = make([]fwk.NodeInfo, len(rows)) // plugins may have kept the one before
		for i, n := range rows {
			f.infos[i] = m.rows[n]
		}
		if slices.IsSorted(rows) { // those of a window may not be
			f.rows, f.from = slices.Clone(rows), fit
		}
		return f.infos
	}
	f.from = fit
	for _, n := range f.stale {
		if i, has := slices.BinarySearch(f.rows, n); has {
			f.infos[i] = m.rows[n]
		}
	}
	f.stale = f.stale[:0]
	return f.infos
}
