// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// fuse is a filter that panics while it is armed.
type fuse struct{ armed *bool }

func (fuse) Name() string { return "Fuse" }
func (f fuse) PrepareFilter(cluster.Snapshot, *cluster.Pod) plugin.FilterPlan {
	return plugin.FilterPlan{Filter: f}
}
func (fuse) Plain(cluster.Snapshot, *cluster.NodeView) plugin.Code { return plugin.Fit }
func (f fuse) Column(cluster.Snapshot, cluster.NodeIdx, cluster.NodeIdx, plugin.Tag, []plugin.Verdict) {
	if *f.armed {
		panic("blown")
	}
}
func (fuse) Reasons(plugin.Code) []string { return nil }
func (fuse) Reads() plugin.Reads          { return plugin.ReadsNode }

// TestPanicInvalidatesSharedClass: a search panics while it evaluates a node's taint. Pods of another size, whose class
// shares what is known of nodes, must still be judged by the taint. Fault: Drop forgets the class of the pod
// alone.
func TestPanicInvalidatesSharedClass(t *testing.T) {
	s, in := cluster.NewStore(), convert.NewIntake()
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: v1.NodeStatus{Allocatable: list("8", "8Gi")}}
	s.SetNode(in.Node(node))
	prof, armed := defaultProfile(t), false
	prof.Filters = append([]plugin.Filter{fuse{&armed}}, prof.Filters...)
	pl := place.New(prof, noMeter{}, 1<<20)
	asks := func(cpu string) *cluster.Pod {
		return in.Pod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: cpu}, Spec: v1.PodSpec{Containers: []v1.Container{
			{Resources: v1.ResourceRequirements{Requests: list(cpu, "1Gi")}}}}})
	}
	small, large := asks("1"), asks("2")
	find := func(p *cluster.Pod) cluster.NodeIdx {
		return pl.Place(s.Snapshot(), p, promised{}, func(int) int { return 0 }).Node
	}
	if find(small) == cluster.NoNode || find(large) == cluster.NoNode {
		t.Fatal("the pods fit nowhere")
	}
	node.Spec.Taints = []v1.Taint{{Key: "k", Effect: v1.TaintEffectNoSchedule}}
	s.SetNode(in.Node(node))
	armed = true
	func() {
		defer func() {
			if recover() == nil {
				t.Fatal("nothing panicked")
			}
			pl.Drop(small)
		}()
		find(small)
	}()
	armed = false
	if find(large) != cluster.NoNode || find(small) != cluster.NoNode {
		t.Error("a pod goes to a node with a taint that it does not tolerate")
	}
}
