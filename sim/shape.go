// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
)

// shape is a request that pods have, with the number of pods that were created with it.
type shape struct {
	need Vector
	pods int
}

// shapeOf returns the shape of a template's pods.
func (m *Measure) shapeOf(t *Template) *shape {
	if t.shape != nil {
		return t.shape
	}
	key := fmt.Sprint(t.need)
	s := m.byNeed[key]
	if s == nil {
		s = &shape{need: t.need}
		m.byNeed[key] = s
		m.shapes = append(m.shapes, s)
	}
	t.shape = s
	return s
}

// typical returns the most popular shapes, until they cover 95 % of the pods, with their shares of these.
func (m *Measure) typical() (list []*shape, share []float64) {
	list = slices.Clone(m.shapes)
	slices.SortStableFunc(list, func(a, b *shape) int { return b.pods - a.pods })
	covered, enough := 0, 0
	for enough < len(list) && covered*100 < m.created*95 {
		covered += list[enough].pods
		enough++
	}
	list = list[:enough]
	for _, s := range list {
		share = append(share, float64(s.pods)/float64(covered))
	}
	return list, share
}

// fragments returns, for each resource, the share of the capacity that is free and that the mix of pods seen so far
// cannot use: for each shape, what is left of a node when as many pods of it as fit are added, weighted by the share of
// the shape (a generalisation of FGD's measure to every resource, memory included). stranded is the share of the
// capacity that is free on nodes on which no shape fits.
func (m *Measure) fragments(w *World) (fragments, stranded []float64) {
	fragments, stranded = make([]float64, len(m.capacity)), make([]float64, len(m.capacity))
	shapes, share := m.typical()
	if len(shapes) == 0 {
		return fragments, stranded
	}
	free := make(Vector, len(m.capacity))
	for _, n := range w.order {
		for i := range free {
			free[i] = max(0, n.Capacity.at(i)-n.Used.at(i))
		}
		hosts := false
		for k, s := range shapes {
			fit := free.copies(s.need)
			hosts = hosts || fit > 0
			for i, f := range free {
				fragments[i] += float64(share[k] * float64(f-fit*s.need.at(i)))
			}
		}
		if !hosts {
			for i, f := range free {
				stranded[i] += float64(f)
			}
		}
	}
	for i, c := range m.capacity {
		if c > 0 {
			fragments[i] /= float64(c)
			stranded[i] /= float64(c)
		}
	}
	return fragments, stranded
}

// copies returns how many pods of a shape fit into free capacity.
func (v Vector) copies(need Vector) int64 {
	fit := int64(-1)
	for i, q := range need {
		if q <= 0 {
			continue
		}
		if k := v.at(i) / q; fit < 0 || k < fit {
			fit = k
		}
	}
	return max(fit, 0)
}
