// SPDX-License-Identifier: Apache-2.0

package victim

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// Shortage is what one pod lacks on the current node, by resource, and what other pods would free. Prepare and
// Measure come first.
type Shortage struct {
	Needs []Need
	// Exact reports that nothing else decides on nodes where amounts reject the pod.
	Exact bool
	// Known reports that Needs are all amounts that the pod needs.
	Known bool
}

// Need is one resource that the pod needs of a node.
type Need struct {
	plugin.Amount
	kind               Kind
	known              bool           // a node offers the resource, or a pod holds it
	requested, offered cluster.Column // set if known
	Lacks              int64          // on the current node: what must be freed; negative if more than enough is free
}

// Kind says where an Entry or a pod has the amount of a resource.
type Kind uint8

const (
	ofPods Kind = iota
	ofCPU
	ofMemory
	ofEphemeral
	ofScalar // in the pod's spec, by name
)

// KindOf returns the kind of a resource.
func KindOf(name v1.ResourceName) Kind {
	switch name {
	case v1.ResourcePods:
		return ofPods
	case v1.ResourceCPU:
		return ofCPU
	case v1.ResourceMemory:
		return ofMemory
	case v1.ResourceEphemeralStorage:
		return ofEphemeral
	}
	return ofScalar
}

// Prepare reads what the pod of a what-if check needs. Known is false if one of the amounts is above MaxAmount.
func (sm *Shortage) Prepare(s cluster.Snapshot, rel *place.WhatIf) {
	sm.Needs = sm.Needs[:0]
	sm.Exact, sm.Known = rel.AmountsAlone(), len(rel.Needs()) > 0
	for _, a := range rel.Needs() {
		if a.Amount > MaxAmount {
			sm.Needs, sm.Exact, sm.Known = sm.Needs[:0], false, false
			return
		}
		nd := Need{Amount: a, kind: KindOf(a.Name)}
		if id, known := s.Names().Lookup(a.Name); known {
			nd.known, nd.requested, nd.offered = true, s.Requested(id), s.Allocatable(id)
		}
		sm.Needs = append(sm.Needs, nd)
	}
}

// Measure makes a row the current node and computes what is missing there.
func (sm *Shortage) Measure(n cluster.NodeIdx) {
	for i := range sm.Needs {
		nd := &sm.Needs[i]
		nd.Lacks = nd.Amount.Amount
		switch {
		case nd.Offered > 0:
			nd.Lacks -= nd.Offered - nd.requested.At(n)
		case nd.known:
			nd.Lacks -= nd.offered.At(n) - nd.requested.At(n)
		}
	}
}

// AddExpected counts a pod that is expected on the current node. A pod with an amount that is TooLarge is left out.
func (sm *Shortage) AddExpected(held *resource.Amounts) {
	if TooLarge(held) {
		return
	}
	for i := range sm.Needs {
		nd := &sm.Needs[i]
		more := held.Get(nd.Name)
		if nd.kind == ofPods {
			more = 1
		}
		nd.Lacks += more
	}
}

// HeldByEntry returns what a pod holds of the resource.
func (nd *Need) HeldByEntry(c *Entry) int64 {
	switch nd.kind {
	case ofPods:
		return 1
	case ofCPU:
		return c.MilliCPU
	case ofMemory:
		return c.Memory
	case ofEphemeral:
		return c.Ephemeral
	}
	return c.Pod.Spec.Held.Get(nd.Name)
}

// HeldBy returns what a pod holds of the resource.
func (nd *Need) HeldBy(p *cluster.Pod) int64 { return Held(p, nd.kind, nd.Name) }

// HeldTogether returns what the pods that are added up in c hold of the resource. If there are no pods, c is one pod.
func (nd *Need) HeldTogether(c *Entry, pods []*cluster.Pod) (sum int64) {
	switch {
	case len(pods) == 0 || nd.kind != ofPods && nd.kind != ofScalar:
		return nd.HeldByEntry(c)
	case nd.kind == ofPods:
		return int64(len(pods))
	}
	for _, p := range pods {
		sum += p.Spec.Held.Get(nd.Name)
	}
	return sum
}

// Level returns how many of the pods, from the most important on, can stay so that those behind them hold what is
// missing. The cut is between priorities: the highest priority of the victims is that of the first pod behind the
// cut. ok is false if all of them together do not hold enough. What is freed beyond what is missing is left in Lacks,
// below zero. There must be at least one pod.
func (sm *Shortage) Level(lower []Entry) (cut int, ok bool) {
	cut = len(lower)
	for {
		// Remove all of the next priority, at least one pod: there must be a victim even if nothing is missing.
		priority := lower[cut-1].Priority
		for cut > 0 && lower[cut-1].Priority == priority {
			cut--
			sm.Remove(&lower[cut])
		}
		if sm.Met() {
			return cut, true
		}
		if cut == 0 {
			return 0, false
		}
	}
}

// Remove counts a pod as gone.
func (sm *Shortage) Remove(c *Entry) {
	for i := range sm.Needs {
		sm.Needs[i].Lacks -= sm.Needs[i].HeldByEntry(c)
	}
}

// Met reports whether nothing is missing on the current node.
func (sm *Shortage) Met() bool {
	for i := range sm.Needs {
		if sm.Needs[i].Lacks > 0 {
			return false
		}
	}
	return true
}

// PutBack counts a removed pod as present again if enough is left, and reports whether it did. Level or Remove comes
// first.
func (sm *Shortage) PutBack(c *Entry) bool {
	for i := range sm.Needs {
		nd := &sm.Needs[i]
		if nd.Lacks+nd.HeldByEntry(c) > 0 {
			return false
		}
	}
	for i := range sm.Needs {
		nd := &sm.Needs[i]
		nd.Lacks += nd.HeldByEntry(c)
	}
	return true
}

// Held returns what a pod holds of a resource of a kind. The name is read for resources without a field of their own.
func Held(p *cluster.Pod, of Kind, name v1.ResourceName) int64 {
	h := &p.Spec.Held
	switch of {
	case ofPods:
		return 1
	case ofCPU:
		return h.MilliCPU
	case ofMemory:
		return h.Memory
	case ofEphemeral:
		return h.Ephemeral
	}
	return h.Get(name)
}
