// SPDX-License-Identifier: Apache-2.0

package quality

import (
	"fmt"
	"math/rand"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/sim"
	"github.com/kumiki-scheduler/kumiki/sim/bound"
)

// Preemption is a full cluster, and a pod of a higher priority than all others that fits no node.
type Preemption struct {
	nodes   []*v1.Node
	pods    []*v1.Pod      // that are bound
	on      map[string]int // pod -> node
	victims map[string]bound.Victim
	budget  *policyv1.PodDisruptionBudget
	pod     *v1.Pod
	need    []int64
	free    [][]int64 // by node
}

// mostVictims is how many pods of a node B8 tries all sets of.
const mostVictims = 16

// DrawPreemption draws 2 to 6 nodes full of pods of five priorities, some of which a disruption budget protects, and a
// pod that needs a third of a node or more.
func DrawPreemption(seed int64) *Preemption {
	r := rand.New(rand.NewSource(seed))
	c := &Preemption{on: map[string]int{}, victims: map[string]bound.Victim{}}
	protected := map[string]string{"protected": "yes"}
	c.budget = &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceDefault, Name: "b",
		UID: "b"}}
	c.budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: protected}
	c.need = []int64{4 + r.Int63n(9), 4 + r.Int63n(9)}
	for n := range 2 + r.Intn(5) {
		name := fmt.Sprint("node-", n)
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		free := []int64{12 + r.Int63n(5), 12 + r.Int63n(5)}
		node.Status.Allocatable = preemptionAmounts(free)
		node.Status.Allocatable[v1.ResourcePods] = apiresource.MustParse("110")
		c.nodes, c.free = append(c.nodes, node), append(c.free, free)
		for k := 0; k < mostVictims && free[0] >= c.need[0]/2 && free[1] >= c.need[1]/2; k++ {
			q := []int64{1 + r.Int63n(4), 1 + r.Int63n(4)}
			if free[0] < q[0] || free[1] < q[1] {
				continue
			}
			v := bound.Victim{Frees: q, Priority: int32(1 + r.Intn(5)), Violates: r.Intn(5) == 0}
			pod := preemptionPod(fmt.Sprintf("p%d-%d", n, k), q, v.Priority)
			pod.Spec.NodeName = name
			at := metav1.NewTime(time.Unix(1000+r.Int63n(1000), 0))
			pod.Status.Phase, pod.Status.StartTime = v1.PodRunning, &at
			if v.Violates {
				pod.Labels = protected
			}
			free[0], free[1] = free[0]-q[0], free[1]-q[1]
			c.pods, c.on[pod.Name], c.victims[pod.Name] = append(c.pods, pod), n, v
		}
		for i := range free { // so that the pod fits no node
			if free[i] >= c.need[i] {
				node.Status.Allocatable = lessOf(node.Status.Allocatable, i, free[i]-c.need[i]+1)
				free[i] = c.need[i] - 1
				break
			}
		}
	}
	c.pod = preemptionPod("preemptor", c.need, 100)
	return c
}

// resourcesOf are the names of the amounts, which are CPUs and GiB.
var resourcesOf = []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory}

func preemptionAmounts(q []int64) v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: *apiresource.NewQuantity(q[0], apiresource.DecimalSI),
		v1.ResourceMemory: *apiresource.NewQuantity(q[1]<<30, apiresource.BinarySI)}
}

// lessOf returns what a node has with less of a resource.
func lessOf(list v1.ResourceList, i int, less int64) v1.ResourceList {
	q := list[resourcesOf[i]]
	if resourcesOf[i] == v1.ResourceMemory {
		less <<= 30
	}
	q.Sub(*apiresource.NewQuantity(less, q.Format))
	list[resourcesOf[i]] = q
	return list
}

func preemptionPod(name string, q []int64, priority int32) *v1.Pod {
	p := podOf(preemptionAmounts(q))
	p.Name, p.Namespace, p.UID = name, v1.NamespaceDefault, types.UID(name)
	p.Spec.Priority, p.Spec.SchedulerName = &priority, v1.DefaultSchedulerName
	p.CreationTimestamp = metav1.NewTime(time.Unix(2000, 0))
	return p
}

// PreemptionTally adds up what a scheduler evicted in several cases, and bound B8.
type PreemptionTally struct {
	// Cases are those with victims, and Least those of them whose loss is that of B8. Impossible counts cases in which
	// no victims help.
	Cases, Least, Impossible int
	// Violations and Higher count the cases with more violated budgets than B8's, and those with as many and a victim
	// of a higher priority.
	Violations, Higher int
	// Victims and Priorities are sums over all cases, of the victims and of their priorities (1 to 5); Best are those
	// of B8.
	Victims, BestVictims       int
	Priorities, BestPriorities int64
	// Needless counts victims without which the pod fits.
	Needless int
}

// Add adds the cases of another tally.
func (t *PreemptionTally) Add(o *PreemptionTally) {
	t.Cases, t.Least, t.Impossible = t.Cases+o.Cases, t.Least+o.Least, t.Impossible+o.Impossible
	t.Violations, t.Higher = t.Violations+o.Violations, t.Higher+o.Higher
	t.Victims, t.BestVictims = t.Victims+o.Victims, t.BestVictims+o.BestVictims
	t.Priorities, t.BestPriorities = t.Priorities+o.Priorities, t.BestPriorities+o.BestPriorities
	t.Needless += o.Needless
}

// Run has a scheduler decide who is evicted for the pod, and adds that. strict tells that it never violates a budget.
func (c *Preemption) Run(s sim.Stepper, strict bool, to *PreemptionTally) error {
	victims, err := c.evicted(s)
	if err != nil {
		return err
	}
	best, possible := c.least(strict)
	switch {
	case !possible && len(victims) == 0:
		to.Impossible++
		return nil
	case len(victims) == 0 || !possible:
		return fmt.Errorf("%d victims were chosen, and victims help: %v", len(victims), possible)
	}
	var chosen []bound.Victim
	node := c.on[victims[0]]
	free := append([]int64(nil), c.free[node]...)
	for _, name := range victims {
		if c.on[name] != node {
			return fmt.Errorf("victims on two nodes: %v", victims)
		}
		chosen = append(chosen, c.victims[name])
		addTo(free, c.victims[name].Frees, 1)
	}
	if !covered(c.need, free) {
		return fmt.Errorf("the pod does not fit without %v", victims)
	}
	for _, v := range chosen {
		addTo(free, v.Frees, -1)
		if covered(c.need, free) {
			to.Needless++
		}
		addTo(free, v.Frees, 1)
	}
	to.add(bound.LossOf(chosen), best)
	return nil
}

func (t *PreemptionTally) add(loss, best bound.Loss) {
	t.Cases++
	switch {
	case loss.Compare(best) == 0:
		t.Least++
	case loss.Violations > best.Violations:
		t.Violations++
	case loss.Highest > best.Highest:
		t.Higher++
	}
	t.Victims += loss.Victims
	t.BestVictims += best.Victims
	t.Priorities += loss.Priorities()
	t.BestPriorities += best.Priorities()
}

// least returns bound B8: the smallest loss on any node, and false if no victims help.
func (c *Preemption) least(strict bool) (least bound.Loss, possible bool) {
	for n := range c.nodes {
		var victims []bound.Victim
		for _, p := range c.pods {
			if v := c.victims[p.Name]; c.on[p.Name] == n && !(strict && v.Violates) {
				victims = append(victims, v)
			}
		}
		deficit := append([]int64(nil), c.need...)
		addTo(deficit, c.free[n], -1)
		if l, is := bound.LeastLoss(victims, deficit); is && (!possible || l.Compare(least) < 0) {
			least, possible = l, true
		}
	}
	return least, possible
}

// evicted returns the victims that a scheduler chooses; nil for none.
func (c *Preemption) evicted(s sim.Stepper) (victims []string, err error) {
	in := convert.NewIntake()
	s.Step(engine.Tick{Now: 3000 * record.Second})
	for _, n := range c.nodes {
		s.Step(engine.NodeSet{Node: in.Node(n)})
	}
	s.Step(engine.ObjectSet{Object: c.budget})
	for _, p := range c.pods {
		s.Step(engine.PodSet{Pod: in.Pod(p)})
	}
	s.Step(engine.Synced{})
	s.Step(engine.PodSet{Pod: in.PendingPod(c.pod)})
	for _, f := range s.Step(engine.Cycle{}) {
		switch f := f.(type) {
		case engine.Bind:
			return nil, fmt.Errorf("the pod was placed on node %s, and it fits no node", f.Node)
		case engine.Evict:
			for _, v := range f.Victims {
				victims = append(victims, v.Name)
			}
		}
	}
	return victims, nil
}

func addTo(sum, q []int64, sign int64) {
	for i, v := range q {
		sum[i] += sign * v
	}
}

func covered(need, free []int64) bool {
	for i, v := range need {
		if free[i] < v {
			return false
		}
	}
	return true
}
