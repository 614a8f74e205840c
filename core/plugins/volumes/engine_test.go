// SPDX-License-Identifier: Apache-2.0

package volumes_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

const (
	bindCompleted = "pv.kubernetes.io/bind-completed"
	selectedNode  = "volume.kubernetes.io/selected-node"
)

// storage is an API server with a volume controller and a provisioner, all of them slow, around an engine.
type storage struct {
	t      *rapid.T
	engine *engine.Engine
	intake *convert.Intake
	now    record.Time
	rv     int

	volumes map[string]*v1.PersistentVolume      // name -> the API server's version
	claims  map[string]*v1.PersistentVolumeClaim // name -> the API server's version
	bound   map[string]string                    // pod -> node

	watch    []engine.Event   // on its way to the engine
	prepares []engine.Prepare // asked for, not yet carried out
	binds    []engine.Bind
	events   []engine.Event // all that the engine got
}

const hosts = 3

func newStorage(t *rapid.T) *storage {
	s := &storage{t: t, intake: convert.NewIntake(), volumes: map[string]*v1.PersistentVolume{}, claims: map[string]*v1.PersistentVolumeClaim{}, bound: map[string]string{}}
	s.engine = engine.New(config())
	later := storagev1.VolumeBindingWaitForFirstConsumer
	for name, provisioner := range map[string]string{"local": "kubernetes.io/no-provisioner", "made": "disk.example.com"} { // order: two objects
		s.send(engine.ObjectSet{Object: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &later}})
	}
	for i := range hosts {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i), Labels: map[string]string{"host": fmt.Sprint("n", i)}}}
		n.Status.Allocatable = v1.ResourceList{v1.ResourcePods: apiresource.MustParse("100")}
		s.send(engine.NodeSet{Node: s.intake.Node(n)})
	}
	s.send(engine.Synced{})
	return s
}

func (s *storage) send(ev engine.Event) {
	s.events = append(s.events, ev)
	for _, f := range s.engine.Step(ev) {
		switch f := f.(type) {
		case engine.Prepare:
			s.prepares = append(s.prepares, f)
		case engine.Bind:
			s.binds = append(s.binds, f)
		case engine.Release:
			s.t.Fatalf("volumes are taken back: %+v", f)
		case engine.Trouble:
			s.t.Fatalf("%s: %s: %s", f.Object, f.What, f.Details)
		}
	}
}

// put makes a new version of an object, and sends it to the engine in time.
func (s *storage) put(obj cluster.Object) {
	s.rv++
	obj.SetResourceVersion(strconv.Itoa(s.rv))
	switch o := obj.(type) {
	case *v1.PersistentVolume:
		s.volumes[o.Name] = o
	case *v1.PersistentVolumeClaim:
		s.claims[o.Name] = o
	}
	s.watch = append(s.watch, engine.ObjectSet{Object: obj})
}

func storageSize(n int) v1.ResourceList {
	return v1.ResourceList{v1.ResourceStorage: *apiresource.NewQuantity(int64(n), apiresource.BinarySI)}
}

func (s *storage) offer(name string, size int, class, host string) *v1.PersistentVolume {
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Status: v1.PersistentVolumeStatus{Phase: v1.VolumeAvailable},
		Spec: v1.PersistentVolumeSpec{Capacity: storageSize(size), StorageClassName: class, NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "host", Operator: v1.NodeSelectorOpIn, Values: []string{host}}}}}}}},
	}
}

// arrive makes a pod with a claim of its own.
func (s *storage) arrive(name, class string) {
	s.put(&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("claim-" + name)},
		Spec: v1.PersistentVolumeClaimSpec{StorageClassName: &class, Resources: v1.VolumeResourceRequirements{Requests: storageSize(1)}}})
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
	s.watch = append(s.watch, engine.PodSet{Pod: s.intake.Pod(p)})
}

// write carries out what a pod needs, if objects are still as they were looked at.
func (s *storage) write(p engine.Prepare) {
	message := ""
	for _, w := range p.Writes {
		switch w := w.(type) {
		case cluster.BindVolume:
			pv := s.volumes[w.Name]
			if pv == nil || pv.ResourceVersion != w.ResourceVersion {
				message = "conflict"
				break
			}
			is := pv.DeepCopy()
			is.Spec.ClaimRef = &v1.ObjectReference{Namespace: w.Claim.Namespace, Name: w.Claim.Name, UID: types.UID(w.Claim.UID)}
			s.put(is)
		case cluster.SelectNode:
			claim := s.claims[w.Name]
			if claim.ResourceVersion != w.ResourceVersion {
				message = "conflict"
				break
			}
			is := claim.DeepCopy()
			metav1.SetMetaDataAnnotation(&is.ObjectMeta, selectedNode, w.Node)
			s.put(is)
		}
	}
	s.send(engine.WritesDone{Pod: p.Pod, Decision: p.Decision, Message: message})
}

// serve is the volume controller and the provisioner: the first claim that can be served is. When the provisioner is in
// a bad mood it gives a claim back.
func (s *storage) serve(bad bool) bool {
	for _, name := range slices.Sorted(keys(s.volumes)) {
		ref := s.volumes[name].Spec.ClaimRef
		if ref == nil || s.claims[ref.Name].Spec.VolumeName != "" {
			continue
		}
		claim := s.claims[ref.Name].DeepCopy()
		claim.Spec.VolumeName, claim.Status.Phase = name, v1.ClaimBound
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, bindCompleted, "yes")
		s.put(claim)
		return true
	}
	for _, name := range slices.Sorted(keys(s.claims)) {
		claim := s.claims[name]
		on := claim.Annotations[selectedNode]
		if on == "" || claim.Spec.VolumeName != "" {
			continue
		}
		if bad {
			is := claim.DeepCopy()
			delete(is.Annotations, selectedNode)
			s.put(is)
			return true
		}
		pv := s.offer("made-"+name, 1, "made", on)
		pv.Spec.ClaimRef = &v1.ObjectReference{Namespace: "ns", Name: name, UID: claim.UID}
		s.put(pv)
		return true
	}
	return false
}

func keys[T any](m map[string]T) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m { // order: the caller sorts
			if !yield(k) {
				return
			}
		}
	}
}

// step lets one thing happen; it is false when there is nothing of that kind to do.
func (s *storage) step(kind int, bad bool) bool {
	switch {
	case kind == 0 && len(s.watch) > 0:
		ev := s.watch[0]
		s.watch = s.watch[1:]
		s.send(ev)
	case kind == 1 && len(s.prepares) > 0:
		p := s.prepares[0]
		s.prepares = s.prepares[1:]
		s.write(p)
	case kind == 2 && len(s.binds) > 0:
		b := s.binds[0]
		s.binds = s.binds[1:]
		s.bind(b)
	case kind == 3:
		return s.serve(bad)
	case kind == 4:
		s.now += record.Second
		s.send(engine.Tick{Now: s.now})
	case kind == 5:
		s.send(engine.Cycle{})
	case kind == 6: // another client writes a volume and a claim
		for _, name := range slices.Sorted(keys(s.volumes))[:min(1, len(s.volumes))] {
			s.put(s.volumes[name].DeepCopy())
		}
		for _, name := range slices.Sorted(keys(s.claims))[:min(1, len(s.claims))] {
			s.put(s.claims[name].DeepCopy())
		}
	default:
		return false
	}
	return true
}

// bind carries out a bind, which must not come before the pod has a volume that its node can reach.
func (s *storage) bind(b engine.Bind) {
	claim := s.claims[b.Pod.Name]
	pv := s.volumes[claim.Spec.VolumeName]
	if pv == nil || claim.Annotations[bindCompleted] == "" {
		s.t.Fatalf("pod %s is bound to %s before its volume: %+v", b.Pod.Name, b.Node, claim)
	}
	if at := pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]; at != b.Node {
		s.t.Fatalf("pod %s is bound to %s, its volume is on %s", b.Pod.Name, b.Node, at)
	}
	s.bound[b.Pod.Name] = b.Node
	s.send(engine.BindDone{Pod: b.Pod, Node: b.Node, Outcome: engine.Bound})
}

// calmDown lets everything happen that can, in good order, for a while.
func (s *storage) calmDown() {
	for range 60 {
		for again := true; again; {
			again = false
			for kind := range 4 {
				for s.step(kind, false) {
					again = true
				}
			}
		}
		for range 8 {
			s.step(5, false)
		}
		s.step(4, false)
	}
}

// However slow everybody is, and whatever the provisioner thinks of its nodes: no pod is bound before its volume, no
// volume goes to two claims, every pod for which there is a volume gets one, and the others once there are more.
func TestVolumesReachTheirPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStorage(t)
		volumes := rapid.IntRange(0, 4).Draw(t, "local volumes")
		for i := range volumes {
			s.put(s.offer(fmt.Sprint("local", i), 1+i%2, "local", fmt.Sprint("n", rapid.IntRange(0, hosts-1).Draw(t, "host"))))
		}
		local, made := rapid.IntRange(0, 4).Draw(t, "pods with local volumes"), rapid.IntRange(0, 3).Draw(t, "pods with made volumes")
		for i := range local {
			s.arrive(fmt.Sprint("l", i), "local")
		}
		for i := range made {
			s.arrive(fmt.Sprint("m", i), "made")
		}
		for range rapid.IntRange(0, 150).Draw(t, "steps") {
			s.step(rapid.IntRange(0, 6).Draw(t, "kind"), rapid.IntRange(0, 3).Draw(t, "mood") == 0)
		}
		s.calmDown()
		if want := min(volumes, local) + made; len(s.bound) != want {
			t.Fatalf("%d of %d pods are bound, want %d: %v", len(s.bound), local+made, want, s.bound)
		}
		for i := range max(0, local-volumes) {
			s.put(s.offer(fmt.Sprint("more", i), 1, "local", "n0"))
		}
		s.calmDown()
		if len(s.bound) != local+made {
			t.Fatalf("with enough volumes %d of %d pods are bound: %v", len(s.bound), local+made, s.bound)
		}
	})
}
