// SPDX-License-Identifier: Apache-2.0

package size

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/sim"
)

// Problem is pods, and the shape of the nodes that are to hold them.
type Problem struct {
	At      record.Time
	Objects []cluster.Object
	// Nodes and Bound are a present cluster, to which nodes are added; none for new nodes alone.
	Nodes []*cluster.Node
	Bound []*cluster.Pod
	// Shape is a node as those that are counted. Each of them runs copies of Daemons.
	Shape   *cluster.Node
	Daemons []*cluster.Pod
	// Pods are to be placed. Their UIDs are unique.
	Pods []*cluster.Pod
	// Make makes the scheduler.
	Make func() sim.Stepper
	// Seeds are those of random orders, which are tried beside the given one and the largest first.
	Seeds []uint64
	// Most bounds the number of nodes that are tried; 0 for as many as there are pods.
	Most int
}

// Order is an order in which the pods were created, with the fewest nodes that sufficed.
type Order struct {
	Name  string `json:"name"`
	Nodes int    `json:"nodes"` // -1 if none did
}

// Answer is what is known of the number of nodes.
type Answer struct {
	// AtLeast is a number with fewer than which no scheduler can place all pods, and Reason says why.
	AtLeast int    `json:"atLeast"`
	Reason  string `json:"reason"`
	// Fewest is the least number of nodes with which all pods were placed.
	Fewest int     `json:"fewest"`
	Orders []Order `json:"orders"`
}

// Exact reports whether one node fewer is proved to be too few.
func (a Answer) Exact() bool { return a.AtLeast == a.Fewest }

// Find answers the question. There must be a pod.
func (p *Problem) Find() (Answer, error) {
	w, shape := p.probe()
	names := make([]string, 0, 8)
	for _, name := range w.ResourceNames() {
		names = append(names, string(name))
	}
	capacity := w.Node(shape.Name).Capacity.Minus(w.Node(shape.Name).Used)
	var need, free []sim.Vector
	for _, pod := range p.Pods {
		need = append(need, w.TemplateOf(pod).Need())
	}
	for _, n := range p.Nodes {
		have := w.Node(n.Name)
		free = append(free, have.Capacity.Minus(have.Used))
	}
	var out Answer
	low := atLeast(capacity, free, need, names)
	out.AtLeast, out.Reason = low.nodes, low.reason
	if err := p.tooLarge(capacity, need, names); err != nil {
		return out, err
	}
	most := cmp.Or(p.Most, len(p.Pods))
	out.Fewest = -1
	for _, o := range p.orders(need, capacity) {
		n := p.search(o.pods, out.AtLeast, max(most, out.AtLeast))
		out.Orders = append(out.Orders, Order{o.name, n})
		if n >= 0 && (out.Fewest < 0 || n < out.Fewest) {
			out.Fewest = n
		}
		if out.Fewest == out.AtLeast {
			break // no order can do with fewer
		}
	}
	if out.Fewest < 0 {
		return out, fmt.Errorf("%d nodes do not hold all pods in any order: %s", max(most, out.AtLeast), p.why(most))
	}
	return out, nil
}

// probe returns a World with one new node and what is there, to convert amounts.
func (p *Problem) probe() (*sim.World, *cluster.Node) {
	w := sim.New(sim.Setup{})
	shape := p.add(w, 0)
	p.addPresent(w)
	return w, shape
}

// tooLarge returns an error if a pod requests more than a node has and there is no other.
func (p *Problem) tooLarge(capacity sim.Vector, need []sim.Vector, names []string) error {
	if len(p.Nodes) > 0 {
		return nil
	}
	for i, pod := range p.Pods {
		for r, name := range names {
			if need[i].At(r) > capacity.At(r) {
				return fmt.Errorf("pod %s requests %s %s, and a node as %s has %s for it", pod.Key(), name,
					amount(name, need[i].At(r)), p.Shape.Name, amount(name, capacity.At(r)))
			}
		}
	}
	return nil
}

// order is an order of the pods.
type order struct {
	name string
	pods []*cluster.Pod
}

// orders returns the orders that are tried: as given, the largest first, and random ones.
func (p *Problem) orders(need []sim.Vector, capacity sim.Vector) []order {
	size := map[cluster.UID]float64{} // pod -> its largest share of a node
	for i, pod := range p.Pods {
		for r, c := range capacity {
			if c > 0 {
				size[pod.UID] = max(size[pod.UID], float64(need[i].At(r))/float64(c))
			}
		}
	}
	largest := slices.Clone(p.Pods)
	slices.SortStableFunc(largest, func(a, b *cluster.Pod) int { return cmp.Compare(size[b.UID], size[a.UID]) })
	out := []order{{"largest first", largest}, {"as given", p.Pods}}
	for _, seed := range p.Seeds {
		shuffled := slices.Clone(p.Pods)
		for i := len(shuffled) - 1; i > 0; i-- {
			j := int(sim.Random(seed, uint64(i)) % uint64(i+1))
			shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
		}
		out = append(out, order{fmt.Sprintf("random, seed %d", seed), shuffled})
	}
	return out
}

// search returns the least number of nodes from low to high that holds the pods in an order, by a binary search; -1 if
// high does not.
func (p *Problem) search(pods []*cluster.Pod, low, high int) int {
	// Pods mostly need few more nodes than the bound, so high is approached by doubling.
	step, top := 1, low
	for !p.holds(top, pods) {
		if top == high {
			return -1
		}
		low = top + 1
		top = min(high, top+step)
		step *= 2
	}
	for low < top {
		middle := (low + top) / 2
		if p.holds(middle, pods) {
			top = middle
		} else {
			low = middle + 1
		}
	}
	return top
}

// patience is the virtual time after which a scheduler that has not placed all pods is given up; longer than it waits
// before it tries a rejected pod again.
const patience = time.Hour

// holds reports whether the scheduler places all pods on so many new nodes, and evicts none of the others.
func (p *Problem) holds(nodes int, pods []*cluster.Pod) bool {
	w := p.run(nodes, pods)
	for _, list := range [][]*cluster.Pod{pods, p.Bound} {
		for _, pod := range list {
			if have := w.Pod(pod.UID); have == nil || have.Record.NodeName == "" {
				return false
			}
		}
	}
	return true
}

// run runs the scheduler on so many new nodes until it is done or gives up.
func (p *Problem) run(nodes int, pods []*cluster.Pod) *sim.World {
	w := sim.New(sim.Setup{Ideal: true, Epoch: p.At, Schedulers: []sim.Scheduler{{Name: "kumiki", Make: p.Make}}})
	for _, o := range p.Objects {
		w.ShowObject(o)
	}
	p.addPresent(w)
	for i := range nodes {
		p.add(w, i)
	}
	for _, pod := range pods {
		rec := *pod
		rec.Created = p.At
		w.Create(w.TemplateOf(&rec), sim.NewPod{Name: pod.Name, UID: pod.UID})
	}
	w.Start()
	w.Run(sim.Limits{Until: patience, Done: func() bool { return w.Pending() == 0 }, WhenQuiet: true})
	return w
}

// why names a pod that has no node.
func (p *Problem) why(nodes int) string {
	w := p.run(nodes, p.Pods)
	for _, pod := range p.Pods {
		if have := w.Pod(pod.UID); have == nil {
			return "pod " + pod.Key() + " is evicted for others"
		} else if have.Record.NodeName == "" {
			return "pod " + pod.Key() + " has none; its affinity, taints or gang may need other nodes"
		}
	}
	return "a running pod is evicted"
}

func (p *Problem) addPresent(w *sim.World) {
	for _, n := range p.Nodes {
		w.AddRecord(n)
	}
	for _, pod := range p.Bound {
		w.Create(w.TemplateOf(pod), sim.NewPod{Name: pod.Name, UID: pod.UID, Node: pod.NodeName})
	}
}

// add adds a new node with its daemons.
func (p *Problem) add(w *sim.World, i int) *cluster.Node {
	n := *p.Shape
	n.Name = fmt.Sprintf("%s-like-%d", p.Shape.Name, i)
	n.UID = n.Name
	n.Labels = maps.Clone(n.Labels)
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[v1.LabelHostname] = n.Name
	n.Unschedulable = false
	w.AddRecord(&n)
	for _, d := range p.Daemons {
		name := d.Name + "-" + n.Name
		w.Create(w.TemplateOf(d), sim.NewPod{Name: name, UID: cluster.UID(name), Node: n.Name})
	}
	return &n
}
