// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/resource"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Advise finds the resource of which the node is shortest, relative to what is asked.
func (*NodeResourcesFit) Advise(v *cluster.NodeView, p *cluster.Pod, r *record.Remedy) {
	worst, request := -1.0, &p.Spec.Request
	weigh := func(name v1.ResourceName, need int64) {
		free := resource.Sub(v.Allocatable(name), v.Requested(name))
		short := resource.Sub(need, free)
		if need == resource.Overflowed {
			short = math.MaxInt64
		}
		if share := float64(short) / float64(max(need, 1)); need > 0 && short > 0 && share > worst {
			worst = share
			r.Resource, r.Need, r.Free, r.Short = string(name), need, free, short
		}
	}
	weigh(v1.ResourcePods, 1)
	weigh(v1.ResourceCPU, request.MilliCPU)
	weigh(v1.ResourceMemory, request.Memory)
	weigh(v1.ResourceEphemeralStorage, request.Ephemeral)
	for _, sc := range request.Scalars {
		weigh(sc.Name, sc.Value)
	}
	if r.Need > v.Allocatable(v1.ResourceName(r.Resource)) {
		r.Do = fmt.Sprintf("ask for less %s, or add a node with more: %s, the nearest, is too small even when empty",
			r.Resource, r.Node)
		return
	}
	r.Do = fmt.Sprintf("free %s on %s", r.Resource, r.Node)
}

// Resources lists what the strategy weighs.
func (pl *NodeResourcesFit) Resources() ([]v1.ResourceName, bool) { return pl.scorer.reads() }

// Amounts lists the needs, a place for the pod first.
func (f *fitFilter) Amounts() (needs []plugin.Amount, ok bool) {
	if f.never || f.backed || f.book != nil {
		return nil, false
	}
	for i := range f.needs {
		nd := &f.needs[i]
		needs = append(needs, plugin.Amount{Name: nd.name, Amount: nd.compared(), Reason: nd.reason})
	}
	return needs, true
}

// Demands are those that are looked up in what nodes offer: not what is ignored, nor what a device class may back.
func (pl *NodeResourcesFit) Demands(s cluster.Snapshot, p *cluster.Pod) []plugin.Demand {
	needs := pl.needsOf(&p.Spec.Request)
	markBacked(s, needs)
	var demands []plugin.Demand
	for i := range needs {
		nd := &needs[i]
		id, known := s.Names().Lookup(nd.name)
		if !known || nd.backed || nd.overflowed() {
			continue
		}
		held := int64(1)
		if nd.name != v1.ResourcePods {
			held = p.Spec.Held.Get(nd.name)
		}
		if amount := min(nd.amount, held); amount > 0 {
			demands = append(demands, plugin.Demand{Resource: id, Amount: amount})
		}
	}
	return demands
}

// Reads declares the amounts, and which resources device classes back.
func (*NodeResourcesFit) Reads() plugin.Reads {
	return plugin.ReadsAmounts | plugin.ReadsObjects | plugin.ReadsVersioned
}

// Reads declares the amounts. A filter with a codebook has more codes than the compact form of a class could number, so
// it declares what its plugin does.
func (f *fitFilter) Reads() plugin.Reads {
	if f.book != nil {
		return (*NodeResourcesFit)(nil).Reads()
	}
	return plugin.ReadsAmounts
}

// NodeResourcesFit keeps a pod off nodes that lack what it asks for, and ranks nodes by how much of them is in use
// (upstream: plugins/noderesources/fit.go). The filter reads real requests. The score reads requests with defaults for
// silent containers (see PodSpec.ScoreNonZero), which is why its numbers differ from `kubectl describe node`
// (kubernetes#130445); FitArgs.ScoreReal turns that off, and Explain shows both.
//
// One exception to upstream: a request that int64 cannot hold is never satisfied, on no node. Upstream reads `50E` of
// memory as 0 and puts the pod anywhere.
type NodeResourcesFit struct {
	ignored       map[string]bool // resource name -> not checked by the filter
	ignoredGroups map[string]bool // part of the name before the slash -> not checked by the filter
	scorer        allocationScorer
	space         spaces // for one call of the filter
}

// NodeResourcesFitName is its name in configurations.
const NodeResourcesFitName = "NodeResourcesFit"

// FitArgs are the arguments of NodeResourcesFit (upstream: NodeResourcesFitArgs).
type FitArgs struct {
	// IgnoredResources are extended resources that the filter does not check.
	IgnoredResources []string
	// IgnoredResourceGroups do the same for all extended resources named group/anything.
	IgnoredResourceGroups []string
	Strategy              Strategy
	// Resources are what the strategy looks at, with weights from 1 to 100.
	Resources []WeightedResource
	// Shape is for RequestedToCapacityRatio only.
	Shape []plugin.ShapePoint
	// ScoreReal scores real requests, without defaults for silent containers. Upstream has no such switch.
	ScoreReal bool
}

// DefaultFitArgs are upstream's defaults.
func DefaultFitArgs() FitArgs {
	return FitArgs{Strategy: LeastAllocated, Resources: defaultScored()}
}

func defaultScored() []WeightedResource {
	return []WeightedResource{{v1.ResourceCPU, 1}, {v1.ResourceMemory, 1}}
}

// NewNodeResourcesFit returns the plugin, or what is wrong with its arguments.
func NewNodeResourcesFit(args FitArgs) (*NodeResourcesFit, error) {
	pl := &NodeResourcesFit{ignored: map[string]bool{}, ignoredGroups: map[string]bool{}}
	for _, name := range args.IgnoredResources {
		pl.ignored[name] = true
	}
	for _, group := range args.IgnoredResourceGroups {
		if strings.Contains(group, "/") {
			return nil, fmt.Errorf("%s: ignoredResourceGroups: resource group name %q can't contain '/'",
				NodeResourcesFitName, group)
		}
		pl.ignoredGroups[group] = true
	}
	scorer, err := newAllocationScorer(args)
	if err != nil {
		return nil, fmt.Errorf("%s: scoringStrategy: %w", NodeResourcesFitName, err)
	}
	pl.scorer = scorer
	return pl, nil
}

// Name is NodeResourcesFitName.
func (*NodeResourcesFit) Name() string { return NodeResourcesFitName }

// need is one thing a pod asks of a node.
type need struct {
	name   v1.ResourceName
	id     resource.ID // noColumn while no node offers it and no pod holds it
	amount int64       // more than 0
	code   plugin.Code // 0 in a filter with a codebook
	reason string
	// backed is set for a resource that a device class backs: a node that offers none of it is not short of it, since
	// DynamicResources finds devices there, or not (KEP-5004).
	backed bool
}

const noColumn resource.ID = -1

// The codes of a fitFilter: one bit per need, in the order of its reasons.
const (
	tooManyPods plugin.Code = 1 << iota
	shortOfCPU
	shortOfMemory
	shortOfEphemeral
	shortOfScalar // the first of the scalars; the next have the bits above

	maxScalars = 22 - 4 // more of them have no bits left
)

// needsOf lists what a request asks for, a place for the pod itself first.
func (pl *NodeResourcesFit) needsOf(r *resource.Amounts) []need {
	needs := []need{{name: v1.ResourcePods, id: resource.Pods, amount: 1, code: tooManyPods, reason: "Too many pods"}}
	add := func(name v1.ResourceName, id resource.ID, amount int64, code plugin.Code) {
		if amount > 0 {
			needs = append(needs, need{name: name, id: id, amount: amount, code: code, reason: "Insufficient " +
				string(name)})
		}
	}
	add(v1.ResourceCPU, resource.CPU, r.MilliCPU, shortOfCPU)
	add(v1.ResourceMemory, resource.Memory, r.Memory, shortOfMemory)
	add(v1.ResourceEphemeralStorage, resource.Ephemeral, r.Ephemeral, shortOfEphemeral)
	code := shortOfScalar
	for _, sc := range r.Scalars {
		if !pl.ignores(sc.Name) {
			add(sc.Name, noColumn, sc.Value, code)
			code <<= 1
		}
	}
	return needs
}

// ignores reports whether the filter passes over a resource; only extended resources can be ignored.
func (pl *NodeResourcesFit) ignores(name v1.ResourceName) bool {
	if len(pl.ignored)+len(pl.ignoredGroups) == 0 || !resource.IsExtended(name) {
		return false
	}
	group, _, _ := strings.Cut(string(name), "/")
	return pl.ignored[string(name)] || pl.ignoredGroups[group]
}

// compared is the amount as both forms compare it.
func (nd *need) compared() int64 {
	return nd.amount
}

// overflowed needs are met nowhere.
func (nd *need) overflowed() bool {
	return nd.amount == resource.Overflowed
}

// hard is set for needs that evictions cannot meet on a node that offers too little. Capacity for one more pod can be
// made by evicting one, so upstream never calls a node that allows few pods unresolvable.
func (nd *need) hard() plugin.Code {
	if nd.name == v1.ResourcePods {
		return 0
	}
	return plugin.Unresolvable
}

// judge reports whether a node that offers alloc and has used of it taken is short of the need, and whether evictions
// cannot help.
func (nd *need) judge(used, alloc int64) (short bool, hard plugin.Code) {
	if nd.overflowed() {
		return true, plugin.Unresolvable
	}
	if nd.backed && alloc <= 0 {
		return false, 0
	}
	if nd.amount > alloc {
		hard = nd.hard()
	}
	return nd.compared() > resource.Sub(alloc, used), hard
}

// PrepareFilter looks at every pod: also one that asks for nothing needs a place.
func (pl *NodeResourcesFit) PrepareFilter(s cluster.Snapshot, p *cluster.Pod) plugin.FilterPlan {
	f := &fitFilter{needs: pl.needsOf(&p.Spec.Request)}
	f.backed, f.classes = markBacked(s, f.needs), s.KindRevision(cluster.KindDeviceClass)
	f.scalars = len(p.Spec.Request.Scalars) > 0
	for i := range f.needs {
		f.never = f.never || f.needs[i].overflowed()
	}
	if len(p.Spec.Request.Scalars) > maxScalars {
		f.book = &codebook{codes: map[string]plugin.Code{}}
		for i := range f.needs {
			f.needs[i].code = 0
		}
	}
	f.columns, f.space = make([]needColumn, len(f.needs)), &pl.space
	return plugin.FilterPlan{Filter: f}
}

// spaces are where columns of resources that few nodes have are written out for one call.
type spaces [][]int64

// at is the i-th of them. What was said of another stays.
func (sp *spaces) at(i int) *[]int64 {
	for len(*sp) <= i {
		*sp = append(*sp, nil)
	}
	return &(*sp)[i]
}

type fitFilter struct {
	needs   []need
	never   bool         // some need overflowed: no node satisfies it
	scalars bool         // the pod asks for something that a device class could back
	backed  bool         // one does
	classes uint64       // revision of the device classes
	book    *codebook    // nil unless there are more needs than bits in a Code
	columns []needColumn // per need, valid within one call
	space   *spaces      // the plugin's: those of a thousand pods would be larger than all columns
}

// needColumn is where a need is compared: it is met on rows with used <= alloc-compared. Allocatable amounts are never
// negative, so the difference does not wrap.
type needColumn struct {
	used, alloc      []int64 // nil where no node offers the resource
	compared, amount int64
	code, hard       plugin.Code
}

func (f *fitFilter) Plain(_ cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	return f.code(func(i int) (used, alloc int64) {
		name := f.needs[i].name
		return v.Requested(name), v.Allocatable(name)
	})
}

// code joins the verdicts on all needs.
func (f *fitFilter) code(amounts func(i int) (used, alloc int64)) plugin.Code {
	var code plugin.Code
	var which []byte
	for i := range f.needs {
		nd := &f.needs[i]
		short, hard := nd.judge(amounts(i))
		if !short {
			continue
		}
		code |= nd.code | hard
		if f.book != nil {
			which = binary.AppendUvarint(which, uint64(i))
		}
	}
	if len(which) > 0 {
		code |= f.book.code(which)
	}
	return code
}

func (f *fitFilter) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag plugin.Tag, out []plugin.Verdict) {
	out = out[lo:hi]
	if !f.resolve(s, lo, hi) || f.never || f.backed || f.book != nil {
		f.scanSlow(tag, out)
		return
	}
	f.scan(tag, out)
}

// resolve finds the columns of all needs; ok is false when one has none, so that no node offers it.
func (f *fitFilter) resolve(s cluster.Snapshot, lo, hi cluster.NodeIdx) (ok bool) {
	ok = true
	for i := range f.needs {
		nd := &f.needs[i]
		if nd.id == noColumn {
			id, known := s.Names().Lookup(nd.name)
			if !known {
				f.columns[i] = needColumn{}
				ok = false
				continue
			}
			nd.id = id
		}
		used, alloc := s.Requested(nd.id).Cut(lo, hi, f.space.at(2*i)), s.Allocatable(nd.id).Cut(lo, hi,
			f.space.at(2*i+1))
		f.columns[i] = needColumn{used, alloc, nd.compared(), nd.amount, nd.code, nd.hard()}
	}
	return ok
}

// scan compares the first three needs in step, for most pods all there are, and the others one by one.
func (f *fitFilter) scan(tag plugin.Tag, out []plugin.Verdict) {
	first, second, third := &f.columns[0], &f.columns[0], &f.columns[0]
	var rest []needColumn
	switch {
	case len(f.columns) == 1:
	case len(f.columns) == 2:
		second = &f.columns[1]
	default:
		second, third, rest = &f.columns[1], &f.columns[2], f.columns[3:]
	}
	n := len(out)
	used1, used2, used3 := first.used[:n], second.used[:n], third.used[:n]
	alloc1, alloc2, alloc3 := first.alloc[:n], second.alloc[:n], third.alloc[:n]
	want1, want2, want3 := first.compared, second.compared, third.compared
rows:
	for i := range out {
		if out[i] != plugin.Fits {
			continue
		}
		if used1[i] <= alloc1[i]-want1 && used2[i] <= alloc2[i]-want2 && used3[i] <= alloc3[i]-want3 {
			for k := range rest {
				if c := &rest[k]; c.used[i] > c.alloc[i]-c.compared {
					out[i] = tag.With(f.codeAt(i))
					continue rows
				}
			}
			continue
		}
		out[i] = tag.With(f.codeAt(i))
	}
}

// codeAt is the code of the i-th row of the columns, where some need is not met.
func (f *fitFilter) codeAt(i int) plugin.Code {
	var code plugin.Code
	for k := range f.columns {
		c := &f.columns[k]
		alloc := c.alloc[i]
		if c.used[i] > alloc-c.compared {
			code |= c.code
			if c.amount > alloc {
				code |= c.hard
			}
		}
	}
	return code
}

// scanSlow does the same for needs that overflowed, that no node offers, that a device class may back, or that are more
// than a Code has bits.
func (f *fitFilter) scanSlow(tag plugin.Tag, out []plugin.Verdict) {
	for i := range out {
		if out[i] != plugin.Fits {
			continue
		}
		code := f.code(func(k int) (used, alloc int64) {
			c := &f.columns[k]
			if c.used == nil {
				return 0, 0
			}
			return c.used[i], c.alloc[i]
		})
		if code != plugin.Fit {
			out[i] = tag.With(code)
		}
	}
}

func (f *fitFilter) Reasons(c plugin.Code) []string {
	var texts []string
	if f.book != nil {
		for which := f.book.which[(c&plugin.CodeBits)-1]; len(which) > 0; {
			i, n := binary.Uvarint([]byte(which))
			which = which[n:]
			texts = append(texts, f.needs[i].reason)
		}
	} else {
		for i := range f.needs {
			if c&f.needs[i].code != 0 {
				texts = append(texts, f.needs[i].reason)
			}
		}
	}
	return texts
}

// codebook numbers combinations of needs, for pods with more needs than a Code has bits.
type codebook struct {
	codes map[string]plugin.Code // combination -> its number, from 1
	which []string               // the combination with number i+1
}

func (b *codebook) code(which []byte) plugin.Code {
	c, ok := b.codes[string(which)]
	if !ok {
		b.which = append(b.which, string(which))
		if c = plugin.Code(len(b.which)); c > plugin.CodeBits {
			panic(fmt.Sprintf("plugin: more than %d combinations of missing resources for one pod", plugin.CodeBits))
		}
		b.codes[string(which)] = c
	}
	return c
}

// Wakes on nodes that the pod would fit if they were empty and that are new or have grown in something it asks for,
// on pods that leave a node, on pods that shrink in something it asks for, and on device classes that begin to back
// something it asks for.
func (pl *NodeResourcesFit) Wakes() []plugin.Wake {
	return []plugin.Wake{
		{Event: plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Delete | plugin.UpdatePodScaleDown},
			Hint: fitPodHint, Alike: true},
		{Event: plugin.Event{Resource: plugin.TargetPod, Action: plugin.UpdatePodScaleDown}},
		{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add | plugin.UpdateNodeAllocatable},
			Hint: fitNodeHint, Alike: true},
		{Event: plugin.Event{Resource: plugin.DeviceClassObject, Action: plugin.Add | plugin.Update},
			Hint: fitClassHint},
	}
}

func fitPodHint(p *cluster.Pod, ch plugin.Change) plugin.Hint {
	if ch.NewPod == nil {
		if plugin.FreesNothing(ch.OldPod) {
			return plugin.SkipHint
		}
		return plugin.QueueHint
	}
	before, after := &ch.OldPod.Spec.Held, &ch.NewPod.Spec.Held
	for _, name := range namesIn(&p.Spec.Held) {
		if before.Get(name) > after.Get(name) {
			return plugin.QueueHint
		}
	}
	return plugin.SkipHint
}

// namesIn lists the resources of which there is some.
func namesIn(a *resource.Amounts) []v1.ResourceName {
	var names []v1.ResourceName
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage} {
		if a.Get(name) != 0 {
			names = append(names, name)
		}
	}
	for _, sc := range a.Scalars {
		if sc.Value != 0 {
			names = append(names, sc.Name)
		}
	}
	return names
}

// fitNodeHint passes over what the configuration ignores, as upstream's does: it checks every resource.
func fitNodeHint(p *cluster.Pod, ch plugin.Change) plugin.Hint {
	var strict NodeResourcesFit
	needs := strict.needsOf(&p.Spec.Request)
	markBacked(ch.State, needs)
	if slices.ContainsFunc(needs, func(nd need) bool {
		short, _ := nd.judge(0, ch.NewNode.Allocatable.Get(nd.name))
		return short
	}) {
		return plugin.SkipHint
	}
	if ch.OldNode == nil {
		return plugin.QueueHint
	}
	for _, nd := range needs {
		offered := ch.NewNode.Allocatable.Get(nd.name)
		if offered > ch.OldNode.Allocatable.Get(nd.name) || nd.backed && offered == 0 {
			return plugin.QueueHint
		}
	}
	return plugin.SkipHint
}
