// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"runtime"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/cache"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
)

// ordinaryPod is a pod of a deployment as a cluster has them: labels, a token volume, tolerations, status.
func ordinaryPod(i int, nodeName string) *v1.Pod {
	app := fmt.Sprint("app-", i%100)
	owner := true
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprint("team-", i%20), Name: fmt.Sprintf("%s-7d4b9c6f5d-%05d", app, i), UID: uuid.NewUUID(),
			ResourceVersion: fmt.Sprint(1_000_000 + i), Generation: 1,
			Labels:          map[string]string{"app": app, "pod-template-hash": "7d4b9c6f5d"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: app, UID: types.UID(app), Controller: &owner}},
		},
		Spec: v1.PodSpec{
			NodeName: nodeName, SchedulerName: v1.DefaultSchedulerName, ServiceAccountName: "default",
			Containers: []v1.Container{{
				Name: "main", Image: "registry.example/team/app:v1.2.3",
				Env: []v1.EnvVar{{Name: "A", Value: "b"}, {Name: "C", Value: "d"}},
				Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
					v1.ResourceCPU: apiresource.MustParse("250m"), v1.ResourceMemory: apiresource.MustParse("512Mi"),
				}},
			}},
			Tolerations: []v1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute},
				{Key: "node.kubernetes.io/unreachable", Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute},
			},
		},
		Status: v1.PodStatus{Phase: v1.PodRunning, PodIP: "10.1.2.3", StartTime: &metav1.Time{},
			Conditions: []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue}, {Type: v1.PodReady, Status: v1.ConditionTrue}}},
	}
}

// wire sends a pod through its encoding, so that no string is shared with another pod, as after a watch.
func wire(b testing.TB, p *v1.Pod) *v1.Pod {
	raw, err := p.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	out := &v1.Pod{}
	if err := out.Unmarshal(raw); err != nil {
		b.Fatal(err)
	}
	return out
}

// BenchmarkBoundPodMemory reports the bytes that the inbox keeps for a bound pod, whether the engine has taken it or
// not: record, names, UID and its row. What the engine keeps is not counted. The goal is 500.
func BenchmarkBoundPodMemory(b *testing.B) {
	const pods, nodes = 50_000, 1000
	for b.Loop() {
		in, store, nodeStore := newTestInbox(b)
		for i := range nodes {
			nodeStore.Add(kubetest.Node(fmt.Sprintf("node-%04d.zone-a.example.internal", i)))
		}
		store.Replace(nil, "1")
		nodeStore.Replace(nodeObjects(nodes), "1")
		in.Take(nil, nodes)
		before := heap()
		for i := range pods {
			store.Add(wire(b, ordinaryPod(i, fmt.Sprintf("node-%04d.zone-a.example.internal", i%nodes))))
		}
		for taken := 1; taken > 0; {
			_, taken = in.Take(nil, 512)
		}
		in.queue = nil
		b.ReportMetric(float64(heap()-before)/pods, "B/pod")
		runtime.KeepAlive(in)
	}
}

func nodeObjects(n int) []any {
	objs := make([]any, n)
	for i := range objs {
		objs[i] = kubetest.Node(fmt.Sprintf("node-%04d.zone-a.example.internal", i))
	}
	return objs
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkPodIntake is one watch event of a pod: conversion, coalescing, and the loop's take.
func BenchmarkPodIntake(b *testing.B) {
	for _, c := range []struct {
		name   string
		change func(p *v1.Pod, i int)
	}{
		{"bound", func(p *v1.Pod, i int) { p.UID = types.UID(fmt.Sprint(i)) }},
		{"status", func(p *v1.Pod, i int) { p.ResourceVersion = fmt.Sprint(i) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			in, store, nodeStore := newTestInbox(b)
			store.Replace(nil, "1")
			nodeStore.Replace(nil, "1")
			pods := make([]*v1.Pod, 256)
			for i := range pods {
				pods[i] = ordinaryPod(i, "node")
			}
			var events []engine.Event
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				p := pods[i%len(pods)]
				c.change(p, i)
				store.Update(p)
				events, _ = in.Take(events[:0], 512)
			}
		})
	}
}

// BenchmarkNodeIntake is one watch event of a node: a heartbeat that changes nothing, and a change of labels.
func BenchmarkNodeIntake(b *testing.B) {
	for _, c := range []struct {
		name   string
		change func(n *v1.Node, i int)
	}{
		{"heartbeat", func(n *v1.Node, i int) { n.ResourceVersion = fmt.Sprint(i) }},
		{"labels", func(n *v1.Node, i int) { n.Labels = map[string]string{"version": fmt.Sprint(i)} }},
	} {
		b.Run(c.name, func(b *testing.B) {
			in, store, nodeStore := newTestInbox(b)
			store.Replace(nil, "1")
			nodeStore.Replace(nil, "1")
			n := kubetest.Node("node")
			n.Labels = map[string]string{"kubernetes.io/hostname": "node", "topology.kubernetes.io/zone": "a", "kubernetes.io/arch": "amd64"}
			for i := range 20 {
				n.Status.Images = append(n.Status.Images, v1.ContainerImage{Names: []string{fmt.Sprint("image:", i)}, SizeBytes: 1})
			}
			var events []engine.Event
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c.change(n, i)
				nodeStore.Update(n)
				events, _ = in.Take(events[:0], 512)
			}
		})
	}
}

// BenchmarkAfterLists measures the work between the last event of the lists of 150,000 bound pods and 5,000 nodes and
// the first decision: the lists are entered, sorted, and passed to an engine.
func BenchmarkAfterLists(b *testing.B) {
	const pods, nodes = 150_000, 5000
	for b.Loop() {
		b.StopTimer()
		in, store, nodeStore := newTestInbox(b)
		list := cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.WithTransformer(store.Transformer()))
		for i := range pods {
			list.Add(wire(b, ordinaryPod(i, fmt.Sprintf("node-%04d.zone-a.example.internal", i%nodes))))
		}
		e := engine.New(engine.Config{Seed: 1, Profiles: []engine.Profile{engine.DefaultProfile(v1.DefaultSchedulerName)}, Less: basic.PrioritySort{}})
		nodeStore.Replace(nodeObjects(nodes), "1")
		b.StartTimer()
		store.Replace(list.List(), "1")
		for events, taken := []engine.Event(nil), 1; taken > 0; {
			events, taken = in.Take(events[:0], 512)
			for _, ev := range events {
				e.Step(ev)
			}
		}
	}
}
