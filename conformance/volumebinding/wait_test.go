// SPDX-License-Identifier: Apache-2.0

package volumebinding

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"

	"github.com/kumiki-scheduler/kumiki/conformance/sampling"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

func TestMain(m *testing.M) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// api is the API server that upstream writes to: every write is accepted, and makes version 11 unless it changes
// nothing.
type api struct {
	*world
	kubernetes.Interface
	corev1.CoreV1Interface
	// volumes and claims are what was written, by name.
	volumes map[string]*v1.PersistentVolume
	claims  map[string]*v1.PersistentVolumeClaim
	// left is how many writes are to come; after the last, done is called.
	left int
	done func()
}

func (a *api) CoreV1() corev1.CoreV1Interface { return a }

func (a *api) PersistentVolumes() corev1.PersistentVolumeInterface { return volumesOf{a: a} }

func (a *api) PersistentVolumeClaims(string) corev1.PersistentVolumeClaimInterface {
	return claimsIn{a: a}
}

type volumesOf struct {
	corev1.PersistentVolumeInterface
	a *api
}

func (v volumesOf) Update(_ context.Context, pv *v1.PersistentVolume, _ metav1.UpdateOptions) (*v1.PersistentVolume, error) {
	is := pv.DeepCopy()
	is.ResourceVersion = v.a.version(pv)
	v.a.volumes[is.Name] = is
	v.a.wrote()
	return is, nil
}

type claimsIn struct {
	corev1.PersistentVolumeClaimInterface
	a *api
}

func (c claimsIn) Update(_ context.Context, claim *v1.PersistentVolumeClaim, _ metav1.UpdateOptions) (*v1.PersistentVolumeClaim, error) {
	is := claim.DeepCopy()
	is.ResourceVersion = c.a.version(claim)
	c.a.claims[is.Name] = is
	c.a.wrote()
	return is, nil
}

// version is that of an object once it has been written.
func (a *api) version(obj scenario.APIObject) string {
	ref := scenario.ObjectRef{Kind: scenario.KindOf(obj), Namespace: obj.GetNamespace(), Name: obj.GetName()}
	if was, _ := a.h.objects.Get(ref); equality.Semantic.DeepEqual(was, obj) {
		return obj.GetResourceVersion()
	}
	return "11"
}

func (a *api) wrote() {
	if a.left--; a.left == 0 {
		a.done()
	}
}

// looks is an informer of nodes that tells when upstream looks at one for the second time: then its first look came to
// nothing.
type looks struct {
	coreinformers.NodeInformer
	n      int
	second func()
}

func (l *looks) Lister() corelisters.NodeLister { return lookedAt{l.NodeInformer.Lister(), l} }

type lookedAt struct {
	corelisters.NodeLister
	l *looks
}

func (a lookedAt) Get(name string) (*v1.Node, error) {
	if a.l.n++; a.l.n == 2 {
		a.l.second()
	}
	return a.NodeLister.Get(name)
}

// What is written, and what comes of the wait for it once the cluster has gone on, is as upstream has it. Upstream
// looks once a second, so the cases wait side by side.
func TestWaitsLikeUpstream(t *testing.T) {
	seed, waits := sampling.SeedOr(t, defaultSeed)+2, min(sampling.Cases(t, 6000), 20_000)
	var mu sync.Mutex
	seen := map[string]int{}
	var side sync.WaitGroup
	for i := range waits {
		w, hold, p := reserved(t, seed, uint64(i))
		if hold == nil {
			continue
		}
		side.Go(func() {
			up, ours := w.wait(t, i, hold, p)
			if up != ours {
				t.Errorf("case %d of seed %d: upstream %q, kumiki %q", i, seed, up, ours)
			}
			mu.Lock()
			defer mu.Unlock()
			seen[firstWords(up)]++
		})
	}
	side.Wait()
	t.Logf("%d cases of seed %d:\n%s", waits, seed, tally(seen))
	for _, must := range []string{"ready", "not yet", "binding volumes: pv ", "binding volumes: ClaimRef got reset for pv ", "binding volumes: provisioning failed for PVC ",
		"binding volumes: failed to get node ", "binding volumes: failed to check binding: persistentvolumes ", "binding volumes: failed to check provisioning pvc: persistentvolumeclaims ",
		"binding volumes: selectedNode annotation reset for PVC "} {
		if seen[must] < 10 {
			t.Errorf("%q happened %d times: the cases say too little", must, seen[must])
		}
	}
}

// reserved is a world in which a pod has reserved a node on both sides; hold is nil if none came about.
func reserved(t *testing.T, seed, i uint64) (w *world, hold plugin.Reservation, p *v1.Pod) {
	w = newWorld(t, maker{rand.New(rand.NewPCG(seed, i))}, nil)
	p = w.m.pod("pending")
	for _, c := range w.m.claimsOf(p) {
		w.set(c)
	}
	_, fits := w.sameWords(t, fmt.Sprintf("case %d of seed %d", i, seed), w.store.Snapshot(), p, func(string) {})
	if len(fits) == 0 {
		return w, nil, p
	}
	p.Spec.NodeName = one(w.m, fits...)
	w.h.objects.Set(p)
	return w, w.reserve(t, p, p.Spec.NodeName), p
}

// wait lets both sides write, changes the cluster, and asks both what they wait for.
func (w *world) wait(t *testing.T, i int, hold plugin.Reservation, p *v1.Pod) (up, ours string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	objects, log := w.h.objects.Factory, klog.Background()
	wrote := &api{world: w, volumes: map[string]*v1.PersistentVolume{}, claims: map[string]*v1.PersistentVolumeClaim{}}
	nodes := &looks{NodeInformer: objects.Core().V1().Nodes(), second: cancel}
	binder, err := upstream.NewVolumeBinder(log, wrote, feature.Features{EnableVolumeAttributesClass: true}, objects.Core().V1().Pods(), nodes,
		objects.Storage().V1().CSINodes(), objects.Core().V1().PersistentVolumeClaims(), objects.Core().V1().PersistentVolumes(), objects.Storage().V1().StorageClasses(),
		upstream.CapacityCheck{CSIDriverInformer: objects.Storage().V1().CSIDrivers(), CSIStorageCapacityInformer: objects.Storage().V1().CSIStorageCapacities()}, time.Hour)
	if err != nil {
		t.Error(err)
		return "", ""
	}
	claims, err := binder.GetPodVolumeClaims(log, p)
	if err != nil {
		t.Error(err)
	}
	obj, _ := w.h.objects.Get(scenario.ObjectRef{Kind: "Node", Name: p.Spec.NodeName})
	found, reasons, err := binder.FindPodVolumes(log, p, claims, obj.(*v1.Node))
	if err != nil || len(reasons) > 0 {
		t.Errorf("case %d: %v, %v", i, reasons, err)
	}
	if _, err := binder.AssumePodVolumes(log, p, p.Spec.NodeName, found); err != nil {
		t.Errorf("case %d: %v", i, err)
	}
	wrote.left = len(found.StaticBindings) + len(found.DynamicProvisions)
	wrote.done = func() { w.goOn(wrote, p.Spec.NodeName) }
	err = binder.BindPodVolumes(ctx, p, found)
	w.sameWrites(t, i, hold.Writes(), wrote)
	switch {
	case err == nil:
		up = "ready"
	case errors.Is(err, context.Canceled):
		up = "not yet"
	default:
		up = err.Error()
	}
	switch r := hold.Ready(w.store.Snapshot(), 0); {
	case r.Err != nil:
		ours = r.Err.Error()
	case r.Ready:
		ours = "ready"
	default:
		ours = "not yet"
	}
	return up, ours
}

// sameWrites holds what is to be written against what upstream wrote.
func (w *world) sameWrites(t *testing.T, i int, writes []cluster.Write, wrote *api) {
	if len(writes) != len(wrote.volumes)+len(wrote.claims) {
		t.Errorf("case %d: %d writes, upstream %d", i, len(writes), len(wrote.volumes)+len(wrote.claims))
	}
	for _, write := range writes {
		switch write := write.(type) {
		case cluster.BindVolume:
			is := wrote.volumes[write.Name]
			if is == nil {
				t.Errorf("case %d: upstream does not write volume %s", i, write.Name)
				continue
			}
			want := v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: ns, Name: write.Claim.Name,
				UID: is.Spec.ClaimRef.UID, ResourceVersion: write.Claim.ResourceVersion}
			if is.Spec.ClaimRef.Kind != "" && *is.Spec.ClaimRef != want || string(is.Spec.ClaimRef.UID) != string(write.Claim.UID) {
				t.Errorf("case %d: volume %s: %+v, upstream %+v", i, write.Name, write, is.Spec.ClaimRef)
			}
			if _, marked := is.Annotations[boundByController]; write.ByController && !marked {
				t.Errorf("case %d: volume %s is marked, upstream does not mark it", i, write.Name)
			}
		case cluster.SelectNode:
			if is := wrote.claims[write.Name]; is == nil || is.Annotations[selectedNode] != write.Node {
				t.Errorf("case %d: claim %s: %+v, upstream %+v", i, write.Name, write, is)
			}
		}
	}
}

// goOn is what becomes of the objects that were written.
func (w *world) goOn(wrote *api, nodeName string) {
	m := w.m
	if m.chance(4) {
		w.h.objects.Delete(scenario.ObjectRef{Kind: "Node", Name: nodeName})
		w.store.DeleteNode(nodeName)
	} else if m.chance(8) {
		w.set(m.node(nodeName))
	}
	if m.chance(20) {
		w.set(m.handsOver(nodeName))
	}
	for _, name := range sorted(wrote.volumes) {
		pv := wrote.volumes[name].DeepCopy()
		claim := pv.Spec.ClaimRef.Name
		switch m.IntN(14) {
		case 0:
			w.remove(cluster.KindVolume, "", name)
			continue
		case 1:
			pv.Spec.ClaimRef = nil
		case 2:
			pv.Spec.ClaimRef.UID = ""
		case 3:
			pv.Spec.NodeAffinity = m.affinity()
		case 4: // what was written has not come back yet
			continue
		}
		w.set(pv)
		obj, ok := w.h.objects.Get(scenario.ObjectRef{Kind: "PersistentVolumeClaim", Namespace: ns, Name: claim})
		switch {
		case !ok:
		case m.chance(5):
			w.remove(cluster.KindClaim, ns, claim)
		case m.chance(80):
			c := obj.(*v1.PersistentVolumeClaim).DeepCopy()
			if bind(c, name); m.chance(10) {
				delete(c.Annotations, bindCompleted)
			}
			c.ResourceVersion = "12"
			w.set(c)
		}
	}
	for _, name := range sorted(wrote.claims) {
		c := wrote.claims[name].DeepCopy()
		switch m.IntN(14) {
		case 0:
			w.remove(cluster.KindClaim, ns, name)
			continue
		case 1:
			delete(c.Annotations, selectedNode)
		case 2:
			c.Annotations = nil
		case 3:
			c.Annotations[selectedNode] = one(m, nodeNames...)
		case 4: // what was written has not come back yet
			continue
		case 5, 6, 7, 8, 9, 10:
			pv := m.volume(20 + m.IntN(5))
			if bind(c, pv.Name); m.chance(50) {
				pv.Spec.NodeAffinity = nil
			}
			if m.chance(90) {
				w.set(pv)
			}
			if m.chance(10) {
				delete(c.Annotations, bindCompleted)
			}
		}
		w.set(c)
	}
}

// sorted are the names of what was written.
func sorted[T any](written map[string]T) []string { return slices.Sorted(maps.Keys(written)) }
