// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// NodeView is one node as the plain forms of plugins see it: the node's record and the sums over its pods. It is a
// copy; AddPod and RemovePod change the copy alone, to model nominated pods and victims.
type NodeView struct {
	Row     NodeIdx
	Node    *Node
	NonZero [2]int64 // requested CPU and memory with defaults for silent containers
	Pods    []*Pod
	Ports   []HostPort

	// The amounts that the pods hold.
	fixed   [resource.Fixed]int64
	scalars []scalar // Invariant: at most one of each resource.
	names   *resource.Names
}

// scalar is an amount of a resource beyond resource.Fixed.
type scalar struct {
	id     resource.ID
	amount int64
}

// Allocatable returns the node's allocatable amount of a resource.
func (v *NodeView) Allocatable(name v1.ResourceName) int64 { return v.Node.Allocatable.Get(name) }

// Requested returns the amount that the pods of the view hold of a resource. For v1.ResourcePods it is their number.
func (v *NodeView) Requested(name v1.ResourceName) int64 {
	id, ok := v.names.Lookup(name)
	switch {
	case !ok:
		return 0
	case id < resource.Fixed:
		return v.fixed[id]
	}
	for i := range v.scalars {
		if v.scalars[i].id == id {
			return v.scalars[i].amount
		}
	}
	return 0
}

// HasImage reports whether the node has an image.
func (v *NodeView) HasImage(name string) bool {
	for _, img := range v.Node.Images {
		if slices.Contains(img.Names, name) {
			return true
		}
	}
	return false
}

// AddPod adds a pod to the view.
func (v *NodeView) AddPod(p *Pod) {
	v.Pods = append(v.Pods, p)
	v.Ports = append(v.Ports, p.Spec.Ports...)
	v.count(p, 1)
}

// RemovePod removes a pod from the view. It panics if the view does not have it.
func (v *NodeView) RemovePod(uid UID) {
	i := slices.IndexFunc(v.Pods, func(p *Pod) bool { return p.UID == uid })
	if i < 0 {
		panic(Broken(fmt.Sprintf("view of node %q does not hold pod %s", v.Node.Name, uid)))
	}
	p := v.Pods[i]
	v.Pods = slices.Delete(v.Pods, i, i+1)
	for _, port := range p.Spec.Ports {
		j := slices.Index(v.Ports, port)
		v.Ports = slices.Delete(v.Ports, j, j+1)
	}
	v.count(p, -1)
}

func (v *NodeView) count(p *Pod, sign int64) {
	for id, held := range [resource.Fixed]int64{resource.CPU: p.Spec.Held.MilliCPU, resource.Memory: p.Spec.Held.Memory,
		resource.Ephemeral: p.Spec.Held.Ephemeral, resource.Pods: 1} {
		v.fixed[id] = resource.Add(v.fixed[id], sign*held)
	}
	for _, sc := range p.Spec.Held.Scalars {
		v.add(sc.Name, sign*sc.Value)
	}
	v.NonZero[0] = resource.Add(v.NonZero[0], sign*p.Spec.HeldNonZero[0])
	v.NonZero[1] = resource.Add(v.NonZero[1], sign*p.Spec.HeldNonZero[1])
}

func (v *NodeView) add(name v1.ResourceName, delta int64) {
	id, ok := v.names.Lookup(name)
	if !ok {
		return // no node offers it and no pod holds it; Fit rejects the pod by its request
	}
	if id < resource.Fixed {
		v.fixed[id] = resource.Add(v.fixed[id], delta)
		return
	}
	for i := range v.scalars {
		if s := &v.scalars[i]; s.id == id {
			s.amount = resource.Add(s.amount, delta)
			return
		}
	}
	v.scalars = append(v.scalars, scalar{id, delta})
}

// EmptyView returns the view of a node as if it had no pods. It reuses the memory of into, which may be nil.
func (v Snapshot) EmptyView(n NodeIdx, into *NodeView) *NodeView {
	if into == nil {
		into = &NodeView{}
	}
	into.Row, into.Node, into.NonZero, into.names = n, v.s.rows[n].node, [2]int64{}, v.s.names
	into.Pods, into.Ports = into.Pods[:0], into.Ports[:0]
	into.fixed, into.scalars = [resource.Fixed]int64{}, into.scalars[:0]
	return into
}
