// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Resource is a resource that a scorer weighs.
type Resource struct {
	Name   v1.ResourceName
	Weight int64 // from 1 to 100
}

// defaultResources are CPU and memory.
func defaultResources() []Resource {
	return []Resource{{v1.ResourceCPU, 1}, {v1.ResourceMemory, 1}}
}

// check returns what is wrong with a list of resources.
func check(list []Resource) error {
	for i, r := range list {
		if r.Weight < 1 || r.Weight > 100 {
			return fmt.Errorf("the weight of %s must be between 1 and 100, got %d", r.Name, r.Weight)
		}
		for _, before := range list[:i] {
			if before.Name == r.Name {
				return fmt.Errorf("resource %s is given twice", r.Name)
			}
		}
	}
	return nil
}

// term is one resource prepared for a pod.
type term struct {
	name   v1.ResourceName
	pod    int64   // what the pod requests
	unit   float64 // an amount that counts as 1
	weight float64
}

// byLargest returns the terms of resources that some node offers, in units of the largest node.
func byLargest(s cluster.Snapshot, list []Resource, p *cluster.Pod) (out []term) {
	amounts, _ := s.Largest()
	for _, r := range list {
		id, known := s.Names().Lookup(r.Name)
		if !known || int(id) >= len(amounts) || amounts[id] <= 0 {
			continue
		}
		out = append(out, term{r.Name, p.Spec.Held.Get(r.Name), float64(amounts[id]), float64(r.Weight)})
	}
	return out
}

// weighByDemand multiplies the weight of each term by what pods request of its resource on average, as a share of the
// unit: those of the mix, and the one of the terms.
func weighByDemand(s cluster.Snapshot, terms []term) {
	shapes, _ := s.Mix()
	for i := range terms {
		t := &terms[i]
		t.weight *= meanDemand(shapes, t.name, t.pod) / t.unit
	}
}

// meanDemand returns what pods request of a resource on average: those of the mix, and one more.
func meanDemand(shapes []cluster.Shape, name v1.ResourceName, one int64) float64 {
	sum, pods := float64(one), 1.0
	for i := range shapes {
		n := float64(shapes[i].Pods)
		pods += n
		sum += float64(n * float64(shapes[i].Held.Get(name)))
	}
	return sum / pods
}

// free returns what a node has free of a resource, at least 0.
func free(allocatable, requested int64) int64 {
	if requested >= allocatable {
		return 0
	}
	return allocatable - max(requested, 0)
}

// freeOf returns what a node has free of a resource by its view.
func freeOf(v *cluster.NodeView, name v1.ResourceName) int64 {
	return free(v.Allocatable(name), v.Requested(name))
}

// columns reads what rows have free.
type columns struct {
	spaces [][]int64
	free   [][]int64 // by resource, then by row from lo on
}

// read computes what rows lo to hi-1 have free of resources. The result is valid until the next call.
func (c *columns) read(s cluster.Snapshot, lo, hi cluster.NodeIdx, names []v1.ResourceName) [][]int64 {
	for len(c.free) < len(names) {
		c.free, c.spaces = append(c.free, nil), append(c.spaces, nil, nil)
	}
	for k, name := range names {
		out := resize(&c.free[k], int(hi-lo))
		id, known := s.Names().Lookup(name)
		if !known {
			clear(out)
			continue
		}
		allocatable := s.Allocatable(id).Cut(lo, hi, &c.spaces[2*k])
		requested := s.Requested(id).Cut(lo, hi, &c.spaces[2*k+1])
		for i := range out {
			out[i] = free(allocatable[i], requested[i])
		}
	}
	return c.free[:len(names)]
}

// resize returns a slice of a length, with the memory of space. What it holds is undefined.
func resize[T any](space *[]T, n int) []T {
	if cap(*space) < n {
		*space = make([]T, n)
	}
	*space = (*space)[:n]
	return *space
}

// namesOf returns the resources of terms.
func namesOf(terms []term) []v1.ResourceName {
	names := make([]v1.ResourceName, len(terms))
	for i := range terms {
		names[i] = terms[i].name
	}
	return names
}

// readsAll is what the scorers read: amounts of the row, and of all rows as far as their versions cover it.
const readsAll = plugin.ReadsAmounts | plugin.ReadsRows | plugin.ReadsVersioned

// versions joins two versions. Invariant of both: they change by small steps.
func versions(mix, largest uint64) uint64 { return mix<<32 | largest&(1<<32-1) }

// inRange returns a score as a whole number from 0 to MaxScore.
func inRange(score float64) int64 { return min(max(int64(score), 0), plugin.MaxScore) }
