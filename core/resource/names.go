// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// ID is the dense index of a resource name: the index of its column.
type ID int

// The resources for which every node has a column.
const (
	CPU ID = iota
	Memory
	Ephemeral
	Pods
	// Fixed is the number of these resources. The others are scalars, which a node may lack.
	Fixed
)

// Names maps resource names to columns. IDs are assigned in the order in which names are first seen. Invariant: an ID
// keeps its name.
type Names struct {
	ids   map[v1.ResourceName]ID // derived: the indexes of names. Name -> column
	names []v1.ResourceName      // kept; column -> name
}

// NewNames returns the dictionary with the four fixed columns.
func NewNames() *Names {
	n := &Names{ids: map[v1.ResourceName]ID{}}
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage,
		v1.ResourcePods} {
		n.Intern(name)
	}
	return n
}

// Intern returns the column of name, and assigns the next one if the name is new.
func (n *Names) Intern(name v1.ResourceName) ID {
	if id, ok := n.ids[name]; ok {
		return id
	}
	id := ID(len(n.names))
	n.ids[name] = id
	n.names = append(n.names, name)
	return id
}

// Lookup returns the column of name, if it has one.
func (n *Names) Lookup(name v1.ResourceName) (ID, bool) {
	id, ok := n.ids[name]
	return id, ok
}

// Name returns the name of a column.
func (n *Names) Name(id ID) v1.ResourceName { return n.names[id] }

// Len returns the number of columns.
func (n *Names) Len() int { return len(n.names) }

// Scalars returns the names beyond the fixed columns, by column.
func (n *Names) Scalars() []v1.ResourceName { return slices.Clone(n.names[Fixed:]) }
