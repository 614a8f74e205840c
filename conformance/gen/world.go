// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// World makes and changes objects one at a time, for tests that play a history
// instead of asking about one moment.
type World struct{ m *maker }

// NewWorld returns the objects of history number n of the seed.
func NewWorld(seed uint64, n int) *World {
	m := &maker{Rand: NewRand(seed, uint64(n)|1<<40), has: named(DefaultPlugins()), crossed: 30, zones: []string{"zone-a", "zone-b"}, extended: []v1.ResourceName{"example.com/gpu"}, crowd: 50}
	m.images = m.makeImages()
	return &World{m: m}
}

// Objects makes the objects of the world besides its nodes and pods; pods made from
// then on refer to them.
func (w *World) Objects(nodes []*v1.Node) []scenario.Object {
	s := &scenario.Scenario{}
	w.m.objects(s)
	w.m.storageObjects(s, nodes)
	w.m.deviceObjects(s, nodes)
	return s.Objects
}

// Made are the objects that came with the pods made since the last call.
func (w *World) Made() []scenario.Object { return w.m.taken() }

// ChangeObject returns a changed copy of an object, nil for kinds that do not change.
func (w *World) ChangeObject(o scenario.APIObject) scenario.APIObject { return w.m.changed(o) }

// Rand is the world's stream of draws.
func (w *World) Rand() *Rand { return w.m.Rand }

// Node makes node number i.
func (w *World) Node(i int) *v1.Node { return w.m.node(i) }

// Pending makes a pod that waits for a node. With a name, it takes that name and
// a UID of its own: a pod deleted and made again.
func (w *World) Pending(name string, nodes []*v1.Node) *v1.Pod {
	p := w.m.incoming(nodes)
	for resources := p.Spec.Containers[0].Resources.Requests; resources != nil && resources.Memory().String() == overflow; {
		// Which node a pod past int64 fits is an exception of its own, see package diff.
		p = w.m.incoming(nodes)
		resources = p.Spec.Containers[0].Resources.Requests
	}
	p.Spec.NodeName = ""
	p.Namespace = "default"
	if len(p.Spec.ResourceClaims) > 0 {
		// Never two gates: upstream asks them in map order.
		p.Spec.SchedulingGates = nil
		return rename(p, name)
	}
	if w.m.Chance(12) && len(p.Spec.SchedulingGates) == 0 {
		p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "example.com/hold"}}
	}
	if w.m.Chance(15) && len(p.Spec.SchedulingGates) == 0 {
		// Never both: upstream asks its gates in map order.
		p.Labels = map[string]string{"hold": "yes"}
	}
	return rename(p, name)
}

func rename(p *v1.Pod, name string) *v1.Pod {
	if name != "" {
		p.Name = name
	}
	return p
}

// ChangeNode returns a changed copy: the kinds of change that wake pods, and
// some that do not.
func (w *World) ChangeNode(old *v1.Node) *v1.Node {
	n := old.DeepCopy()
	bump(&n.ResourceVersion)
	for range w.m.Range(1, 2) {
		switch w.m.Intn(9) {
		case 8:
			n.Status.DeclaredFeatures = w.m.declared()
		case 0:
			n.Spec.Unschedulable = !n.Spec.Unschedulable
		case 1:
			n.Spec.Taints = w.m.taints()
		case 2:
			n.Spec.Taints = nil
		case 3:
			n.Labels = w.m.nodeLabels(n.Name)
		case 4, 5:
			n.Status.Allocatable = w.m.allocatable()
		case 6:
			n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: Pick(w.m.Rand, v1.ConditionTrue, v1.ConditionFalse)}}
		case 7:
			n.Annotations = map[string]string{"example.com/note": strconv.Itoa(w.m.Intn(3))}
		}
	}
	return n
}

// ChangePod returns a changed copy of a pending or bound pod.
func (w *World) ChangePod(old *v1.Pod, nodes []*v1.Node) *v1.Pod {
	p := old.DeepCopy()
	bump(&p.ResourceVersion)
	switch w.m.Intn(9) {
	case 8:
		name := p.Name + "-made"
		p.Status.ResourceClaimStatuses = append(p.Status.ResourceClaimStatuses, v1.PodResourceClaimStatus{Name: "dev-0", ResourceClaimName: &name})
	case 0, 1:
		// Gates can only be taken away.
		if n := len(p.Spec.SchedulingGates); n > 0 {
			p.Spec.SchedulingGates = p.Spec.SchedulingGates[:w.m.Intn(n)]
			if len(p.Spec.SchedulingGates) == 0 {
				p.Spec.SchedulingGates = nil
			}
		}
	case 2:
		p.Labels = map[string]string{"app": Pick(w.m.Rand, "a", "b", "c")}
	case 3:
		p.Spec.Tolerations = append(p.Spec.Tolerations, w.m.tolerations(false)...)
	case 4:
		p.Annotations = map[string]string{"example.com/note": strconv.Itoa(w.m.Intn(9))}
	case 5:
		w.scale(p)
	case 6:
		if p.Spec.NodeName == "" && len(nodes) > 0 {
			p.Status.NominatedNodeName = Pick(w.m.Rand, "", nodes[w.m.Intn(len(nodes))].Name)
		}
	case 7:
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable, Message: "try " + strconv.Itoa(w.m.Intn(9))}}
	}
	return p
}

// scale changes what a container asks for, as an in-place resize does.
func (w *World) scale(p *v1.Pod) {
	c := &p.Spec.Containers[w.m.Intn(len(p.Spec.Containers))]
	req := v1.ResourceList{}
	for name, q := range c.Resources.Requests {
		req[name] = q
	}
	req[v1.ResourceCPU] = resource.MustParse(w.m.cpu(Pick(w.m.Rand, easy, hard)))
	// A "0" stays: see the ways of asking in package diff.
	if q := req[v1.ResourceMemory]; w.m.Chance(30) && !q.IsZero() {
		delete(req, v1.ResourceMemory)
	}
	c.Resources.Requests = req
}

// Bind returns a copy of a pending pod as the API server has it after a bind.
func Bind(old *v1.Pod, node string) *v1.Pod {
	p := old.DeepCopy()
	bump(&p.ResourceVersion)
	p.Spec.NodeName = node
	p.Status.NominatedNodeName = ""
	return p
}

// NewUID gives a made-again pod another identity.
func NewUID(p *v1.Pod, serial int) { p.UID = types.UID("uid-again-" + strconv.Itoa(serial)) }

func bump(resourceVersion *string) {
	n, err := strconv.Atoi(*resourceVersion)
	if err != nil {
		panic("resourceVersion " + *resourceVersion + " is not ours")
	}
	*resourceVersion = strconv.Itoa(n + 1)
}
