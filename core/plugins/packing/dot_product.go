// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"fmt"
	"math"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// DotProduct prefers nodes on which resources are free in the proportion in which the pod requests them: the cosine of
// the angle between both, in percent. Resources are weighed by what pods request of them on average, those seen so far
// and the pod itself: the scarcer a resource is, the more it counts.
type DotProduct struct {
	args DotProductArgs
	work dotProductWork
}

// DotProductName is its name in configurations.
const DotProductName = "NodeResourcesDotProduct"

// DotProductArgs are its arguments.
type DotProductArgs struct {
	// Resources have weights by which the dynamic weights are multiplied.
	Resources []Resource
}

// DefaultDotProductArgs returns CPU and memory.
func DefaultDotProductArgs() DotProductArgs { return DotProductArgs{Resources: defaultResources()} }

// NewDotProduct returns the plugin, or what is wrong with its arguments.
func NewDotProduct(args DotProductArgs) (*DotProduct, error) {
	err := check(args.Resources)
	if len(args.Resources) == 0 {
		err = fmt.Errorf("no resources to score")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", DotProductName, err)
	}
	return &DotProduct{args: args}, nil
}

// Name returns DotProductName.
func (*DotProduct) Name() string { return DotProductName }

// Reads declares the amounts of the row, the largest amounts of all rows, and the mix.
func (*DotProduct) Reads() plugin.Reads { return readsAll }

// Normal leaves the scores alone.
func (*DotProduct) Normal() plugin.Normal { return plugin.AsIs }

// PrepareScore applies to every pod.
func (pl *DotProduct) PrepareScore(s cluster.Snapshot, p *cluster.Pod) plugin.PodScore {
	terms := byLargest(s, pl.args.Resources, p)
	weighByDemand(s, terms)
	out := &dotProductScore{terms: terms, names: namesOf(terms), work: &pl.work}
	for _, t := range terms {
		request := float64(t.pod) / t.unit
		out.requests += float64(t.weight * float64(request*request))
	}
	return out
}

type dotProductScore struct {
	terms    []term
	names    []v1.ResourceName
	requests float64 // the square of the norm of the requests
	work     *dotProductWork
}

// dotProductWork is memory for one call of a column form.
type dotProductWork struct {
	columns       columns
	product, norm []float64
}

// parts returns what one resource adds to the product, and to the square of the norm of what is free.
func (t *term) parts(free int64) (product, norm float64) {
	f := float64(free) / t.unit
	return float64(t.weight * float64(f*(float64(t.pod)/t.unit))), float64(t.weight * float64(f*f))
}

// score returns the score of the sums. Without a request, or without anything free, it is 0.
func (f *dotProductScore) score(product, norm float64) int64 {
	if f.requests == 0 || norm == 0 {
		return 0
	}
	return inRange(float64(plugin.MaxScore) * (product / float64(math.Sqrt(f.requests)*math.Sqrt(norm))))
}

// Plain returns the score of one node.
func (f *dotProductScore) Plain(_ cluster.Snapshot, v *cluster.NodeView) int64 {
	var product, norm float64
	for i := range f.terms {
		p, n := f.terms[i].parts(freeOf(v, f.terms[i].name))
		product, norm = product+p, norm+n
	}
	return f.score(product, norm)
}

// Column adds up the parts of one resource after the other.
func (f *dotProductScore) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, out []int64) {
	columns := f.work.columns.read(s, lo, hi, f.names)
	product, norm := resize(&f.work.product, int(hi-lo)), resize(&f.work.norm, int(hi-lo))
	clear(product)
	clear(norm)
	for k, column := range columns {
		t := &f.terms[k]
		for i, free := range column[:len(product)] {
			p, n := t.parts(free)
			product[i], norm[i] = product[i]+p, norm[i]+n
		}
	}
	for i := range product {
		out[int(lo)+i] = f.score(product[i], norm[i])
	}
}

// Version changes with the largest amounts and the mix.
func (f *dotProductScore) Version(s cluster.Snapshot) uint64 {
	_, largest := s.Largest()
	_, mix := s.Mix()
	return versions(mix, largest)
}

// Reads declares the amounts of the row: the rest was read at the preparation, and the version covers it.
func (*dotProductScore) Reads() plugin.Reads { return plugin.ReadsAmounts }
