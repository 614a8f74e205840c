// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

func benchNode(i int) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("worker-%05d.example.internal", i), UID: uid(1, i),
		Labels: map[string]string{"topology.kubernetes.io/zone": fmt.Sprintf("z%d", i%3),
			"kubernetes.io/hostname": fmt.Sprintf("worker-%05d.example.internal", i), "kubernetes.io/arch": "amd64"}}}
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("64"),
		v1.ResourceMemory: apiresource.MustParse("256Gi"), v1.ResourcePods: apiresource.MustParse("250")}
	for k := range 30 {
		n.Status.Images = append(n.Status.Images, v1.ContainerImage{SizeBytes: int64(k) << 20,
			Names: []string{fmt.Sprintf("registry.example/app-%d:1.%d", (i+k)%200, k)}})
	}
	return n
}

func uid(kind, i int) types.UID {
	return types.UID(fmt.Sprintf("%08x-1c1f-4b6e-9f3a-%012x", kind, i*2654435761))
}

// benchPod is a pod of one of 50 workloads; those of every fifth have a label of their own, as in a StatefulSet.
func benchPod(i int) *v1.Pod {
	w := i % 50
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("team-%d", w%8), UID: uid(2, i),
		Name:              fmt.Sprintf("workload-%d-7c9d8f6b5-%05x", w, i),
		ResourceVersion:   fmt.Sprint(100_000_000 + i),
		CreationTimestamp: metav1.Unix(1764000000+int64(i/100), 0),
		Labels:            map[string]string{"app": fmt.Sprintf("workload-%d", w), "pod-template-hash": "7c9d8f6b5"}}}
	controller := true
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", UID: uid(3, w),
		Name: fmt.Sprintf("workload-%d-7c9d8f6b5", w), Controller: &controller}}
	if w%5 == 0 {
		p.Labels["statefulset.kubernetes.io/pod-name"] = p.Name
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 1, WhenUnsatisfiable: v1.ScheduleAnyway,
			TopologyKey:   "topology.kubernetes.io/zone",
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": p.Labels["app"]}}}}
	}
	p.Spec.SchedulerName = "default-scheduler"
	p.Spec.Containers = []v1.Container{{Name: "c", Image: fmt.Sprintf("registry.example/app-%d:1.0", w),
		Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
			v1.ResourceCPU:    *apiresource.NewMilliQuantity(int64(100+10*w), apiresource.DecimalSI),
			v1.ResourceMemory: apiresource.MustParse("500Mi")}}}}
	return p
}

// benchPodLife takes a pod through its life: decided, observed, gone.
func benchPodLife(a *arbiter, i int) {
	if a.store.Snapshot().Nodes() < 20 {
		a.store.SetNode(a.in.Node(benchNode(a.store.Snapshot().Nodes())))
	}
	p := a.in.Pod(benchPod(i))
	s := a.store
	n := cluster.NodeIdx(i % s.Snapshot().Rows())
	s.Begin()
	tr := s.Trial()
	tr.Assume(p, n)
	tr.Commit()
	s.Commit()
	bound := *p
	bound.NodeName, bound.ResourceVersion = s.Snapshot().NodeName(n), fmt.Sprint(100_000_000+i+1)
	s.SetPod(&bound)
	if i%3 > 0 {
		s.DeletePod(p.UID)
	}
}

// clusterOf is an arbiter with nodes, and pods that are bound on them.
func clusterOf(nodes, pods int) *arbiter {
	a := newArbiter()
	for i := range nodes {
		a.store.SetNode(a.in.Node(benchNode(i)))
	}
	for i := range pods {
		p := *a.in.Pod(benchPod(i))
		p.NodeName = a.store.Snapshot().NodeName(cluster.NodeIdx(i % nodes))
		a.store.SetPod(&p)
	}
	for _, ch := range a.store.TakeChanges() {
		a.log.Append(Of(ch))
	}
	a.window.Add(a.log.Frames()...)
	return a
}

// BenchmarkFollower is a follower's time for an entry at 5,000 nodes: of three pods each is decided and observed, and
// two end. BenchmarkWriter is the arbiter's time for the same entries, once for all followers.
func BenchmarkFollower(b *testing.B) {
	a, frames, size, entries := benchLog(b)
	f, err := Load(a)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for _, frame := range frames {
		if err := f.Apply(frame.Bytes); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(size)/float64(entries), "B/entry")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(entries), "ns/entry")
}

func BenchmarkWriter(b *testing.B) {
	a := clusterOf(5000, 0)
	for i := range b.N {
		benchPodLife(a, i)
	}
	list := a.store.TakeChanges()
	b.ReportAllocs()
	b.ResetTimer()
	for _, ch := range list {
		a.log.Append(Of(ch))
	}
	a.log.Frames()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(len(list)), "ns/entry")
}

// benchLog is a snapshot and the frames that follow it, of b.N pods.
func benchLog(b *testing.B) (snapshot []byte, frames []Frame, size, entries int) {
	a := clusterOf(5000, 0)
	snapshot = a.log.Snapshot(a.store)
	first := a.log.Last
	for i := range b.N {
		benchPodLife(a, i)
	}
	for _, ch := range a.store.TakeChanges() {
		a.log.Append(Of(ch))
	}
	frames = a.log.Frames()
	for _, f := range frames {
		size += len(f.Bytes)
	}
	return snapshot, frames, size, int(a.log.Last - first)
}

// BenchmarkJoin is a snapshot of 5,000 nodes and 150,000 pods, from the arbiter's store to a follower's.
func BenchmarkJoin(b *testing.B) {
	a := clusterOf(5000, 150_000)
	var raw []byte
	b.Run("snapshot", func(b *testing.B) {
		for b.Loop() {
			raw = a.log.Snapshot(a.store)
		}
		b.ReportMetric(float64(len(raw))/1e6, "MB")
	})
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			if _, err := Load(raw); err != nil {
				b.Fatal(err)
			}
		}
	})
}
