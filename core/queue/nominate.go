// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// nominations are the nodes that pending pods count on, possibly ahead of what the API server holds.
type nominations struct {
	on map[string][]*cluster.Pod // node -> pods, in order of nomination; never an empty list
	of map[cluster.UID]string    // pod -> node
	// nodes are the keys of on, sorted.
	nodes []string
}

func (n *nominations) remove(uid cluster.UID) {
	node, ok := n.of[uid]
	if !ok {
		return
	}
	delete(n.of, uid)
	left := slices.DeleteFunc(n.on[node], func(p *cluster.Pod) bool { return p.UID == uid })
	if len(left) == 0 {
		delete(n.on, node)
		i, _ := slices.BinarySearch(n.nodes, node)
		n.nodes = slices.Delete(n.nodes, i, i+1)
		return
	}
	n.on[node] = left
}

func (n *nominations) add(p *cluster.Pod, node string) {
	n.of[p.UID] = node
	n.nodes = insert(n.nodes, node)
	n.on[node] = append(n.on[node], p)
}

// Nominate reserves a node for a pod in memory, in the place of any nomination it has. An empty node takes the
// nomination away. A pod that the queue does not hold or that is already assigned is not nominated.
func (q *Queue) Nominate(p *cluster.Pod, node string) {
	q.nominated.remove(p.UID)
	u := q.units[p.UID]
	if node == "" || u == nil || u.gone[p.UID] || p.NodeName != "" {
		return
	}
	q.nominated.add(p, node)
}

// NominateAsStatus makes the nomination what the pod's status says.
func (q *Queue) NominateAsStatus(p *cluster.Pod) { q.Nominate(p, p.Nominated) }

// Unnominate takes a pod's nomination away.
func (q *Queue) Unnominate(uid cluster.UID) { q.nominated.remove(uid) }

// renominate follows an update of a pod. The nomination in memory may be ahead of the API: an update that says nothing
// of it, before or after, keeps it.
func (q *Queue) renominate(old, p *cluster.Pod) {
	node := p.Nominated
	if old.Nominated == "" && node == "" && mutant != updateDropsNomination {
		node = q.nominated.of[old.UID]
	}
	q.Nominate(p, node)
}

// NominatedOn returns the pods nominated on a node in the order of their nomination, in their newest versions.
func (q *Queue) NominatedOn(node string) []*cluster.Pod {
	held := q.nominated.on[node]
	if len(held) == 0 {
		return nil
	}
	pods := slices.Clone(held)
	for i, p := range pods {
		if u := q.units[p.UID]; u != nil {
			pods[i] = u.rankedAs(u.latest(p.UID))
		}
	}
	return pods
}

// rankedAs is a pod of the unit with the unit's priority where that is higher: what a gang declares keeps room for all of its
// pods (answer A3 of the gang rules).
func (u *Unit) rankedAs(p *cluster.Pod) *cluster.Pod {
	if u.Gang == (cluster.GangKey{}) || u.Priority() <= p.Spec.Priority {
		return p
	}
	raised, spec := *p, *p.Spec
	spec.Priority = u.Priority()
	raised.Spec = &spec
	return &raised
}

// NominatedNodes are the nodes with nominated pods, sorted by name; good until a nomination changes.
func (q *Queue) NominatedNodes() []string { return q.nominated.nodes }

// NominationOf is the node nominated for a pod, empty for none.
func (q *Queue) NominationOf(uid cluster.UID) string { return q.nominated.of[uid] }
