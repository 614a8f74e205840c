// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// calm runs events and fails on anything that had to be contained.
func calm(t *testing.T, e *engine.Engine, evs ...engine.Event) {
	t.Helper()
	for _, ev := range evs {
		for _, f := range e.Step(ev) {
			if trouble, ok := f.(engine.Trouble); ok {
				t.Fatalf("%T: %s: %s", ev, trouble.What, trouble.Details)
			}
		}
	}
}

// bystander is a node and a pod that must be placed on it whatever comes before.
func bystander(in *convert.Intake) (engine.Event, engine.Event) {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bystander"}}
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("1"), v1.ResourcePods: apiresource.MustParse("5")}
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bystander", Namespace: "default", UID: "bystander"}}
	p.Spec.SchedulerName = "default-scheduler"
	p.Spec.NodeSelector = nil
	p.Spec.Affinity = nil
	priority := int32(2_000_000_000)
	p.Spec.Priority = &priority
	return engine.NodeSet{Node: in.Node(n)}, engine.PodSet{Pod: in.Pod(p)}
}

// FuzzPodIntake: whatever pod the API server could hold, the engine takes it in, tries it, explains it and lets it go
// again, no handling panics, and its neighbour is placed.
func FuzzPodIntake(f *testing.F) {
	for _, p := range []*v1.Pod{
		{}, {Spec: v1.PodSpec{Containers: []v1.Container{{}}, SchedulerName: "default-scheduler"}},
		{Spec: v1.PodSpec{SchedulerName: "default-scheduler", Affinity: &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "In"}}}}}}}}},
	} {
		raw, err := p.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, true)
	}
	f.Fuzz(func(t *testing.T, raw []byte, pending bool) {
		p := &v1.Pod{}
		if p.Unmarshal(raw) != nil || p.UID == "bystander" {
			return
		}
		if pending {
			p.Spec.NodeName, p.Spec.SchedulerName = "", "default-scheduler"
		}
		e, in := freshEngine(), convert.NewIntake()
		node, neighbour := bystander(in)
		rec := in.Pod(p)
		calm(t, e, engine.Tick{Now: record.Second}, node, engine.Synced{}, engine.PodSet{Pod: rec}, engine.Cycle{})
		inspect(e).ExplainPod(p.Namespace, p.Name)
		calm(t, e, engine.PodGone{Pod: rec.Ref()}, neighbour, engine.Cycle{})
		if _, _, _, ok := e.Snapshot().PodOn("bystander"); !ok {
			t.Error("the neighbour was not placed")
		}
	})
}

// FuzzNodeIntake: the same for nodes.
func FuzzNodeIntake(f *testing.F) {
	raw, err := (&v1.Node{Status: v1.NodeStatus{Images: []v1.ContainerImage{{}}}}).Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		n := &v1.Node{}
		if n.Unmarshal(raw) != nil || n.Name == "bystander" {
			return
		}
		e, in := freshEngine(), convert.NewIntake()
		node, neighbour := bystander(in)
		calm(t, e, engine.Tick{Now: record.Second}, node, engine.NodeSet{Node: in.Node(n)}, engine.Synced{}, neighbour, engine.Cycle{})
		inspect(e).ExplainNode(n.Name)
		if _, _, _, ok := e.Snapshot().PodOn("bystander"); !ok {
			t.Error("the neighbour was not placed")
		}
		calm(t, e, engine.NodeGone{Name: n.Name})
	})
}
