// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// nominations are the nominated nodes of pending pods, possibly newer than what the API server holds.
type nominations struct {
	on map[string][]*cluster.Pod // kept; node -> pods, in order of nomination. Invariant: no list is empty.
	// of maps a pod to its nomination. Invariant: on[of[uid].node] has the pod exactly once.
	of map[cluster.UID]nominatedNode // kept
	// Invariant: nodes are the keys of on, sorted.
	nodes []string // derived: the keys of on
	// freed are the nominations that have ended since TakeFreed, made those that began since; both in order.
	freed, made []Freed // derived: empty after TakeFreed

	follower plugin.Nominator // derived: of the configuration; nil for none
}

// tell tells the follower which pods are nominated to a node.
func (n *nominations) tell(node string) {
	if n.follower != nil {
		n.follower.Nominated(node, n.on[node])
	}
}

// nominatedNode is the nominated node of a pod.
type nominatedNode struct {
	node string // kept
	// priority is the highest priority of other pods that leave the capacity to the pod: the pod's own, or that of
	// its unit if that is higher.
	priority int32 // kept
}

// Freed is a nomination that has ended, or whose priority fell: pods up to Priority left capacity on the node to it.
type Freed struct {
	Pod      *cluster.Pod
	Node     string
	Priority int32
}

func (n *nominations) remove(uid cluster.UID) {
	was, ok := n.of[uid]
	if !ok {
		return
	}
	delete(n.of, uid)
	at := slices.IndexFunc(n.on[was.node], func(p *cluster.Pod) bool { return p.UID == uid })
	n.freed = append(n.freed, Freed{n.on[was.node][at], was.node, was.priority})
	defer n.tell(was.node)
	left := slices.Delete(n.on[was.node], at, at+1)
	if len(left) == 0 {
		delete(n.on, was.node)
		i, _ := slices.BinarySearch(n.nodes, was.node)
		n.nodes = slices.Delete(n.nodes, i, i+1)
		return
	}
	n.on[was.node] = left
}

func (n *nominations) add(p *cluster.Pod, node string, priority int32) {
	n.of[p.UID] = nominatedNode{node, priority}
	n.made = append(n.made, Freed{p, node, priority})
	n.nodes = insert(n.nodes, node)
	n.on[node] = append(n.on[node], p)
	n.tell(node)
}

// rank applies a change of a nominated pod's priority. A pod without a nomination is ignored.
func (n *nominations) rank(p *cluster.Pod, priority int32) {
	was, ok := n.of[p.UID]
	if !ok || was.priority == priority {
		return
	}
	n.of[p.UID] = nominatedNode{was.node, priority}
	if priority < was.priority {
		n.freed = append(n.freed, Freed{p, was.node, was.priority})
	}
}

// Nominate sets the nominated node of a pod in memory; an empty node removes the nomination. A pod that the queue
// does not hold or that is already bound is not nominated.
func (q *Queue) Nominate(p *cluster.Pod, node string) {
	q.nominated.remove(p.UID)
	u := q.units[p.UID]
	if node == "" || u == nil || u.gone[p.UID] || p.NodeName != "" {
		return
	}
	q.nominated.add(p, node, u.rankOf(p))
}

// NominateAsStatus sets the nomination to the pod's status.nominatedNodeName.
func (q *Queue) NominateAsStatus(p *cluster.Pod) { q.Nominate(p, p.Nominated) }

// RepeatNominations tells the follower of nominations again which pods are nominated to a node.
func (q *Queue) RepeatNominations(node string) { q.nominated.tell(node) }

// Unnominate removes a pod's nomination.
func (q *Queue) Unnominate(uid cluster.UID) { q.nominated.remove(uid) }

// TakeFreed returns the nominations that have ended since the last call, in order, without those that an equal one
// replaced: of the same pod, or of one with the same spec, as when members of a gang swap nodes.
func (q *Queue) TakeFreed() []Freed {
	n := &q.nominated
	freed, made := n.freed, n.made
	n.freed, n.made = nil, made[:0]
	if len(freed) == 0 {
		return nil
	}
	made = slices.DeleteFunc(made, func(m Freed) bool { return n.of[m.Pod.UID].node != m.Node })
	return slices.DeleteFunc(freed, func(f Freed) bool {
		at := slices.IndexFunc(made, func(m Freed) bool {
			same := m.Pod.UID == f.Pod.UID || m.Pod.Spec == f.Pod.Spec && m.Pod.Namespace == f.Pod.Namespace
			return same && m.Node == f.Node && m.Priority >= f.Priority
		})
		if at >= 0 {
			made = slices.Delete(made, at, at+1)
		}
		return at >= 0
	})
}

// renominate applies an update of a pod. The nomination in memory may be newer than the API: an update without one,
// before and after, keeps it.
func (q *Queue) renominate(old, p *cluster.Pod) {
	node := p.Nominated
	if old.Nominated == "" && node == "" {
		node = q.NominationOf(old.UID)
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

// rankedAs returns a pod of the unit with the priority that it has while it is nominated: the one that its gang
// declares, or its own (answer A3 of the gang rules).
func (u *Unit) rankedAs(p *cluster.Pod) *cluster.Pod {
	rank := u.rankOf(p)
	if rank == p.Spec.Priority {
		return p
	}
	ranked, spec := *p, *p.Spec
	spec.Priority = rank
	ranked.Spec = &spec
	return &ranked
}

// NominatedNodes returns the nodes with nominated pods, sorted by name; valid until a nomination changes.
func (q *Queue) NominatedNodes() []string { return q.nominated.nodes }

// NominationOf returns the node nominated for a pod, empty for none.
func (q *Queue) NominationOf(uid cluster.UID) string { return q.nominated.of[uid].node }
