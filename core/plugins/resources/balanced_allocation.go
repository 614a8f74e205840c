// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"math"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// Resources lists what is balanced.
func (pl *NodeResourcesBalancedAllocation) Resources() ([]v1.ResourceName, bool) {
	return pl.scorer.reads()
}

// NodeResourcesBalancedAllocation prefers nodes whose resources the pod brings into balance: 50 + (50 + with -
// without)/2, where with and without are (1 - deviation of the used fractions) * 100 after and before the pod. About
// 75 is neutral (upstream: plugins/noderesources/balanced_allocation.go). It counts real requests.
type NodeResourcesBalancedAllocation struct{ scorer allocationScorer }

// NodeResourcesBalancedAllocationName is its name in configurations.
const NodeResourcesBalancedAllocationName = "NodeResourcesBalancedAllocation"

// BalancedArgs are its arguments (upstream: NodeResourcesBalancedAllocationArgs).
type BalancedArgs struct {
	// Resources are to be in balance; each has weight 1 and stands once.
	Resources []WeightedResource
}

// DefaultBalancedArgs are upstream's defaults.
func DefaultBalancedArgs() BalancedArgs { return BalancedArgs{Resources: defaultScored()} }

// NewNodeResourcesBalancedAllocation returns the plugin, or what is wrong with its arguments.
func NewNodeResourcesBalancedAllocation(args BalancedArgs) (*NodeResourcesBalancedAllocation, error) {
	if len(args.Resources) == 0 {
		return nil, fmt.Errorf("%s: no resources to balance", NodeResourcesBalancedAllocationName)
	}
	for i, r := range args.Resources {
		if r.Weight != 1 {
			return nil, fmt.Errorf("%s: resource weight of %s must be 1: %d", NodeResourcesBalancedAllocationName,
				r.Name, r.Weight)
		}
		for _, before := range args.Resources[:i] {
			if before.Name == r.Name {
				return nil, fmt.Errorf("%s: resource %s stands twice", NodeResourcesBalancedAllocationName, r.Name)
			}
		}
	}
	real := true
	return &NodeResourcesBalancedAllocation{allocationScorer{resources: args.Resources, real: real}}, nil
}

// Name is NodeResourcesBalancedAllocationName.
func (*NodeResourcesBalancedAllocation) Name() string { return NodeResourcesBalancedAllocationName }

// Reads declares the amounts, and the devices that device classes back.
func (*NodeResourcesBalancedAllocation) Reads() plugin.Reads {
	return plugin.ReadsAmounts | plugin.ReadsObjects | plugin.ReadsVersioned
}

// PrepareScore skips pods that ask for none of the resources, so that they do not pile up on one node
// (kubernetes#129138).
func (pl *NodeResourcesBalancedAllocation) PrepareScore(_ cluster.Snapshot, p *cluster.Pod) plugin.PodScore {
	asks := false
	list := pl.scorer.prepare(p)
	for i := range list {
		asks = asks || list[i].pod != 0
	}
	if !asks {
		return nil
	}
	return &balancedScore{list: list, held: &p.Spec.Held, space: &pl.scorer.space}
}

// Normal leaves the scores alone.
func (*NodeResourcesBalancedAllocation) Normal() plugin.Normal { return plugin.AsIs }

type balancedScore struct {
	list []scored
	held *resource.Amounts // of the pod, for Explain
	buf  []scoredColumns
	// space is the plugin's.
	space *spaces
	// with and without hold the fractions of one node.
	with, without []float64
}

// fraction of a resource in use, at most 1.
func fraction(requested, allocatable int64) float64 {
	f := float64(requested) / float64(allocatable)
	if f > 1 {
		f = 1
	}
	return f
}

// evenness is (1 - standard deviation) * 100, truncated. Products are rounded before they are added: no compiler may
// fuse them, so every machine gives the same score.
func evenness(fractions []float64) int64 {
	var deviation float64
	switch n := len(fractions); {
	case n == 2:
		deviation = math.Abs((fractions[0] - fractions[1]) / 2)
	case n > 2:
		var total float64
		for _, f := range fractions {
			total += f
		}
		mean := total / float64(n)
		var sum float64
		for _, f := range fractions {
			sum += float64((f - mean) * (f - mean))
		}
		deviation = math.Sqrt(sum / float64(n))
	}
	return int64((1 - deviation) * float64(plugin.MaxScore))
}

func balance(with, without int64) int64 {
	return plugin.MaxScore/2 + (plugin.MaxScore/2+with-without)/2
}

func (f *balancedScore) Plain(s cluster.Snapshot, v *cluster.NodeView) int64 {
	f.with, f.without = f.with[:0], f.without[:0]
	for i := range f.list {
		r := &f.list[i]
		allocatable, requested := r.amounts(s, v)
		if allocatable == 0 {
			continue
		}
		f.with = append(f.with, fraction(resource.Add(requested, r.pod), allocatable))
		f.without = append(f.without, fraction(requested, allocatable))
	}
	return balance(evenness(f.with), evenness(f.without))
}

func (f *balancedScore) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, out []int64) {
	if countsDevices(f.list) != nil {
		rowByRow(s, lo, hi, out, f.Plain)
		return
	}
	f.buf = columns(s, lo, hi, f.list, f.space, f.buf)
	out = out[lo:hi]
	if len(f.buf) == 2 {
		balanceOfTwo(&f.buf[0], &f.buf[1], out)
		return
	}
	for i := range out {
		f.with, f.without = f.with[:0], f.without[:0]
		for k := range f.buf {
			c := &f.buf[k]
			if alloc := c.alloc[i]; alloc != 0 {
				f.with = append(f.with, fraction(resource.Add(c.used[i], c.pod), alloc))
				f.without = append(f.without, fraction(c.used[i], alloc))
			}
		}
		out[i] = balance(evenness(f.with), evenness(f.without))
	}
}

// balanceOfTwo is the balance of the usual two resources: with one alone there is nothing to balance.
func balanceOfTwo(a, b *scoredColumns, out []int64) {
	n := len(out)
	allocA, usedA, allocB, usedB := a.alloc[:n], a.used[:n], b.alloc[:n], b.used[:n]
	for i := range out {
		if allocA[i] == 0 || allocB[i] == 0 {
			out[i] = balance(plugin.MaxScore, plugin.MaxScore)
			continue
		}
		wholeA, wholeB := float64(allocA[i]), float64(allocB[i])
		with := evennessOfTwo(float64(resource.Add(usedA[i], a.pod))/wholeA,
			float64(resource.Add(usedB[i], b.pod))/wholeB)
		without := evennessOfTwo(float64(usedA[i])/wholeA, float64(usedB[i])/wholeB)
		out[i] = balance(with, without)
	}
}

// balancedPart names how even two resources are in use without a pod.
type balancedPart [2]resource.ID

var _ plugin.PartialScorer = (*balancedScore)(nil)

// Part is how even the usual two resources, which all nodes have, are in use without the pod.
func (f *balancedScore) Part() any {
	if len(f.list) != 2 || countsDevices(f.list) != nil {
		return nil
	}
	a, b := &f.list[0], &f.list[1]
	if a.id == noColumn || b.id == noColumn || a.id >= resource.Fixed || b.id >= resource.Fixed || a.silent >= 0 ||
		b.silent >= 0 {
		return nil
	}
	return balancedPart{a.id, b.id}
}

// PartColumn makes it.
func (f *balancedScore) PartColumn(s cluster.Snapshot, lo, hi cluster.NodeIdx, out []int64) {
	f.buf = columns(s, lo, hi, f.list, f.space, f.buf)
	out = out[lo:hi]
	n := len(out)
	allocA, usedA, allocB, usedB := f.buf[0].alloc[:n], f.buf[0].used[:n], f.buf[1].alloc[:n], f.buf[1].used[:n]
	var pod int64
	for i := range out {
		out[i] = plugin.MaxScore
		if allocA[i] != 0 && allocB[i] != 0 {
			out[i] = evennessOfTwo(float64(usedA[i]+pod)/float64(allocA[i]), float64(usedB[i])/float64(allocB[i]))
		}
	}
}

// ColumnWithPart is Column with half of the divisions.
func (f *balancedScore) ColumnWithPart(s cluster.Snapshot, lo, hi cluster.NodeIdx, half, out []int64) {
	f.buf = columns(s, lo, hi, f.list, f.space, f.buf)
	out, half = out[lo:hi], half[lo:hi]
	n := len(out)
	a, b := f.buf[0].pod, f.buf[1].pod
	allocA, usedA, allocB, usedB := f.buf[0].alloc[:n], f.buf[0].used[:n], f.buf[1].alloc[:n], f.buf[1].used[:n]
	for i := range out {
		with := plugin.MaxScore
		if allocA[i] != 0 && allocB[i] != 0 {
			with = evennessOfTwo(float64(resource.Add(usedA[i], a))/float64(allocA[i]),
				float64(resource.Add(usedB[i], b))/float64(allocB[i]))
		}
		out[i] = balance(with, half[i])
	}
}

func evennessOfTwo(a, b float64) int64 {
	if a > 1 {
		a = 1
	}
	if b > 1 {
		b = 1
	}
	return int64((1 - math.Abs((a-b)/2)) * float64(plugin.MaxScore))
}

// Version changes with devices, where they are counted.
func (f *balancedScore) Version(s cluster.Snapshot) uint64 { return versionOf(s, f.list) }

// Explain shows what the score was computed from.
func (f *balancedScore) Explain(s cluster.Snapshot, v *cluster.NodeView) []plugin.Input {
	return explain(s, f.list, f.held, v)
}

// Reads declares the amounts, and the devices where they are counted.
func (f *balancedScore) Reads() plugin.Reads { return readsOf(f.list) }
