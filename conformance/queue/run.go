// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sort"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// Options of a run.
type Options struct {
	Seed      uint64
	Histories int
	// Steps of each history.
	Steps int
	// Progress is called after each history.
	Progress func(r *Report)
}

// Report is what a run counted.
type Report struct {
	Options   Options
	Histories int
	Steps     int
	Kinds     map[Kind]int     // kind -> steps played
	Visits    map[SubQueue]int // sub-queue -> times a pod entered it
	Nominated int              // nominations compared
	// Failure is the first difference, shrunk; nil when there is none.
	Failure    *History
	Difference string
}

// Run plays random histories until one shows a difference. With a nil our it
// only counts.
func Run(our Make, opt Options) *Report {
	r := &Report{Options: opt, Kinds: map[Kind]int{}, Visits: map[SubQueue]int{}}
	for n := 0; n < opt.Histories && r.Failure == nil; n++ {
		h, d := r.history(our, n)
		if d != "" {
			r.Failure = Shrink(h, our)
			r.Difference = Replay(r.Failure, our)
		}
		r.Histories++
		if opt.Progress != nil {
			opt.Progress(r)
		}
	}
	return r
}

func (r *Report) history(our Make, n int) (*History, string) {
	h := &History{Name: fmt.Sprintf("seed %d history %d", r.Options.Seed, n)}
	p := newPlayer(our)
	defer p.close()
	d := newDirector(r.Options.Seed, n, p)
	for range r.Options.Steps {
		op := d.next()
		h.Ops = append(h.Ops, op)
		r.Steps++
		r.Kinds[op.Kind]++
		if diff := p.step(op); diff != "" {
			return h, diff
		}
	}
	for s, v := range p.visits {
		r.Visits[s] += v
	}
	r.Nominated += p.nominated
	return h, ""
}

// Print writes the counts.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "queue, seed %d: %d histories, %d steps, every pod compared after each\n", r.Options.Seed, r.Histories, r.Steps)
	for _, k := range sorted(r.Kinds) {
		fmt.Fprintf(w, "  %-14s%8d steps\n", k, r.Kinds[k])
	}
	for _, s := range sorted(r.Visits) {
		fmt.Fprintf(w, "  %-14s%8d entries\n", s, r.Visits[s])
	}
	fmt.Fprintf(w, "  %-14s%8d compared\n", "nominations", r.Nominated)
	if r.Failure != nil {
		fmt.Fprintf(w, "DIFFERENCE: %s\n", r.Difference)
	}
}

func sorted[K ~string](m map[K]int) []K {
	out := make([]K, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Slice(out, func(i, j int) bool { return out[i] < out[j] })
	return out
}

// director draws steps that make sense in the player's state.
type director struct {
	w      *gen.World
	p      *player
	serial int
	// waiting are the objects that have not come yet.
	waiting []scenario.Object
	// dot asks for a failure on the dot next.
	dot bool
}

// rejectors are plugins that can turn a pod down in a cycle.
var rejectors = []string{"DynamicResources", "InterPodAffinity", "NodeAffinity", "NodeDeclaredFeatures", "NodeName", "NodePorts", "NodeResourcesFit",
	"NodeUnschedulable", "NodeVolumeLimits", "PodTopologySpread", "TaintToleration", "VolumeBinding", "VolumeRestrictions", "VolumeZone"}

func newDirector(seed uint64, n int, p *player) *director {
	d := &director{w: gen.NewWorld(seed, n), p: p}
	var nodes []*v1.Node
	for i := range 4 {
		nodes = append(nodes, d.w.Node(i+1))
	}
	d.waiting = d.w.Objects(nodes)
	return d
}

// object lets an object come, change or go.
func (d *director) object() Op {
	r := d.w.Rand()
	d.waiting = append(d.waiting, d.w.Made()...)
	if len(d.waiting) > 0 && (len(d.p.objects) == 0 || r.Chance(60)) {
		i := r.Intn(len(d.waiting))
		o := d.waiting[i]
		d.waiting = slices.Delete(d.waiting, i, i+1)
		return Op{Kind: ObjectSet, Object: &o}
	}
	if len(d.p.objects) == 0 {
		return Op{Kind: Pop}
	}
	refs := make([]scenario.ObjectRef, 0, len(d.p.objects))
	for ref := range d.p.objects { // order: sorted below
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, func(a, b scenario.ObjectRef) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	ref := refs[r.Intn(len(refs))]
	if r.Chance(20) {
		return Op{Kind: ObjectGone, Ref: &ref}
	}
	if next := d.w.ChangeObject(d.p.objects[ref]); next != nil {
		return Op{Kind: ObjectSet, Object: &scenario.Object{APIObject: next}}
	}
	return Op{Kind: Pop}
}

func (d *director) next() Op {
	r := d.w.Rand()
	if d.dot {
		d.dot = false
		if op := d.fail(); op.Kind == Fail {
			op.OnTheDot = true
			return op
		}
	}
	switch n := r.Intn(100); {
	case n < 12 || len(d.p.pods) < 3:
		return d.newPod()
	case n < 22:
		return d.changePod()
	case n < 28:
		return d.podGone()
	case n < 36:
		return d.node()
	case n < 38:
		return d.nodeGone()
	case n < 45:
		return d.object()
	case n < 58:
		return Op{Kind: Pop}
	case n < 60:
		return Op{Kind: Hold, Open: r.Chance(50)}
	case n < 77:
		return d.fail()
	case n < 82:
		return d.bind()
	case n < 86:
		return Op{Kind: Activate, Names: gen.Some(r, 2, sortedNames(d.p.pods)...)}
	case n < 89:
		// The next failure, if one comes now, is at the very half minute.
		d.dot = true
		return Op{Kind: Tick, Millis: int64(gen.Pick(r, 1, 1, 269_000)), OnTheDot: true}
	default:
		return Op{Kind: Tick, Millis: d.wait()}
	}
}

// wait is mostly around the backoff's steps, and now and then past five minutes.
func (d *director) wait() int64 {
	r := d.w.Rand()
	switch {
	case r.Chance(50):
		return int64(r.Range(1, 1500))
	case r.Chance(70):
		return int64(r.Range(1, 12)) * 1000
	case r.Chance(60):
		return int64(r.Range(20, 60)) * 1000
	}
	return int64(r.Range(280, 340)) * 1000
}

func (d *director) newPod() Op {
	r := d.w.Rand()
	nodes := values(d.p.nodes)
	if r.Chance(15) && len(d.p.flying) > 0 {
		// A pod of the same name as one in flight, made again.
		if name := d.flyingName(); d.p.pods[name] == nil {
			d.serial++
			pod := d.w.Pending(name, nodes)
			gen.NewUID(pod, d.serial)
			return Op{Kind: PodSet, Pod: pod}
		}
	}
	pod := d.w.Pending("", nodes)
	if r.Chance(12) && len(nodes) > 0 {
		pod = gen.Bind(pod, nodes[r.Intn(len(nodes))].Name)
	}
	return Op{Kind: PodSet, Pod: pod}
}

func (d *director) changePod() Op {
	names := sortedNames(d.p.pods)
	old := d.p.pods[names[d.w.Rand().Intn(len(names))]]
	if old.Spec.NodeName == "" && d.w.Rand().Chance(5) && len(d.p.nodes) > 0 {
		// Bound by someone else while it waits here.
		return Op{Kind: PodSet, Pod: gen.Bind(old, sortedNames(d.p.nodes)[0])}
	}
	return Op{Kind: PodSet, Pod: d.w.ChangePod(old, values(d.p.nodes))}
}

func (d *director) podGone() Op {
	names := sortedNames(d.p.pods)
	return Op{Kind: PodGone, Name: names[d.w.Rand().Intn(len(names))]}
}

func (d *director) node() Op {
	names := sortedNames(d.p.nodes)
	if len(names) < 4 {
		d.serial++
		return Op{Kind: NodeSet, Node: d.w.Node(d.serial)}
	}
	return Op{Kind: NodeSet, Node: d.w.ChangeNode(d.p.nodes[names[d.w.Rand().Intn(len(names))]])}
}

func (d *director) nodeGone() Op {
	names := sortedNames(d.p.nodes)
	if len(names) == 0 {
		return Op{Kind: Pop}
	}
	return Op{Kind: NodeGone, Name: names[d.w.Rand().Intn(len(names))]}
}

// flyingName is one of the names in flight.
func (d *director) flyingName() string {
	names := make([]string, 0, len(d.p.flying))
	for _, name := range d.p.flying {
		names = append(names, name)
	}
	slices.Sort(names)
	return names[d.w.Rand().Intn(len(names))]
}

func (d *director) fail() Op {
	if len(d.p.flying) == 0 {
		return Op{Kind: Pop}
	}
	op := Op{Kind: Fail, Name: d.flyingName()}
	r := d.w.Rand()
	if r.Chance(80) {
		op.Plugins = gen.Some(r, r.Range(1, 3), rejectors...)
		if names := sortedNames(d.p.nodes); r.Chance(15) && len(names) > 0 {
			op.On = names[r.Intn(len(names))]
		}
	}
	if r.Chance(12) {
		op.Pending = []string{Outside}
	}
	return op
}

func (d *director) bind() Op {
	names := sortedNames(d.p.nodes)
	if len(d.p.flying) == 0 || len(names) == 0 {
		return Op{Kind: Pop}
	}
	return Op{Kind: BindPod, Name: d.flyingName(), On: names[d.w.Rand().Intn(len(names))]}
}

func sortedNames[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func values[V any](m map[string]V) []V {
	var out []V
	for _, k := range sortedNames(m) {
		out = append(out, m[k])
	}
	return out
}

// Play plays history number n of a seed and returns the first difference, or "".
func Play(our Make, seed uint64, n, steps int) string {
	r := &Report{Options: Options{Seed: seed, Steps: steps}, Kinds: map[Kind]int{}, Visits: map[SubQueue]int{}}
	_, d := r.history(our, n)
	return d
}
