// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"math"
	"math/bits"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

func (sc *allocationScorer) reads() (names []v1.ResourceName, withDefaults bool) {
	for _, r := range sc.resources {
		names = append(names, r.Name)
	}
	return names, !sc.real
}

// Reads declares the amounts, and the devices where they are counted.
func (f *fitScore) Reads() plugin.Reads { return readsOf(f.list) }

// Strategy is how NodeResourcesFit ranks nodes.
type Strategy string

// The strategies (upstream: noderesources/{least_allocated,most_allocated,requested_to_capacity_ratio}.go).
const (
	// LeastAllocated prefers empty nodes: the mean, by weight, of (capacity-requested)*100/capacity.
	LeastAllocated Strategy = "LeastAllocated"
	// MostAllocated prefers full nodes: the mean, by weight, of requested*100/capacity.
	MostAllocated Strategy = "MostAllocated"
	// RequestedToCapacityRatio reads the score of requested*100/capacity from a shape. Resources that score 0 do not
	// count, and the mean is rounded.
	RequestedToCapacityRatio Strategy = "RequestedToCapacityRatio"
)

// WeightedResource is a resource that a strategy looks at.
type WeightedResource struct {
	Name   v1.ResourceName
	Weight int64
}

// allocationScorer is what the scorers of resources share: which resources, and whether they count real requests or
// those with defaults for silent containers.
type allocationScorer struct {
	strategy  Strategy
	resources []WeightedResource
	real      bool
	ratio     [101]int64          // utilisation in percent -> score; for RequestedToCapacityRatio
	devices   plugin.DeviceCounts // nil if no plugin counts devices
	space     spaces              // for one call of a score
}

func newAllocationScorer(args FitArgs) (allocationScorer, error) {
	sc := allocationScorer{strategy: args.Strategy, resources: args.Resources, real: args.ScoreReal}
	if len(args.Resources) == 0 {
		return sc, fmt.Errorf("no resources to score")
	}
	for _, r := range args.Resources {
		if r.Weight <= 0 || r.Weight > 100 {
			return sc, fmt.Errorf("resource weight of %s not in valid range (0, 100]: %d", r.Name, r.Weight)
		}
	}
	switch args.Strategy {
	case LeastAllocated, MostAllocated:
		if len(args.Shape) != 0 {
			return sc, fmt.Errorf("a shape goes with type %s only, not with %s", RequestedToCapacityRatio,
				args.Strategy)
		}
	case RequestedToCapacityRatio:
		if err := plugin.CheckShape(args.Shape); err != nil {
			return sc, fmt.Errorf("type %s: %w", RequestedToCapacityRatio, err)
		}
		for p := range sc.ratio {
			sc.ratio[p] = plugin.ScoreAt(args.Shape, int64(p))
		}
	default:
		return sc, fmt.Errorf("unknown type %q, there are %s, %s and %s", args.Strategy, LeastAllocated,
			MostAllocated, RequestedToCapacityRatio)
	}
	return sc, nil
}

// scored is one resource prepared for one pod.
type scored struct {
	name   v1.ResourceName
	id     resource.ID // noColumn while no node offers it and no pod holds it
	weight int64
	pod    int64 // what the pod adds
	// silent is the column of requests with defaults to read instead of the real ones: 0 for CPU, 1 for memory, -1
	// for neither.
	silent int
	// devices counts what stands behind the resource on nodes that offer none of it themselves; nil for none.
	devices plugin.DeviceCounts
}

// prepare lists the resources that count for a pod. Resources the pod does not ask for count only if every node has
// them: CPU, memory, ephemeral storage.
func (sc *allocationScorer) prepare(p *cluster.Pod) []scored {
	var list []scored
	ask := &p.Spec.Scored
	if sc.real {
		ask = &p.Spec.Held
	}
	for _, r := range sc.resources {
		item := scored{name: r.Name, id: noColumn, weight: r.Weight, pod: ask.Get(r.Name), silent: -1}
		switch {
		case r.Name == v1.ResourceCPU:
			item.id, item.silent = resource.CPU, 0
		case r.Name == v1.ResourceMemory:
			item.id, item.silent = resource.Memory, 1
		case r.Name == v1.ResourceEphemeralStorage:
			item.id = resource.Ephemeral
		case !resource.IsScalar(r.Name), item.pod == 0:
			continue
		default:
			item.devices = sc.devices
		}
		if item.silent >= 0 && !sc.real {
			item.pod = p.Spec.ScoreNonZero[item.silent]
		} else {
			item.silent = -1
		}
		list = append(list, item)
	}
	return list
}

// amounts are what a node offers of the resource and what of it is requested, without the pod.
func (r *scored) amounts(s cluster.Snapshot, v *cluster.NodeView) (allocatable, requested int64) {
	if r.silent >= 0 {
		return v.Allocatable(r.name), v.NonZero[r.silent]
	}
	allocatable = v.Allocatable(r.name)
	if allocatable == 0 && r.devices != nil {
		if devices, taken := r.devices.Count(s, v.Row, r.name); devices > 0 {
			return devices, taken
		}
	}
	return allocatable, v.Requested(r.name)
}

// countsDevices returns the plugin that counts devices for one of the resources; nil if none needs that.
func countsDevices(list []scored) plugin.DeviceCounts {
	for i := range list {
		if list[i].devices != nil {
			return list[i].devices
		}
	}
	return nil
}

// epochOf is the epoch of a score of these resources.
func versionOf(s cluster.Snapshot, list []scored) uint64 {
	if devices := countsDevices(list); devices != nil {
		return devices.Revision(s)
	}
	return 0
}

func readsOf(list []scored) plugin.Reads {
	if countsDevices(list) != nil {
		return plugin.ReadsAmounts | plugin.ReadsObjects | plugin.ReadsVersioned
	}
	return plugin.ReadsAmounts
}

// rowByRow is the column form where devices are counted: no column holds them.
func rowByRow(s cluster.Snapshot, lo, hi cluster.NodeIdx, out []int64,
	score func(cluster.Snapshot, *cluster.NodeView) int64) {
	for n := lo; n < hi; n++ {
		if s.Node(n) != nil {
			out[n] = score(s, s.View(n))
		}
	}
}

// scoredColumns is one resource's columns, cut to a range.
type scoredColumns struct {
	alloc, used []int64
	pod, weight int64
}

// columns cuts the columns of list to a range, into buf, with space for those that stand in another form. Resources
// that no node offers are left out.
func columns(s cluster.Snapshot, lo, hi cluster.NodeIdx, list []scored, space *spaces,
	buf []scoredColumns) []scoredColumns {
	buf = buf[:0]
	for i := range list {
		r := &list[i]
		if r.id == noColumn {
			id, known := s.Names().Lookup(r.name)
			if !known {
				continue
			}
			r.id = id
		}
		var used []int64
		if r.silent >= 0 {
			used = s.NonZero(r.silent)[lo:hi]
		} else {
			used = s.Requested(r.id).Cut(lo, hi, space.at(2*i))
		}
		alloc := s.Allocatable(r.id).Cut(lo, hi, space.at(2*i+1))
		buf = append(buf, scoredColumns{alloc, used, r.pod, r.weight})
	}
	return buf
}

// percent is part*100/whole, rounded down, for 0 <= part <= whole and whole > 0; the product may pass int64.
func percent(part, whole int64) int64 {
	if part <= math.MaxInt64/100 {
		return part * 100 / whole
	}
	hi, lo := bits.Mul64(uint64(part), 100)
	q, _ := bits.Div64(hi, lo, uint64(whole))
	return int64(q)
}

// part is the score of one resource: requested includes the pod, capacity is more than 0.
func (sc *allocationScorer) part(requested, capacity int64) int64 {
	switch sc.strategy {
	case LeastAllocated:
		if requested > capacity {
			return 0
		}
		return percent(capacity-requested, capacity)
	case MostAllocated:
		if requested > capacity {
			requested = capacity
		}
		return percent(requested, capacity)
	}
	if requested > capacity {
		return sc.ratio[100]
	}
	return sc.ratio[percent(requested, capacity)]
}

// mean joins the parts.
type mean struct{ sum, weights int64 }

func (m *mean) add(sc *allocationScorer, part, weight int64) {
	if part == 0 && sc.strategy == RequestedToCapacityRatio {
		return
	}
	m.sum += part * weight
	m.weights += weight
}

func (m *mean) of(sc *allocationScorer) int64 {
	switch {
	case m.weights == 0:
		return 0
	case sc.strategy == RequestedToCapacityRatio:
		return int64(math.Round(float64(m.sum) / float64(m.weights)))
	}
	return m.sum / m.weights
}

// PrepareScore scores every pod.
func (pl *NodeResourcesFit) PrepareScore(_ cluster.Snapshot, p *cluster.Pod) plugin.PodScore {
	return &fitScore{scorer: &pl.scorer, list: pl.scorer.prepare(p), held: &p.Spec.Held, space: &pl.scorer.space}
}

// Normal leaves the scores alone.
func (*NodeResourcesFit) Normal() plugin.Normal { return plugin.AsIs }

type fitScore struct {
	scorer *allocationScorer
	list   []scored
	held   *resource.Amounts // of the pod, for Explain
	buf    []scoredColumns
	space  *spaces // the plugin's
}

func (f *fitScore) Plain(s cluster.Snapshot, v *cluster.NodeView) int64 {
	var m mean
	for i := range f.list {
		r := &f.list[i]
		allocatable, requested := r.amounts(s, v)
		if allocatable == 0 {
			continue
		}
		m.add(f.scorer, f.scorer.part(resource.Add(requested, r.pod), allocatable), r.weight)
	}
	return m.of(f.scorer)
}

// Version changes with devices, where they are counted.
func (f *fitScore) Version(s cluster.Snapshot) uint64 { return versionOf(s, f.list) }

// Explain shows what the score was computed from.
func (f *fitScore) Explain(s cluster.Snapshot, v *cluster.NodeView) []plugin.Input {
	return explain(s, f.list, f.held, v)
}

func explain(s cluster.Snapshot, list []scored, pod *resource.Amounts, v *cluster.NodeView) []plugin.Input {
	var inputs []plugin.Input
	for i := range list {
		r := &list[i]
		in := plugin.Input{Resource: r.name, Weight: r.weight, PodCounted: r.pod, PodReal: pod.Get(r.name),
			NodeReal: v.Requested(r.name), Defaults: r.silent >= 0}
		in.Allocatable, in.NodeCounted = r.amounts(s, v)
		inputs = append(inputs, in)
	}
	return inputs
}
