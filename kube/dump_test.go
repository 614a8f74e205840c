// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2/ktesting"

	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/question"
	"github.com/kumiki-scheduler/kumiki/kube/intake"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// TestHowTwoSidesDiffer is the table of what a dump can find.
func TestHowTwoSidesDiffer(t *testing.T) {
	nodes := func(names ...string) map[string]bool {
		m := map[string]bool{} // node -> true
		for _, n := range names {
			m[n] = true
		}
		return m
	}
	for _, c := range []struct {
		name        string
		here, there holding
		want        mismatch
	}{
		{"nothing", holding{nodes("a"), map[string]string{"ns/p 1": "a"}}, holding{nodes("a"), map[string]string{"ns/p 1": "a"}}, mismatch{}},
		{"nodes", holding{nodes("a", "b"), nil}, holding{nodes("b", "c"), nil}, mismatch{missedNodes: []string{"c"}, redundantNodes: []string{"a"}}},
		{"pods", holding{nil, map[string]string{"ns/p 1": "a", "ns/q 1": ""}}, holding{nil, map[string]string{"ns/p 2": "a", "ns/q 1": ""}},
			mismatch{missedPods: []string{"ns/p 2"}, redundantPods: []string{"ns/p 1"}}},
		{"pods elsewhere", holding{nil, map[string]string{"ns/p 1": "a"}}, holding{nil, map[string]string{"ns/p 1": "b"}},
			mismatch{misplacedPods: []string{"ns/p 1: here a, API server b"}}},
		{"binds on the way, either way", holding{nil, map[string]string{"ns/p 1": "a", "ns/q 1": ""}}, holding{nil, map[string]string{"ns/p 1": "", "ns/q 1": "b"}}, mismatch{}},
	} {
		if got := differ(c.here, c.there); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	a, b := mismatch{missedPods: []string{"x", "y"}}, mismatch{missedPods: []string{"y", "z"}, missedNodes: []string{"n"}}
	if got := a.and(b); len(got.missedPods) != 1 || got.missedPods[0] != "y" || len(got.missedNodes) != 0 {
		t.Errorf("in both: %+v", got)
	}
}

// TestADumpTellsWhatIsHeldAndWhatIsWrong: the engine knows nodes a and b, a bound pod and one that waits; the API
// server has a alone, and one more pod.
func TestADumpTellsWhatIsHeldAndWhatIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eng := engine.New(engine.Config{Seed: 1, Profiles: []engine.Profile{engine.DefaultProfile(v1.DefaultSchedulerName)}, Less: basic.PrioritySort{},
			InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second})
		api := kubetest.NewAPIServer(kubetest.BoundPod("held", "1", "a"), kubetest.BoundPod("unknown", "2", "a"))
		foreign := kubetest.PendingPod("foreign", "3")
		foreign.Spec.SchedulerName = "another"
		api.Put(foreign)
		if _, err := api.CoreV1().Nodes().Create(t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		records := convert.NewIntake()
		for _, ev := range []engine.Event{engine.Tick{Now: record.Second}, engine.NodeSet{Node: records.Node(kubetest.Node("a"))}, engine.NodeSet{Node: records.Node(kubetest.Node("b"))},
			engine.PodSet{Pod: kubetest.NewRecord(kubetest.BoundPod("held", "1", "a"))}, engine.PodSet{Pod: kubetest.NewRecord(kubetest.PendingPod("waits", "4"))}, engine.Synced{}} {
			eng.Step(ev)
		}
		in := intake.NewInbox(func(object string, problem any) { t.Errorf("%s: %v", object, problem) })
		m, _ := counted()
		loop := NewLoop(LoopConfig{Engine: eng, Inbox: in, Executor: &keptEffects{}, Metrics: m})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); loop.Run(ctx) }()

		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		d := &dumper{loop, question.New(eng.View()), api, time.Second}
		if err := d.compare(ctx, logger); err != nil {
			t.Error(err)
		}
		if err := d.write(ctx, logger); err != nil {
			t.Error(err)
		}
		text := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
		for _, want := range []string{
			`Cache mismatch missedNodes=null redundantNodes=["b"]`,
			`missedPods=["ns/unknown 2"] redundantPods=["ns/waits 4"] misplacedPods=null`,
			`Dump of cached NodeInfo node="a" resources="cpu: allocatable 4000, confirmed 1000, assumed 0;`,
			`pods=["ns/held 1"]`,
			`Dump of scheduling queue active=1 inflight=0`,
			`Dump of scheduling queue pod="ns/waits" uid="4" queue="active"`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("the log lacks %s:\n%s", want, text)
			}
		}
		cancel()
		<-ended
	})
}
