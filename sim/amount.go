// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// Vector holds an amount for each resource of a World, by its resource.ID.
type Vector []int64

// vector converts amounts. The pod that they are of counts as one.
func (w *World) vector(a *resource.Amounts, pods int64) Vector {
	for _, s := range a.Scalars {
		w.names.Intern(s.Name)
	}
	out := make(Vector, w.names.Len())
	for i := range out {
		out[i] = a.Get(w.names.Name(resource.ID(i)))
	}
	if id, ok := w.names.Lookup(v1.ResourcePods); ok {
		out[id] = pods
	}
	return out
}

// add adds another vector times sign, and grows for resources that were not known.
func (v *Vector) add(o Vector, sign int64) {
	for len(*v) < len(o) {
		*v = append(*v, 0)
	}
	for i, x := range o {
		(*v)[i] = resource.Add((*v)[i], sign*x)
	}
}

// at returns one amount.
func (v Vector) at(i int) int64 {
	if i < len(v) {
		return v[i]
	}
	return 0
}

// fits reports whether used plus need is within v, for each resource that need has.
func (v Vector) fits(used, need Vector) bool {
	for i, x := range need {
		if x > 0 && resource.Add(used.at(i), x) > v.at(i) {
			return false
		}
	}
	return true
}

// ResourceNames returns the resources in the order of a Vector.
func (w *World) ResourceNames() []v1.ResourceName {
	out := make([]v1.ResourceName, w.names.Len())
	for i := range out {
		out[i] = w.names.Name(resource.ID(i))
	}
	return out
}

// At returns the amount of a resource by its place in World.ResourceNames.
func (v Vector) At(i int) int64 { return v.at(i) }

// Minus returns what is left of v without o.
func (v Vector) Minus(o Vector) Vector {
	out := slices.Clone(v)
	out.add(o, -1)
	return out
}
