// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// What a pod says of its gang can change: people edit annotations, and pod groups are read once their API is there.
// An edit counts while no pod of the gang has a place (answer A19). After that the pod is kept in its gang, and
// goes to the other one when the last of those with a place has gone: a scheduler that starts then finds it there,
// too.

// keepGang is p, in the gang in which it was while another of that gang has a place.
func (g *gangs) keepGang(old, p *cluster.Pod) *cluster.Pod {
	delete(g.edited, p.UID)
	if old == nil || old.Gang == nil || old.Gang == p.Gang || p.Gang != nil && p.Gang.Key == old.Gang.Key {
		return p
	}
	if g.e.store.Snapshot().GangHolds(old.Gang.Key) == 0 {
		return p
	}
	g.edited[p.UID] = p
	kept := *p
	kept.Gang = old.Gang
	return &kept
}

// letEdited lets pods go to the gangs that they name by now, when nothing of the one in which they were kept has a
// place.
func (g *gangs) letEdited(key cluster.GangKey) {
	if len(g.edited) == 0 || g.e.store.Snapshot().GangHolds(key) > 0 {
		return
	}
	var let []*cluster.Pod
	for uid, p := range g.edited { // order: sorted below
		if g.e.pending[uid].Gang.Key == key {
			let = append(let, p)
		}
	}
	slices.SortFunc(let, cluster.CompareKeys)
	for _, p := range let {
		old := g.e.pending[p.UID]
		delete(g.edited, p.UID)
		g.e.pending[p.UID] = p
		if _, _, waits := g.e.queue.Lookup(p.UID); waits {
			g.regroup(old, p)
		}
	}
}

// regroup follows a pod that waits and says something else of its gang: it goes to the gang that it names now, or
// to itself, or asks the gates again where it is. Its version may be the one that is known: its group could not be
// read before.
func (g *gangs) regroup(old, p *cluster.Pod) {
	g.e.queue.Update(nil, p)
	g.e.queue.ReconsiderPod(p.UID, memberDeclares)
	if old.Gang == nil || p.Gang != nil && p.Gang.Key == old.Gang.Key {
		return
	}
	g.e.evictions.GangLeft(old)
	g.e.forgetGang(old.Gang.Key)
}
