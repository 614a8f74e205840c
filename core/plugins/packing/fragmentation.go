// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"cmp"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Fragmentation prefers the node on which the pod makes least unusable for the mix of shapes seen so far, or makes most
// usable again. What a shape cannot use of a node is what remains free when as many pods of it as fit are added; the
// expectation over the shapes is the fragmentation of the node (a generalisation to every resource of "Beware of
// Fragmentation", ATC'23). The score is 50 plus at most 50 for a decrease, less at most 50 for an increase.
type Fragmentation struct {
	args FragmentationArgs
	work fragmentationWork
	// mix is what was computed from shapes; nil for nothing yet.
	mix    *typicalMix
	shapes []cluster.Shape
}

// FragmentationName is its name in configurations.
const FragmentationName = "NodeResourcesFragmentation"

// FragmentationArgs are its arguments.
type FragmentationArgs struct {
	// Resources whose weight is not 1.
	Resources []Resource
}

// DefaultFragmentationArgs gives every resource a weight of 1.
func DefaultFragmentationArgs() FragmentationArgs { return FragmentationArgs{} }

// NewFragmentation returns the plugin, or what is wrong with its arguments.
func NewFragmentation(args FragmentationArgs) (*Fragmentation, error) {
	if err := check(args.Resources); err != nil {
		return nil, fmt.Errorf("%s: %w", FragmentationName, err)
	}
	return &Fragmentation{args: args}, nil
}

// Name returns FragmentationName.
func (*Fragmentation) Name() string { return FragmentationName }

// Reads declares the amounts of the row, and the mix.
func (*Fragmentation) Reads() plugin.Reads { return readsAll }

// Normal leaves the scores alone.
func (*Fragmentation) Normal() plugin.Normal { return plugin.AsIs }

// typicalMix is the most popular shapes, prepared for scores. Slices are by resource.
type typicalMix struct {
	names  []v1.ResourceName // the number of pods is among them
	cost   []float64         // of one of an amount that is unusable; 0 for the number of pods
	shapes []typicalShape
}

type typicalShape struct {
	needs []need
	share float64
}

// need is what a shape requests of the resource with an index; it is more than 0.
type need struct {
	resource int
	amount   int64
}

// The shapes that are typical: the most popular ones until they cover this share of the pods, but at most so many.
const (
	typicalPercent = 95
	typicalMost    = 64
)

// of returns what scores need of the mix.
func (pl *Fragmentation) of(s cluster.Snapshot) *typicalMix {
	shapes, _ := s.Mix()
	if pl.mix == nil || !sameList(shapes, pl.shapes) {
		pl.mix, pl.shapes = pl.args.typical(shapes), shapes
	}
	return pl.mix
}

// sameList reports whether two lists are one in memory. Versions would not do: a plugin may serve several stores.
func sameList(a, b []cluster.Shape) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// typical prepares the most popular shapes.
func (a *FragmentationArgs) typical(shapes []cluster.Shape) *typicalMix {
	list := slices.Clone(shapes)
	slices.SortStableFunc(list, func(a, b cluster.Shape) int { return cmp.Compare(b.Pods, a.Pods) })
	var all, covered int64
	for i := range list {
		all += list[i].Pods
	}
	n := 0
	for n < len(list) && n < typicalMost && covered*100 < all*typicalPercent {
		covered += list[n].Pods
		n++
	}
	out := &typicalMix{names: []v1.ResourceName{v1.ResourcePods}}
	for _, sh := range list[:n] {
		out.add(&sh, float64(sh.Pods)/float64(covered))
	}
	out.price(a.Resources)
	return out
}

// add adds a shape with its share of the pods.
func (m *typicalMix) add(sh *cluster.Shape, share float64) {
	one := typicalShape{needs: []need{{0, 1}}, share: share}
	use := func(name v1.ResourceName, amount int64) {
		if amount <= 0 {
			return
		}
		i := slices.Index(m.names, name)
		if i < 0 {
			i = len(m.names)
			m.names = append(m.names, name)
		}
		one.needs = append(one.needs, need{i, amount})
	}
	use(v1.ResourceCPU, sh.Held.MilliCPU)
	use(v1.ResourceMemory, sh.Held.Memory)
	use(v1.ResourceEphemeralStorage, sh.Held.Ephemeral)
	for _, sc := range sh.Held.Scalars {
		use(sc.Name, sc.Value)
	}
	m.shapes = append(m.shapes, one)
}

// price computes what an unusable amount costs: its weight, divided by what a pod that requests the resource requests
// of it on average.
func (m *typicalMix) price(weights []Resource) {
	m.cost = make([]float64, len(m.names))
	for r := 1; r < len(m.names); r++ {
		var sum, pods float64
		for i := range m.shapes {
			for _, nd := range m.shapes[i].needs {
				if nd.resource == r {
					sum += float64(m.shapes[i].share * float64(nd.amount))
					pods += m.shapes[i].share
				}
			}
		}
		weight := 1.0
		for _, w := range weights {
			if w.Name == m.names[r] {
				weight = float64(w.Weight)
			}
		}
		m.cost[r] = weight * pods / sum
	}
}

// unusable returns the expected cost of what shapes cannot use of a node with these free amounts.
func (m *typicalMix) unusable(free []int64) (cost float64) {
	var all float64
	for r, f := range free {
		all += float64(m.cost[r] * float64(f))
	}
	for i := range m.shapes {
		sh := &m.shapes[i]
		var used float64
		if k := sh.copies(free); k > 0 {
			for _, nd := range sh.needs {
				used += float64(m.cost[nd.resource] * float64(k*nd.amount))
			}
		}
		cost += float64(sh.share * (all - used))
	}
	return cost
}

// copies returns how many pods of a shape fit.
func (sh *typicalShape) copies(free []int64) int64 {
	fit := int64(-1)
	for _, nd := range sh.needs {
		f := free[nd.resource]
		if f < nd.amount {
			return 0
		}
		if k := f / nd.amount; fit < 0 || k < fit {
			fit = k
		}
	}
	return fit
}

// PrepareScore applies to every pod.
func (pl *Fragmentation) PrepareScore(s cluster.Snapshot, p *cluster.Pod) plugin.PodScore {
	out := &fragmentationScore{mix: pl.of(s), work: &pl.work}
	for _, name := range out.mix.names {
		amount := p.Spec.Held.Get(name)
		if name == v1.ResourcePods {
			amount = 1
		}
		out.pod = append(out.pod, amount)
	}
	return out
}

type fragmentationScore struct {
	mix  *typicalMix
	pod  []int64 // by resource of the mix
	work *fragmentationWork
}

// fragmentationWork is memory for one call.
type fragmentationWork struct {
	columns     columns
	free, after []int64
}

// score returns the score of a node with these free amounts.
func (f *fragmentationScore) score(free []int64, before float64) int64 {
	after := resize(&f.work.after, len(free))
	for r := range free {
		after[r] = max(free[r]-f.pod[r], 0)
	}
	less := before - f.mix.unusable(after)
	if less < 0 {
		return inRange(50 + 50*less/(1-less))
	}
	return inRange(50 + 50*less/(1+less))
}

// Plain returns the score of one node.
func (f *fragmentationScore) Plain(_ cluster.Snapshot, v *cluster.NodeView) int64 {
	free := make([]int64, len(f.mix.names))
	for r, name := range f.mix.names {
		free[r] = freeOf(v, name)
	}
	return f.score(free, f.mix.unusable(free))
}

// Column computes the score once for successive rows with the same free amounts, such as empty
// nodes.
func (f *fragmentationScore) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, out []int64) {
	columns := f.work.columns.read(s, lo, hi, f.mix.names)
	free := resize(&f.work.free, len(columns))
	for i := range int(hi - lo) {
		same := i > 0
		for r, column := range columns {
			same = same && free[r] == column[i]
			free[r] = column[i]
		}
		if same {
			out[int(lo)+i] = out[int(lo)+i-1]
			continue
		}
		out[int(lo)+i] = f.score(free, f.mix.unusable(free))
	}
}

// Version changes with the mix.
func (f *fragmentationScore) Version(s cluster.Snapshot) uint64 {
	_, version := s.Mix()
	return version
}

// Reads declares the amounts of the row: the rest was read at the preparation, and the version covers it.
func (*fragmentationScore) Reads() plugin.Reads { return plugin.ReadsAmounts }
