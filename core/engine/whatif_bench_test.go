// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// BenchmarkWhatIf is what a question costs the scheduling loop, which waits for it: 5,000 nodes, 10 pods on each.
func BenchmarkWhatIf(b *testing.B) {
	prof := engine.DefaultProfile("default-scheduler")
	prof.Preemption = &preempt.Config{}
	e := engine.New(engine.Config{Seed: 7, Profiles: []engine.Profile{prof}, Less: basic.PrioritySort{}, UnschedulableTimeout: 300 * record.Second})
	in := cluster.NewIntake()
	e.Step(engine.Tick{Now: record.Second})
	yes := true
	for i := range 5000 {
		name := fmt.Sprintf("node-%05d", i)
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}}}
		node.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("1"), v1.ResourceMemory: apiresource.MustParse("256Gi"), v1.ResourcePods: apiresource.MustParse("110")}
		e.Step(engine.NodeSet{Node: in.Node(node)})
		for k := range 10 {
			p := benchPod(10*i+k, 0)
			p.Spec.NodeName = name
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "rs", Controller: &yes}}
			e.Step(engine.PodSet{Pod: in.Pod(p)})
		}
	}
	waits := benchPod(1_000_000, 0)
	waits.Spec.Priority = new(int32)
	*waits.Spec.Priority = 10
	e.Step(engine.PodSet{Pod: in.Pod(waits)})
	e.Step(engine.Synced{})
	drains := make([]string, 32)
	for i := range drains {
		drains[i] = fmt.Sprintf("drain node-%05d", i)
	}
	for _, bm := range []struct {
		name       string
		conditions []string
	}{
		{"nothing", nil},
		{"delete-pod", []string{"delete pod/" + benchPod(7, 0).Name}},
		{"drain", []string{"drain node-00001"}},
		{"drain-32", drains},
		{"add-nodes-5000", []string{"add-nodes 5000 like node-00001"}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			for range b.N {
				if _, err := inspect(e).WhatIfPod(waits.Namespace, waits.Name, bm.conditions); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("why", func(b *testing.B) {
		for range b.N {
			inspect(e).ExplainPod(waits.Namespace, waits.Name)
		}
	})
}
