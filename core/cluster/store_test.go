// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// model is the slow twin of the Store: plain lists, sums taken anew at every question, in arbitrary precision.
type model struct {
	nodes map[string]*cluster.Node // node name -> record
	pods  map[cluster.UID]modelPod // pod UID -> where it is
}

type modelPod struct {
	pod     *cluster.Pod
	node    string
	assumed bool
}

func (m *model) clone() *model {
	c := &model{map[string]*cluster.Node{}, map[cluster.UID]modelPod{}}
	for k, v := range m.nodes {
		c.nodes[k] = v
	}
	for k, v := range m.pods {
		c.pods[k] = v
	}
	return c
}

// sum adds what the pods of a node hold of a resource, all of them or only the assumed ones.
func (m *model) sum(node string, name v1.ResourceName, assumedOnly bool) int64 {
	total := new(big.Int)
	for _, p := range m.pods {
		if p.node != node || assumedOnly && !p.assumed {
			continue
		}
		amount := p.pod.Spec.Held.Get(name)
		if name == v1.ResourcePods {
			amount = 1
		}
		total.Add(total, big.NewInt(amount))
	}
	if !total.IsInt64() {
		return resource.Overflowed
	}
	return total.Int64()
}

var resources = []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, v1.ResourcePods,
	"example.com/gpu", "hugepages-2Mi"}

// compareScalars: the list of a row has all that its columns have, and nothing twice. Mutants: a pod's resource that
// its node does not offer is not listed; a list that outlives its node's row.
func compareScalars(t *rapid.T, snap cluster.Snapshot, n cluster.NodeIdx) {
	listed := map[resource.ID]bool{}
	for _, id := range snap.Scalars(n) {
		if listed[id] || id < resource.Fixed {
			t.Fatalf("scalars of node %q: %v", snap.NodeName(n), snap.Scalars(n))
		}
		listed[id] = true
	}
	for id := resource.Fixed; int(id) < snap.Names().Len(); id++ {
		if has := snap.Allocatable(id).At(n) != 0 || snap.Requested(id).At(n) != 0; has && !listed[id] {
			t.Fatalf("scalars of node %q: %v, it has %s", snap.NodeName(n), snap.Scalars(n), snap.Names().Name(id))
		}
	}
	if snap.NodeName(n) == "" && len(listed) > 0 {
		t.Fatalf("row %d is free and lists %v", n, snap.Scalars(n))
	}
}

// compare reads the whole store and the whole model.
func compare(t *rapid.T, s *cluster.Store, m *model) {
	if err := s.CheckInvariants(); err != nil {
		t.Fatal(err)
	}
	snap := s.Snapshot()
	if snap.Nodes() != len(m.nodes) {
		t.Fatalf("store has %d nodes, model %d", snap.Nodes(), len(m.nodes))
	}
	if snap.PodCount() != len(m.pods) {
		t.Fatalf("store has %d pods, model %d", snap.PodCount(), len(m.pods))
	}
	for name, node := range m.nodes {
		n, ok := snap.Find(name)
		if !ok || snap.Node(n) != node {
			t.Fatalf("node %q: found %v", name, ok)
		}
		for key, value := range node.Labels {
			if !snap.WithLabel(key, value).Has(n) || !snap.WithLabelKey(key).Has(n) {
				t.Fatalf("node %q is not in the set of its label %s=%s", name, key, value)
			}
		}
		set, sets := snap.TaintSets()
		if !slices.Equal(sets[set[n]], node.Taints) && len(sets[set[n]])+len(node.Taints) > 0 {
			t.Fatalf("node %q has taints %v, its set says %v", name, node.Taints, sets[set[n]])
		}
		if snap.Unschedulable()[n] != node.Unschedulable {
			t.Fatalf("node %q: unschedulable %v", name, !node.Unschedulable)
		}
	}
	withZone := 0
	for _, node := range m.nodes {
		if node.Labels["zone"] == "a" {
			withZone++
		}
	}
	if got := snap.WithLabel("zone", "a").Count(); got != withZone {
		t.Fatalf("%d rows with zone=a, model %d", got, withZone)
	}
	compareVolumes(t, snap)
	for row := range snap.Rows() {
		n := cluster.NodeIdx(row)
		name := snap.NodeName(n)
		for _, r := range resources {
			id, known := snap.Names().Lookup(r)
			if !known {
				continue
			}
			if got, want := snap.Requested(id).At(n), m.sum(name, r, false); got != want {
				t.Fatalf("node %q requested %s: store %d, model %d", name, r, got, want)
			}
			if got, want := snap.Assumed(id).At(n), m.sum(name, r, true); got != want {
				t.Fatalf("node %q assumed %s: store %d, model %d", name, r, got, want)
			}
			var want int64
			if node := m.nodes[name]; node != nil {
				want = node.Allocatable.Get(r)
			}
			if got := snap.Allocatable(id).At(n); got != want {
				t.Fatalf("node %q allocatable %s: store %d, model %d", name, r, got, want)
			}
		}
		compareScalars(t, snap, n)
		ports := 0
		snap.EachPod(n, func(p *cluster.Pod, assumed bool) {
			ports += len(p.Spec.Ports)
			if m.pods[p.UID].node != name || m.pods[p.UID].assumed != assumed {
				t.Fatalf("pod %s is on %q (assumed %v) in the store, on %+v in the model", p.UID, name, assumed,
					m.pods[p.UID])
			}
		})
		if len(snap.Ports(n)) != ports {
			t.Fatalf("node %q lists %d ports, its pods take %d", name, len(snap.Ports(n)), ports)
		}
	}
}

func drawNode(t *rapid.T, in *convert.Intake) *cluster.Node {
	i := rapid.IntRange(0, 5).Draw(t, "node")
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i), Labels: map[string]string{}}}
	n.Labels["zone"] = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone")
	if rapid.Bool().Draw(t, "labelled") {
		n.Labels["disk"] = "ssd"
	}
	n.Spec.Unschedulable = rapid.Bool().Draw(t, "unschedulable")
	if rapid.Bool().Draw(t, "tainted") {
		n.Spec.Taints = []v1.Taint{{Key: "k", Effect: v1.TaintEffectNoSchedule}}
	}
	n.Status.Allocatable = drawList(t, "allocatable", resources)
	return in.Node(n)
}

func drawList(t *rapid.T, what string, names []v1.ResourceName) v1.ResourceList {
	list := v1.ResourceList{}
	for _, name := range names {
		if rapid.Bool().Draw(t, what+" has "+string(name)) {
			q := rapid.SampledFrom([]string{"0", "1", "3", "100m", "2Gi", "8E", "9E", "50E"}).Draw(t,
				what+" "+string(name))
			list[name] = apiresource.MustParse(q)
		}
	}
	return list
}

func drawPod(t *rapid.T, in *convert.Intake, uid int) *cluster.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", uid), Namespace: "default"}}
	p.UID = types.UID(fmt.Sprintf("uid-%d", uid))
	c := v1.Container{Name: "c", Resources: v1.ResourceRequirements{Requests: drawList(t, "request", resources)}}
	if rapid.Bool().Draw(t, "port") {
		c.Ports = []v1.ContainerPort{{HostPort: int32(rapid.IntRange(80, 82).Draw(t, "hostPort")),
			Protocol: v1.ProtocolTCP}}
	}
	p.Spec.Containers = []v1.Container{c}
	p.Spec.NodeName = fmt.Sprintf("n%d", rapid.IntRange(0, 6).Draw(t, "bound to"))
	p.Spec.Volumes = drawVolumes(t)
	return in.Pod(p)
}

// TestStoreIsItsModel runs random histories, with transactions that are aborted and trials that are rolled back, and
// compares every sum with the slow twin after each step. Mutants it catches: detach without the ledger's record
// (update a pod with other requests, then delete it); a sum that saturates for good (50E bound, then gone); rollback
// that leaves a row taken; a confirmed pod still counted as assumed; claims of a pod whose node is gone, or that left
// the ledger, still in use.
func TestStoreIsItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, s := convert.NewIntake(), cluster.NewStore()
		m := &model{map[string]*cluster.Node{}, map[cluster.UID]modelPod{}}
		for range rapid.IntRange(1, 12).Draw(t, "transactions") {
			before := m.clone()
			s.Begin()
			for range rapid.IntRange(0, 6).Draw(t, "steps") {
				change(t, in, s, m)
				compare(t, s, m)
			}
			if rapid.Bool().Draw(t, "abort") {
				s.Abort()
				m = before
			} else {
				s.Commit()
			}
			compare(t, s, m)
		}
	})
}

// change makes one random change in both.
func change(t *rapid.T, in *convert.Intake, s *cluster.Store, m *model) {
	switch rapid.SampledFrom([]string{"node", "node gone", "bound", "pod gone", "trial", "forget"}).Draw(t, "change") {
	case "node":
		n := drawNode(t, in)
		s.SetNode(n)
		m.nodes[n.Name] = n
	case "node gone":
		name := fmt.Sprintf("n%d", rapid.IntRange(0, 5).Draw(t, "gone"))
		s.DeleteNode(name)
		delete(m.nodes, name)
	case "bound":
		p := drawPod(t, in, rapid.IntRange(0, 9).Draw(t, "pod"))
		s.SetPod(p)
		m.pods[p.UID] = modelPod{p, p.NodeName, false}
	case "pod gone":
		uid := cluster.UID(fmt.Sprintf("uid-%d", rapid.IntRange(0, 9).Draw(t, "pod")))
		_, ok := s.DeletePod(uid)
		if _, had := m.pods[uid]; had != ok {
			t.Fatalf("DeletePod(%s) said %v, model %v", uid, ok, had)
		}
		delete(m.pods, uid)
	case "forget":
		uid := cluster.UID(fmt.Sprintf("uid-%d", rapid.IntRange(0, 9).Draw(t, "pod")))
		if want := m.pods[uid].assumed; s.Forget(uid) != want {
			t.Fatalf("Forget(%s) said %v", uid, !want)
		}
		if m.pods[uid].assumed {
			delete(m.pods, uid)
		}
	case "trial":
		trial(t, in, s, m)
	}
}

func trial(t *rapid.T, in *convert.Intake, s *cluster.Store, m *model) {
	start := m.clone()
	tr := s.Trial()
	mark, atMark := tr.Checkpoint(), m.clone()
	for range rapid.IntRange(0, 4).Draw(t, "trial steps") {
		p := drawPod(t, in, rapid.IntRange(0, 9).Draw(t, "pod"))
		_, held := m.pods[p.UID]
		row, exists := s.Snapshot().Find(p.NodeName)
		switch {
		case held && rapid.Bool().Draw(t, "evict"):
			tr.Evict(p.UID)
			delete(m.pods, p.UID)
		case !held && exists:
			tr.Assume(p, row)
			m.pods[p.UID] = modelPod{p, p.NodeName, true}
		case rapid.Bool().Draw(t, "checkpoint"):
			mark, atMark = tr.Checkpoint(), m.clone()
		default:
			tr.Rollback(mark)
			*m = *atMark.clone()
		}
		compare(t, s, m)
	}
	if rapid.Bool().Draw(t, "discard") {
		tr.Discard()
		*m = *start
		return
	}
	tr.Commit()
}

// TestJournalNamesEveryChangedRow: a cache that reads Changes sees each row that a step touched.
// Mutant: a rollback that does not touch the rows it restores.
func TestJournalNamesEveryChangedRow(t *testing.T) {
	in, s := convert.NewIntake(), cluster.NewStore()
	node := func(name string) *cluster.Node {
		return in.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("4")}}})
	}
	pod := in.Pod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"}})
	s.SetNode(node("a"))
	s.SetNode(node("b"))
	_, seq, _ := s.Snapshot().Changes(0)

	s.Begin()
	tr := s.Trial()
	tr.Assume(pod, 1)
	tr.Discard()
	s.Commit()
	rows, _, ok := s.Snapshot().Changes(seq)
	if !ok || len(rows) != 2 || rows[0] != 1 || rows[1] != 1 {
		t.Fatalf("assume and its undo should name row 1 twice, got %v (known %v)", rows, ok)
	}
}

// TestPanicsOnBrokenLedger: a ledger that would count a pod twice stops the process with the values in the message.
// Mutant: assume that overwrites.
func TestPanicsOnBrokenLedger(t *testing.T) {
	in, s := convert.NewIntake(), cluster.NewStore()
	s.SetNode(in.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}))
	pod := in.Pod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"}})
	defer func() {
		broken, ok := recover().(cluster.Broken)
		if !ok || !strings.Contains(broken.Error(), "pod /p (u)") {
			t.Fatalf("want a broken invariant that names the pod, got %v", broken)
		}
	}()
	s.Begin()
	tr := s.Trial()
	tr.Assume(pod, 0)
	tr.Assume(pod, 0)
}

// TestPodsOfOneTemplateShareTheirSpec holds the memory of bound pods down and makes classes.
// Mutant: interning by pointer.
func TestPodsOfOneTemplateShareTheirSpec(t *testing.T) {
	in := convert.NewIntake()
	mk := func(name, cpu string) *cluster.Pod {
		return in.Pod(&v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", Labels: map[string]string{"app": "web"}},
			Spec: v1.PodSpec{Containers: []v1.Container{{Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(cpu)}}}}},
		})
	}
	a, b, c := mk("a", "1"), mk("b", "1000m"), mk("c", "2")
	if a.Spec != b.Spec {
		t.Error("pods a and b ask for the same and do not share a spec")
	}
	if a.Spec == c.Spec {
		t.Error("pods a and c ask for different things and share a spec")
	}
}
