// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
)

// Node is a node of a World.
type Node struct {
	Record   *cluster.Node
	Capacity Vector
	// Used is what the pods request that the API server has on it, terminating ones included.
	Used Vector

	admitted Vector // what the pods request that the kubelet has admitted
	pods     []*Pod // in the order in which they were bound
	failed   bool
	gone     bool
}

// Pods returns the pods on the node. The caller must not change the list.
func (n *Node) Pods() []*Pod { return n.pods }

func (n *Node) drop(p *Pod) {
	if i := slices.Index(n.pods, p); i >= 0 {
		n.pods = slices.Delete(n.pods, i, i+1)
	}
}

// AddNode has a node join.
func (w *World) AddNode(n *v1.Node) { w.AddRecord(w.intake.Node(n)) }

// AddRecord has a node join whose record was made before. A node of the name must not exist.
func (w *World) AddRecord(rec *cluster.Node) {
	if w.nodes[rec.Name] != nil {
		panic(fmt.Sprintf("sim: two nodes of the name %s", rec.Name))
	}
	n := &Node{Record: rec, Capacity: w.vector(&rec.Allocatable, rec.Allocatable.Pods)}
	w.nodes[rec.Name] = n
	w.order = append(w.order, n)
	w.changed = w.now
	w.publish(engine.NodeSet{Node: rec})
	w.setup.Observer.NodesChanged(w)
}

// SetRecord replaces a node's record by one that was made before.
func (w *World) SetRecord(n *Node, rec *cluster.Node) {
	n.Record, n.Capacity = rec, w.vector(&rec.Allocatable, rec.Allocatable.Pods)
	w.publish(engine.NodeSet{Node: rec})
	w.setup.Observer.NodesChanged(w)
}

// changeNode publishes a changed copy of a node.
func (w *World) changeNode(n *Node, with func(*cluster.Node)) {
	next := *n.Record
	next.Taints = slices.Clone(next.Taints)
	with(&next)
	n.Record = &next
	w.changed = w.now
	w.publish(engine.NodeSet{Node: n.Record})
}

// Taint adds a taint to a node, Untaint removes it.
func (w *World) Taint(n *Node, t v1.Taint) {
	if !n.gone {
		w.changeNode(n, func(c *cluster.Node) { c.Taints = append(c.Taints, t) })
	}
}

// Untaint removes the taints of a key from a node.
func (w *World) Untaint(n *Node, key string) {
	if n.gone {
		return
	}
	w.changeNode(n, func(c *cluster.Node) {
		c.Taints = slices.DeleteFunc(c.Taints, func(t v1.Taint) bool { return t.Key == key })
	})
}

// Fail stops a node: its pods run no more. It gets the taint for unreachable nodes after Model.Detect, and is removed
// with its pods after Model.Remove.
func (w *World) Fail(n *Node) {
	if n.gone || n.failed {
		return
	}
	n.failed = true
	m := &w.setup.Model
	w.After(m.Detect, func() {
		w.Taint(n, v1.Taint{Key: v1.TaintNodeUnreachable, Effect: v1.TaintEffectNoSchedule})
	})
	w.After(max(m.Remove, m.Detect), func() { w.Remove(n) })
}

// Remove deletes a node; the garbage collector deletes its pods.
func (w *World) Remove(n *Node) {
	if n.gone {
		return
	}
	n.gone = true
	w.changed = w.now
	delete(w.nodes, n.Record.Name)
	w.order = slices.DeleteFunc(w.order, func(o *Node) bool { return o == n })
	w.publish(engine.NodeGone{Name: n.Record.Name})
	w.setup.Observer.NodesChanged(w)
	w.After(w.setup.Model.Controller, func() {
		for _, p := range slices.Clone(n.pods) {
			w.remove(p, Lost)
		}
	})
}

// evictionRetry is how long a drain waits after a budget has forbidden an eviction (kubectl drain).
const evictionRetry = 5 * time.Second

// Drain cordons a node and evicts its pods, as disruption budgets allow.
func (w *World) Drain(n *Node) {
	if n.gone {
		return
	}
	w.changeNode(n, func(c *cluster.Node) { c.Unschedulable = true })
	for _, p := range slices.Clone(n.pods) {
		w.drain(p)
	}
}

func (w *World) drain(p *Pod) {
	switch {
	case p.gone || p.Record.Terminating || p.Record.OfNode:
	case w.takeBudget(p):
		w.Delete(p, Drained)
	default:
		w.retryAfter(evictionRetry, func() { w.drain(p) })
	}
}
