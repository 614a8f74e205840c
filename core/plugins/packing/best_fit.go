// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"fmt"
	"math"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// BestFit prefers the node on which the pod leaves least: 100 less the norm of what is left of each resource, in
// percent of the largest node.
type BestFit struct {
	args BestFitArgs
	work bestFitWork
}

// BestFitName is its name in configurations.
const BestFitName = "NodeResourcesBestFit"

// Norm is how what is left of several resources becomes one number.
type Norm string

// The norms: the weighted mean, and the square root of the weighted mean of squares, to which the resource of which
// most is left contributes most.
const (
	L1 Norm = "L1"
	L2 Norm = "L2"
)

// BestFitArgs are its arguments.
type BestFitArgs struct {
	Norm      Norm
	Resources []Resource
	// DemandWeights multiplies the weight of each resource by what pods request of it on average, those seen so far and
	// the pod itself: the scarcer a resource is, the more counts what is left of it. A pod that requests none of the
	// resources, before any that does was seen, scores 0 on each node.
	DemandWeights bool
}

// DefaultBestFitArgs returns L1 over CPU and memory.
func DefaultBestFitArgs() BestFitArgs { return BestFitArgs{Norm: L1, Resources: defaultResources()} }

// NewBestFit returns the plugin, or what is wrong with its arguments.
func NewBestFit(args BestFitArgs) (*BestFit, error) {
	err := check(args.Resources)
	switch {
	case len(args.Resources) == 0:
		err = fmt.Errorf("no resources to score")
	case args.Norm != L1 && args.Norm != L2:
		err = fmt.Errorf("unknown norm %q, there are %s and %s", args.Norm, L1, L2)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", BestFitName, err)
	}
	return &BestFit{args: args}, nil
}

// Name returns BestFitName.
func (*BestFit) Name() string { return BestFitName }

// Reads declares the amounts of the row, the largest amounts of all rows, and the mix.
func (*BestFit) Reads() plugin.Reads { return readsAll }

// Normal leaves the scores alone.
func (*BestFit) Normal() plugin.Normal { return plugin.AsIs }

// PrepareScore applies to every pod.
func (pl *BestFit) PrepareScore(s cluster.Snapshot, p *cluster.Pod) plugin.PodScore {
	terms := byLargest(s, pl.args.Resources, p)
	if pl.args.DemandWeights {
		weighByDemand(s, terms)
	}
	out := &bestFitScore{norm: pl.args.Norm, byDemand: pl.args.DemandWeights, terms: terms, names: namesOf(terms),
		work: &pl.work}
	for i := range terms {
		out.weights += terms[i].weight
	}
	return out
}

type bestFitScore struct {
	norm     Norm
	byDemand bool // the weights depend on the mix
	terms    []term
	names    []v1.ResourceName
	weights  float64
	work     *bestFitWork
}

// bestFitWork is memory for one call of a column form.
type bestFitWork struct {
	columns columns
	sums    []float64
}

// part returns what is left of one resource, as a share of the largest node, in the power of the norm.
func (f *bestFitScore) part(t *term, free int64) float64 {
	left := float64(max(free-t.pod, 0)) / t.unit
	if f.norm == L2 {
		return float64(t.weight * float64(left*left))
	}
	return float64(t.weight * left)
}

// score returns the score of a sum of parts.
func (f *bestFitScore) score(sum float64) int64 {
	if f.weights == 0 {
		return 0
	}
	left := sum / f.weights
	if f.norm == L2 {
		left = math.Sqrt(left)
	}
	return inRange(float64(plugin.MaxScore) * (1 - left))
}

// Plain returns the score of one node.
func (f *bestFitScore) Plain(_ cluster.Snapshot, v *cluster.NodeView) int64 {
	var sum float64
	for i := range f.terms {
		sum += f.part(&f.terms[i], freeOf(v, f.terms[i].name))
	}
	return f.score(sum)
}

// Column adds up the parts of one resource after the other.
func (f *bestFitScore) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, out []int64) {
	columns := f.work.columns.read(s, lo, hi, f.names)
	sums := resize(&f.work.sums, int(hi-lo))
	clear(sums)
	for k, column := range columns {
		t := &f.terms[k]
		for i, free := range column[:len(sums)] {
			sums[i] += f.part(t, free)
		}
	}
	for i, sum := range sums {
		out[int(lo)+i] = f.score(sum)
	}
}

// Version changes with the largest amounts, and with the mix if weights depend on it.
func (f *bestFitScore) Version(s cluster.Snapshot) uint64 {
	_, largest := s.Largest()
	if !f.byDemand {
		return largest
	}
	_, mix := s.Mix()
	return versions(mix, largest)
}

// Reads declares the amounts of the row: the rest was read at the preparation, and the version covers it.
func (*bestFitScore) Reads() plugin.Reads { return plugin.ReadsAmounts }
