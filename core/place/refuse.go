// SPDX-License-Identifier: Apache-2.0

package place

import (
	"strings"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place/classes"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// NodeRejection is why a pod does not fit a node: the first filter that rejects it, and its reason.
type NodeRejection struct{ Plugin, Reason string }

// Refuse judges one pod on one row as it is now, in the plain form: without nominations, and without foreign code,
// which answers in cycles alone. Plugins that are settled do not run. It returns nil when the pod fits, and when a
// filter fails: what cannot be judged stands. Nothing that the Placer keeps for its searches is read or changed.
func (pl *Placer) Refuse(s cluster.Snapshot, p *cluster.Pod, n cluster.NodeIdx,
	settled func(plugin string) bool) *NodeRejection {
	view, local := s.View(n), classes.Representative(p)
	pl.decide(s, p)
	for i, f := range pl.profile.Filters {
		if settled(f.Name()) {
			continue
		}
		sees := local
		if pl.cache.Uncached(i) {
			sees = p
		}
		plan := f.PrepareFilter(s, sees)
		_, named := plan.Nodes[view.Node.Name]
		switch {
		case plan.Err != nil:
			return nil
		case plan.Reject != "":
			return &NodeRejection{f.Name(), plan.Reject}
		case plan.Nodes != nil && !named:
			return &NodeRejection{f.Name(), "node(s) didn't satisfy plugin " + f.Name()}
		case plan.Filter == nil:
			continue
		}
		code := plan.Filter.Plain(s, view)
		if failing, can := plan.Filter.(plugin.Failing); can && failing.Failed() != nil {
			return nil
		}
		if code != plugin.Fit {
			return &NodeRejection{f.Name(), strings.Join(plan.Filter.Reasons(code), ", ")}
		}
	}
	return nil
}
