// SPDX-License-Identifier: Apache-2.0

package defrag

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/sim"
)

// Problem is a cluster, and what is to fit into it.
type Problem struct {
	At      record.Time
	Objects []cluster.Object
	Nodes   []*cluster.Node
	Pods    []*cluster.Pod // pending ones are left out
	// Unit is a pod of the gangs, Size the number of pods of a gang.
	Unit *cluster.Pod
	Size int
	// Count is how many gangs are to fit; 0 for one more than fit now.
	Count int
	// MaxMoves bounds the plan.
	MaxMoves int
	// Make makes the scheduler.
	Make func() sim.Stepper
}

// Move is one move of a plan.
type Move struct {
	Pod  record.PodRef `json:"pod"`
	From string        `json:"from"`
	To   string        `json:"to"`
}

// Plan is the result.
type Plan struct {
	// Now is how many gangs fit without a move, After how many after the moves, Goal how many were asked for.
	Now   int    `json:"now"`
	After int    `json:"after"`
	Goal  int    `json:"goal"`
	Moves []Move `json:"moves"`
	// AtLeast is a number with fewer moves than which no plan reaches the goal.
	AtLeast int `json:"atLeastMoves"`
	// Movable counts the pods that may be moved, and Fixed those that may not, by reason.
	Movable int            `json:"movablePods"`
	Fixed   map[string]int `json:"fixedPods"` // reason -> pods
	// Refused are moves that the scheduler refused in a simulation, which led to another plan.
	Refused []Move `json:"refused,omitempty"`
}

// Proved reports whether fewer moves are proved not to do.
func (p *Plan) Proved() bool { return len(p.Moves) == p.AtLeast }

// model is a Problem in numbers.
type model struct {
	p      *Problem
	fits   *oracle
	shape  sim.Vector
	nodes  []node
	pods   []pod
	budget []int // disruptions that a budget allows
}

type node struct {
	name string
	free sim.Vector
	host bool  // the shape can run on it, if it has the capacity
	pods []int // that may be moved, indexes in model.pods
}

type pod struct {
	record  *cluster.Pod
	need    sim.Vector
	at      int // index in model.nodes
	budgets []int
}

// newModel reads a Problem.
func newModel(p *Problem, plan *Plan) *model {
	w := sim.New(sim.Setup{})
	m := &model{p: p, fits: newOracle(p), shape: w.TemplateOf(p.Unit).Need()}
	index := map[string]int{} // name of a node -> index
	for i, n := range p.Nodes {
		w.AddRecord(n)
		index[n.Name] = i
	}
	guards := budgets(p.Objects)
	for _, g := range guards {
		m.budget = append(m.budget, g.allowed)
	}
	plan.Fixed = map[string]int{}
	for _, rec := range p.Pods {
		at, is := index[rec.NodeName]
		if !is {
			continue
		}
		made := w.Create(w.TemplateOf(rec), sim.NewPod{Name: rec.Name, UID: rec.UID, Node: rec.NodeName})
		one := pod{record: rec, need: made.Template.Need(), at: at}
		for i, g := range guards {
			if g.covers(rec) {
				one.budgets = append(one.budgets, i)
			}
		}
		if why := fixed(&one, m.budget); why != "" {
			plan.Fixed[why]++
			continue
		}
		plan.Movable++
		m.pods = append(m.pods, one)
	}
	for i, n := range p.Nodes {
		have := w.Node(n.Name)
		m.nodes = append(m.nodes, node{name: n.Name, free: have.Capacity.Minus(have.Used),
			host: m.fits.fits(p.Unit, i)})
	}
	for i := range m.pods {
		n := &m.nodes[m.pods[i].at]
		n.pods = append(n.pods, i)
	}
	return m
}

// fixed returns why a pod may not be moved, empty if it may.
func fixed(p *pod, allowed []int) string {
	switch rec := p.record; {
	case rec.OfNode:
		return "belongs to its node"
	case !rec.Owned:
		return "has no controller"
	case rec.Gang != nil:
		return "is in a gang"
	case rec.Terminating:
		return "terminates"
	}
	for _, b := range p.budgets {
		if allowed[b] < 1 {
			return "disruption budget"
		}
	}
	return ""
}

// guard is a disruption budget.
type guard struct {
	namespace string
	match     labels.Selector
	allowed   int
}

func (g *guard) covers(p *cluster.Pod) bool {
	return p.Namespace == g.namespace && g.match.Matches(labels.Set(p.Spec.Labels))
}

func budgets(objects []cluster.Object) (list []guard) {
	for _, o := range objects {
		b, is := o.(*policyv1.PodDisruptionBudget)
		if !is {
			continue
		}
		match, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil {
			match = labels.Everything() // it cannot be read, so nothing is assumed that it allows
		}
		list = append(list, guard{b.Namespace, match, int(b.Status.DisruptionsAllowed)})
	}
	return list
}

// slots returns how many pods of the shape fit on a node.
func (m *model) slots(n *node) int { return m.slotsIn(n, n.free) }

func (m *model) slotsIn(n *node, free sim.Vector) int {
	if !n.host {
		return 0
	}
	fit := int64(-1)
	for r, q := range m.shape {
		if q <= 0 {
			continue
		}
		if k := max(0, free.At(r)) / q; fit < 0 || k < fit {
			fit = k
		}
	}
	return int(max(fit, 0))
}

// total returns how many pods of the shape fit on all nodes.
func (m *model) total() (sum int) {
	for i := range m.nodes {
		sum += m.slots(&m.nodes[i])
	}
	return sum
}

// canMove reports whether a pod can go to a node now.
func (m *model) canMove(p, to int) bool {
	one := &m.pods[p]
	return one.at != to && holds(m.nodes[to].free, one.need) && m.fits.fits(one.record, to)
}

func holds(free, need sim.Vector) bool {
	for r, q := range need {
		if q > 0 && free.At(r) < q {
			return false
		}
	}
	return true
}

// move moves a pod.
func (m *model) move(p, to int) {
	one := &m.pods[p]
	from, target := &m.nodes[one.at], &m.nodes[to]
	from.free = from.free.Minus(negative(one.need))
	target.free = target.free.Minus(one.need)
	from.pods = slices.DeleteFunc(slices.Clone(from.pods), func(i int) bool { return i == p })
	target.pods = append(slices.Clone(target.pods), p)
	one.at = to
}

func negative(v sim.Vector) sim.Vector { return make(sim.Vector, len(v)).Minus(v) }

// oracle answers whether a pod can run on a node as far as other pods do not matter. It asks the scheduler, once for
// each spec and each kind of node.
type oracle struct {
	p       *Problem
	w       *sim.World
	kind    []string          // of the nodes: what they have in common with others
	answers map[question]bool // question -> the pod can run there
	refused map[refusal]bool
	asked   int
}

type question struct {
	spec *cluster.PodSpec
	kind string
}

// refusal is a move that the scheduler refused in a simulation, for all pods of the spec.
type refusal struct {
	spec *cluster.PodSpec
	node int
}

func newOracle(p *Problem) *oracle {
	o := &oracle{p: p, answers: map[question]bool{}, refused: map[refusal]bool{}}
	for _, n := range p.Nodes {
		o.kind = append(o.kind, kindOf(n))
	}
	return o
}

// kindOf returns what decides whether a pod can run on a node, besides its free capacity.
func kindOf(n *cluster.Node) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(n.Labels)) {
		if k != v1.LabelHostname {
			fmt.Fprintf(&b, "%q=%q,", k, n.Labels[k])
		}
	}
	fmt.Fprintf(&b, "%v %v %v", n.Taints, n.Unschedulable, n.Allocatable)
	return b.String()
}

// fits reports whether a pod can run on a node that is empty.
func (o *oracle) fits(p *cluster.Pod, n int) bool {
	if o.refused[refusal{p.Spec, n}] {
		return false
	}
	q := question{p.Spec, o.kind[n]}
	is, known := o.answers[q]
	if !known {
		is = o.ask(p, o.p.Nodes[n].Name)
		o.answers[q] = is
	}
	return is
}

func (o *oracle) ask(p *cluster.Pod, node string) bool {
	if o.w == nil {
		o.w = world(o.p)
		o.w.Start()
	}
	o.asked++
	made := pinned(o.w, p, fmt.Sprintf("asked-%d", o.asked), node)
	bound := settle(o.w, made)
	o.w.Vanish(made, sim.Deleted)
	return bound
}

// world returns a World with the nodes and the other objects.
func world(p *Problem) *sim.World {
	w := sim.New(sim.Setup{Ideal: true, Epoch: p.At, Schedulers: []sim.Scheduler{{Name: "kumiki", Make: p.Make}}})
	for _, o := range p.Objects {
		w.ShowObject(o)
	}
	for _, n := range p.Nodes {
		w.AddRecord(n)
	}
	return w
}

// pinned creates a pod that can run on one node alone.
func pinned(w *sim.World, p *cluster.Pod, name, node string) *sim.Pod {
	rec, spec := *p, *p.Spec
	spec.NodeName, spec.Alike, spec.WithoutRequests = node, nil, nil
	rec.Spec = w.Intake().Share(&spec)
	rec.NodeName, rec.Nominated, rec.Condition, rec.UnschedulableSince = "", "", cluster.Condition{}, 0
	rec.Start, rec.Created, rec.Gang, rec.Bound = 0, 0, nil, nil
	return w.Create(w.TemplateOf(&rec), sim.NewPod{Name: name, UID: cluster.UID(name)})
}

// settle lets the scheduler decide about a pod, and reports whether it has a node.
func settle(w *sim.World, p *sim.Pod) bool {
	w.Run(sim.Limits{Until: w.Now() + 1, Done: func() bool { return p.Record.NodeName != "" }})
	return p.Record.NodeName != ""
}
