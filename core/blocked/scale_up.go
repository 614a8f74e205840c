// SPDX-License-Identifier: Apache-2.0

package blocked

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// A cluster autoscaler creates nodes for each pod that has the reason Unschedulable, and knows no gangs. If it may
// create fewer nodes than a gang needs, it creates those, and keeps them as long as the pods have that reason, although
// the gang cannot start. So the configuration may limit how long the pods of a blocked gang have it. After that they
// have the reason that autoscalers ignore, so that the nodes become empty and are removed. After a pause the nodes are
// requested again. The gang itself is tried as before.

// RequestsNodes reports whether the pods of a gang that has just been rejected are to show the reason for which
// autoscalers create nodes. It sets the time at which that changes.
func (g *Gangs) RequestsNodes(key cluster.GangKey) (requests bool) {
	limit, h, now := g.cfg.ScaleUp, g.historyOf(key), g.cfg.Host.Now()
	if limit.For == 0 || h.since == 0 {
		return true
	}
	period := limit.For + limit.Pause
	since := (now - h.since) % period
	requests = since < limit.For
	left := period - since
	if requests {
		left = limit.For - since
	}
	g.cfg.Deadlines.Set(&h.scaleUp, now+left)
	return requests
}

// turnScaleUps tries the gangs again that begin or cease to request nodes, which changes the reason of their pods.
func (g *Gangs) turnScaleUps() {
	var due []cluster.GangKey
	for key, h := range g.of { // order: sorted below
		if at := h.scaleUp.At(); at != 0 && at <= g.cfg.Host.Now() {
			due = append(due, key)
		}
	}
	slices.SortFunc(due, cluster.GangKey.Compare)
	for _, key := range due {
		g.cfg.Deadlines.Stop(&g.of[key].scaleUp)
		g.cfg.Host.Reconsider(key, "it requests nodes for a limited time")
	}
}
