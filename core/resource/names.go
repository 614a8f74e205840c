// SPDX-License-Identifier: Apache-2.0

package resource

import v1 "k8s.io/api/core/v1"

// ID is the dense index of a resource name: the column it lives in.
type ID int

// The resources that every node has a column for.
const (
	CPU ID = iota
	Memory
	Ephemeral
	Pods
	// Fixed is how many these are. The others are scalars: nodes have them or not.
	Fixed
)

// Names gives resource names their column. IDs are handed out in the order in which names are first seen and never
// taken back.
type Names struct {
	ids   map[v1.ResourceName]ID // name -> column
	names []v1.ResourceName      // column -> name
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

// Intern returns the column of name, giving it the next free one at first sight.
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

// Name is the name of a column.
func (n *Names) Name(id ID) v1.ResourceName { return n.names[id] }

// Len is the number of columns.
func (n *Names) Len() int { return len(n.names) }
