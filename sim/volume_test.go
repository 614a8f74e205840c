// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
)

// zonedNode is a node with a zone.
func zonedNode(name, cpu, zone string) *v1.Node {
	n := node(name, cpu)
	n.Labels = map[string]string{v1.LabelHostname: name, v1.LabelTopologyZone: zone}
	return n
}

// claiming is a pod that requests cpu and has an ephemeral volume of a class.
func claiming(cpu, class string) *v1.Pod {
	p := asking(cpu, 0)
	p.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{
		VolumeClaimTemplate: &v1.PersistentVolumeClaimTemplate{Spec: claimSpec(class)}}}}}
	return p
}

func claimSpec(class string) v1.PersistentVolumeClaimSpec {
	return v1.PersistentVolumeClaimSpec{StorageClassName: &class,
		AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, Resources: v1.VolumeResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceStorage: apiresource.MustParse("10Gi")}}}
}

// slowVolumes is the default model with 20 seconds until a claim is bound.
func slowVolumes() Model {
	m := DefaultModel()
	m.Volume = Always(20 * time.Second)
	return m
}

// TestProvisionedVolumesBindLate: a pod with a claim of a late class is bound when the provisioner has made its volume;
// with the pod, its claim and its volume go.
func TestProvisionedVolumesBindLate(t *testing.T) {
	s := newStage(1, slowVolumes(), 2, kumiki("a"))
	s.w.AddClass(StorageClass{Name: "disk"})
	s.load(&Workload{Name: "w", Kind: Pods, Pod: claiming("1", "disk"), Count: 3, Work: Always(5 * time.Minute)})
	r := s.run(2 * time.Minute)
	r.expect(t, map[string]float64{"pods.running": 3, "claims.bound": 3, "claims.pending": 0, "unsupported": 0,
		"troubles": 0})
	if wait := r.number(t, "timeToBind.p50"); wait < 20 || wait > 25 {
		t.Errorf("half of the pods waited %v s; the volumes took 20 s", wait)
	}
	r = s.run(time.Hour)
	r.expect(t, map[string]float64{"pods.succeeded": 3, "claims.bound": 0, "claims.pending": 0})
	if len(s.w.storage.volumes) != 0 {
		t.Errorf("%d volumes are left", len(s.w.storage.volumes))
	}
}

// TestImmediateVolumesDecideTheZone: claims of an immediate class have their volumes before their pods have nodes, and
// each pod runs in the zone of its volume.
func TestImmediateVolumesDecideTheZone(t *testing.T) {
	s := newStage(3, slowVolumes(), 0, kumiki("a"))
	s.w.AddClass(StorageClass{Name: "disk", Immediate: true, Topology: v1.LabelTopologyZone})
	for i := range 4 {
		s.w.AddNode(zonedNode(fmt.Sprintf("z%d", i), "16", fmt.Sprintf("zone-%d", i)))
	}
	s.load(&Workload{Name: "w", Kind: Pods, Pod: claiming("1", "disk"), Count: 16})
	r := s.run(time.Hour)
	r.expect(t, map[string]float64{"pods.running": 16, "claims.bound": 16})
	zones := map[string]bool{}
	for _, p := range s.w.pods { // order: each by itself
		claim := s.w.storage.claims[cluster.ObjectKey{Namespace: "default", Name: p.Record.EphemeralClaim("data")}]
		pv := s.w.storage.volumes[claim.Spec.VolumeName]
		want := pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]
		if got := p.node.Record.Labels[v1.LabelTopologyZone]; got != want {
			t.Errorf("pod %s runs in %s, its volume is in %s", p.Record.Name, got, want)
		}
		zones[want] = true
	}
	if len(zones) < 2 {
		t.Errorf("all volumes are in %v", zones)
	}
}

// TestVolumesOfNodesAreUsedAgain: three nodes have a volume each, so three of four pods run; the fourth follows when
// one has ended and its volume is given back.
func TestVolumesOfNodesAreUsedAgain(t *testing.T) {
	s := newStage(1, slowVolumes(), 0, kumiki("a"))
	s.w.AddClass(StorageClass{Name: "local", Static: true})
	for i := range 3 {
		name := fmt.Sprintf("n%d", i)
		s.w.AddNode(zonedNode(name, "8", "z"))
		s.w.AddVolume("disk-of-"+name, "local", apiresource.MustParse("20Gi"), name)
	}
	s.load(&Workload{Name: "w", Kind: Pods, Pod: claiming("1", "local"), Count: 4, Work: Always(10 * time.Minute)})
	r := s.run(5 * time.Minute)
	r.expect(t, map[string]float64{"pods.running": 3, "pods.pending": 1, "claims.bound": 3, "claims.pending": 1,
		"nodes.used.end": 3})
	r = s.run(2 * time.Hour)
	r.expect(t, map[string]float64{"pods.succeeded": 4, "pods.pending": 0, "claims.bound": 0})
	if len(s.w.storage.volumes) != 3 {
		t.Errorf("%d volumes, want the three of the nodes", len(s.w.storage.volumes))
	}
}

// TestProvisionerReturnsClaimOfLostNode: the selected node is gone before the volume is made. The claim loses the node,
// and the scheduler selects another one.
func TestProvisionerReturnsClaimOfLostNode(t *testing.T) {
	s := newStage(1, slowVolumes(), 1, kumiki("a"))
	s.w.AddClass(StorageClass{Name: "disk", Topology: v1.LabelHostname})
	s.load(&Workload{Name: "w", Kind: Pods, Pod: claiming("1", "disk")})
	s.w.At(10*time.Second, func() {
		s.w.Remove(s.w.Node("n0"))
		s.w.AddNode(zonedNode("later", "8", "z"))
	})
	r := s.run(time.Hour)
	r.expect(t, map[string]float64{"pods.running": 1, "claims.bound": 1})
	if n := s.w.Node("later"); len(n.Pods()) != 1 {
		t.Errorf("node later has %d pods", len(n.Pods()))
	}
}

// TestRacingSchedulersWantOneVolume: two schedulers choose the one volume for two pods. The API server refuses the
// second write, so one claim gets it.
func TestRacingSchedulersWantOneVolume(t *testing.T) {
	m := slowVolumes()
	m.Watch = Always(2 * time.Second)
	a, b := kumiki("a"), kumiki("b")
	a.Copies, b.Copy, b.Copies = 2, 1, 2
	s := newStage(1, m, 0, a, b)
	s.w.AddClass(StorageClass{Name: "local", Static: true})
	s.w.AddNode(zonedNode("n", "8", "z"))
	s.w.AddVolume("disk", "local", apiresource.MustParse("20Gi"), "n")
	s.load(&Workload{Name: "w", Kind: Pods, Pod: claiming("1", "local"), Count: 6})
	r := s.run(10 * time.Minute)
	r.expect(t, map[string]float64{"pods.running": 1, "pods.pending": 5, "claims.bound": 1, "claims.pending": 5,
		"unsupported": 0})
	tallies := s.w.Tallies()
	if tallies[0].Placed == 0 || tallies[1].Placed == 0 {
		t.Errorf("no race: %d and %d decisions", tallies[0].Placed, tallies[1].Placed)
	}
	late := cluster.BindVolume{Target: cluster.Target{Name: "disk", UID: "volume-disk", ResourceVersion: "1"},
		Claim: cluster.Target{Namespace: "default", Name: "other", UID: "other"}}
	if failed, _ := s.w.write(late); failed != modified {
		t.Errorf("a write of an old version: %q", failed)
	}
}

// TestStatefulSetKeepsOrderAndClaims: pods are created one after the other; scaled down, the last one goes first and
// its claim stays; scaled up again, the pod has its claim, and so its zone.
func TestStatefulSetKeepsOrderAndClaims(t *testing.T) {
	s := newStage(1, slowVolumes(), 0, kumiki("a"))
	s.w.AddClass(StorageClass{Name: "disk", Topology: v1.LabelTopologyZone})
	for i := range 3 {
		s.w.AddNode(zonedNode(fmt.Sprintf("n%d", i), "2", fmt.Sprintf("zone-%d", i)))
	}
	set := s.load(&Workload{Name: "db", Kind: StatefulSet, Size: 3, Pod: asking("2", 0), Claims: []v1.PersistentVolumeClaim{
		{Spec: claimSpec("disk")}}})
	set.Claims[0].Name = "data"
	s.run(5 * time.Minute)
	u := set.Units()[0]
	zones := map[string]string{} // pod name -> zone
	for i, p := range u.ordered.pods {
		if p == nil || p.Record.Name != fmt.Sprintf("db-0-%d", i) || p.Started < 0 {
			t.Fatalf("pod %d does not run: %+v", i, p)
		}
		if i > 0 && p.Created < u.ordered.pods[i-1].Started {
			t.Errorf("pod %d was created at %v, the one before started at %v", i, p.Created, u.ordered.pods[i-1].Started)
		}
		zones[p.Record.Name] = p.node.Record.Labels[v1.LabelTopologyZone]
	}
	u.Scale(1)
	ends := []string{}
	s.w.setup.Observer = &noting{Measure: s.m, ends: &ends}
	r := s.run(10 * time.Minute)
	r.expect(t, map[string]float64{"pods.running": 1, "claims.bound": 3})
	if fmt.Sprint(ends) != "[db-0-2 db-0-1]" {
		t.Errorf("ended: %v", ends)
	}
	u.Scale(3)
	r = s.run(20 * time.Minute)
	r.expect(t, map[string]float64{"pods.running": 3, "claims.bound": 3, "pods.rejected": 0})
	for _, p := range u.ordered.pods {
		if got := p.node.Record.Labels[v1.LabelTopologyZone]; got != zones[p.Record.Name] {
			t.Errorf("pod %s was in %s and is in %s", p.Record.Name, zones[p.Record.Name], got)
		}
	}
}

// noting notes the names of pods that end.
type noting struct {
	*Measure
	ends *[]string
}

func (n *noting) Ended(w *World, p *Pod, how End) {
	n.Measure.Ended(w, p, how)
	*n.ends = append(*n.ends, p.Record.Name)
}

// TestParallelStatefulSet: all pods of a parallel set are created at once, and a pod whose node fails comes back under
// its name.
func TestParallelStatefulSet(t *testing.T) {
	s := newStage(1, DefaultModel(), 3, kumiki("a"))
	set := s.load(&Workload{Name: "db", Kind: StatefulSet, Size: 4, Parallel: true, Pod: asking("2", 0)})
	s.w.At(time.Minute, func() { s.w.Fail(set.Units()[0].ordered.pods[1].node) })
	r := s.run(time.Hour)
	r.expect(t, map[string]float64{"pods.running": 4, "nodes.end": 2, "units.started": 1})
	if r.number(t, "pods.lost") < 1 || r.number(t, "timeToBind.p50") > 1 {
		t.Errorf("%v pods were lost, half waited %v s", r.number(t, "pods.lost"), r.number(t, "timeToBind.p50"))
	}
	for i, p := range set.Units()[0].ordered.pods {
		if p == nil || p.Record.Name != fmt.Sprintf("db-0-%d", i) {
			t.Errorf("pod %d: %+v", i, p)
		}
	}
}

// hearing is a scheduler that notes what it sees and does nothing.
type hearing struct{ events *[]engine.Event }

func (h hearing) Step(ev engine.Event) []engine.Effect {
	switch ev.(type) {
	case engine.NodeSet, engine.NodeGone, engine.PodSet, engine.PodGone:
		*h.events = append(*h.events, ev)
	}
	return nil
}
func (hearing) Ready() bool  { return false }
func (hearing) Binding() int { return 0 }

// TestLostWatchIsReadAnew: while a watch is lost, a node gets two taints, and another comes and goes. Afterwards the
// scheduler sees the newest version of the first alone, and that the second is gone. A watch that is only late brings
// everything.
func TestLostWatchIsReadAnew(t *testing.T) {
	for _, relist := range []bool{false, true} {
		var seen []engine.Event
		s := newStage(1, DefaultModel(), 1, Scheduler{Name: "a", Make: func() Stepper { return hearing{&seen} }})
		stop := s.w.Freeze
		if relist {
			stop = s.w.Relist
		}
		s.w.At(time.Second, func() { stop(0, time.Minute) })
		for i, key := range []string{"first", "second"} {
			s.w.At(time.Duration(i+5)*time.Second, func() { s.w.Taint(s.w.Node("n0"), v1.Taint{Key: key}) })
		}
		s.w.At(10*time.Second, func() { s.w.AddNode(node("short", "4")) })
		s.w.At(20*time.Second, func() { s.w.Remove(s.w.Node("short")) })
		s.w.At(30*time.Second, func() { seen = nil })
		s.run(2 * time.Minute)
		want := 4
		if relist {
			want = 2
		}
		if len(seen) != want {
			t.Fatalf("relist %v: the scheduler saw %d events, want %d: %v", relist, len(seen), want, seen)
		}
		taints := seen[want/2-1].(engine.NodeSet).Node.Taints
		if _, gone := seen[want-1].(engine.NodeGone); !gone || len(taints) != 2 {
			t.Errorf("relist %v: %v", relist, seen)
		}
	}
}
