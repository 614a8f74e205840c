// SPDX-License-Identifier: Apache-2.0

package question_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/question"
	"github.com/kumiki-scheduler/kumiki/record"
)

// newEngine returns an engine with one profile that evicts, at second 1.
func newEngine() (*engine.Engine, *convert.Intake) {
	prof := engine.DefaultProfile(v1.DefaultSchedulerName)
	prof.Preemption = &preempt.Config{}
	e := engine.New(engine.Config{
		Seed: 7, Profiles: []engine.Profile{prof}, Less: basic.PrioritySort{}, UnschedulableTimeout: 300 * record.Second,
	})
	e.Step(engine.Tick{Now: record.Second})
	return e, convert.NewIntake()
}

func newNode(name, cpu string) *v1.Node {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}}}
	node.Status.Allocatable = v1.ResourceList{
		v1.ResourceCPU: apiresource.MustParse(cpu), v1.ResourceMemory: apiresource.MustParse("256Gi"),
		v1.ResourcePods: apiresource.MustParse("110"),
	}
	return node
}

// newPod returns a pod that requests 100m of CPU, bound to a node unless it is empty.
func newPod(name, node string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name)}}
	p.Spec.SchedulerName, p.Spec.NodeName = v1.DefaultSchedulerName, node
	p.Spec.Containers = []v1.Container{{Name: "c", Image: "pause", Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{
			v1.ResourceCPU: apiresource.MustParse("100m"), v1.ResourceMemory: apiresource.MustParse("500Mi"),
		},
	}}}
	return p
}

// TestJudgeOfUnknownPods: pods that are not known or that no profile schedules are not judged, and no pod fits on a
// node that is not known.
func TestJudgeOfUnknownPods(t *testing.T) {
	e, in := newEngine()
	e.Step(engine.NodeSet{Node: in.Node(newNode("n1", "4"))})
	e.Step(engine.Synced{})
	other := newPod("other", "n1")
	other.Spec.SchedulerName = "another"
	e.Step(engine.PodSet{Pod: in.Pod(other)})
	e.Step(engine.PodSet{Pod: in.Pod(newPod("waits", ""))})
	inspector := question.New(e.View())
	for _, uid := range []cluster.UID{"unknown", "uid-other"} {
		if j, known := inspector.CompareBind(uid, "n1"); known {
			t.Errorf("pod %s is judged: %+v", uid, j)
		}
	}
	j, known := inspector.CompareBind("uid-waits", "n9")
	if !known || j.Match != record.Rejected || j.Feasible != 1 || j.Ours == nil {
		t.Errorf("on a node that is not known: %+v", j)
	}
	if fit, victims := inspector.Fit("unknown"); fit != nil || victims != nil {
		t.Errorf("an unknown pod fits: %+v %+v", fit, victims)
	}
}

// TestConditions: conditions are read in the forms that ConditionForms lists, and an error names the form that is
// wanted.
func TestConditions(t *testing.T) {
	for text, want := range map[string]string{
		"delete pod/web":              "",
		"Delete po web":               "",
		"delete pg/train":             "",
		"drain n1":                    "",
		"uncordon nodes/n1":           "",
		"add-nodes 3 like node/n1":    "",
		"add-nodes 0 like node/n1":    `the count must be a number from 1 to 5000, got "0"`,
		"add-nodes 3 as node/n1":      "want add-nodes COUNT like node/NAME",
		"drain pod/web":               "want drain node/NAME",
		"delete node/default/n1":      "want delete pod/NAME, delete gang/NAME, delete node/NAME",
		"delete pod/":                 "want delete pod/NAME, delete gang/NAME, delete node/NAME",
		"restart pod/web":             "want one of: " + strings.Join(question.ConditionForms, "; "),
		strings.Repeat("delete ", 99): "want delete pod/NAME, delete gang/NAME, delete node/NAME",
	} { // order: each is checked alone
		err := question.CheckConditions([]string{text})
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", text, err)
		case want != "" && (err == nil || !strings.HasSuffix(err.Error(), want)):
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if err := question.CheckConditions(make([]string, question.MaxConditions+1)); err == nil {
		t.Error("too many conditions are accepted")
	}
}

// BenchmarkWhatIf is what a question costs the scheduling loop, which waits for it: 5,000 nodes, 10 pods on each.
func BenchmarkWhatIf(b *testing.B) {
	e, in := newEngine()
	for i := range 5000 {
		name := fmt.Sprintf("node-%05d", i)
		e.Step(engine.NodeSet{Node: in.Node(newNode(name, "1"))})
		for k := range 10 {
			p := newPod(fmt.Sprintf("pod-%d", 10*i+k), name)
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "rs", Controller: new(true)}}
			e.Step(engine.PodSet{Pod: in.Pod(p)})
		}
	}
	waits := newPod("waits", "")
	waits.Spec.Priority = new(int32(10))
	e.Step(engine.PodSet{Pod: in.Pod(waits)})
	e.Step(engine.Synced{})
	inspector := question.New(e.View())
	drains := make([]string, question.MaxConditions)
	for i := range drains {
		drains[i] = fmt.Sprintf("drain node-%05d", i)
	}
	for _, bm := range []struct {
		name       string
		conditions []string
	}{
		{"nothing", nil},
		{"delete-pod", []string{"delete pod/pod-7"}},
		{"drain", drains[1:2]},
		{"drain-32", drains},
		{"add-nodes-5000", []string{"add-nodes 5000 like node-00001"}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			for range b.N {
				if _, err := inspector.WhatIfPod(waits.Namespace, waits.Name, bm.conditions); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("why", func(b *testing.B) {
		for range b.N {
			inspector.ExplainPod(waits.Namespace, waits.Name)
		}
	})
}

// TestGangListHasEveryGang: a gang whose pods wait, one whose pods are bound, and one of which some are; each once, by
// name. A gang that is bound in part counts as such. Fault: gangs of which no pod waits are left out.
func TestGangListHasEveryGang(t *testing.T) {
	e, in := newEngine()
	in.DeclareGangs(convert.GangRules{Annotation: true})
	e.Step(engine.NodeSet{Node: in.Node(newNode("n1", "4"))})
	e.Step(engine.Synced{})
	add := func(gang, name, node string) {
		p := newPod(name, node)
		p.Annotations = map[string]string{"pod_group": gang, "pod_group_size": "2"}
		e.Step(engine.PodSet{Pod: in.Pod(p)})
	}
	add("waits", "waits-0", "")
	add("runs", "runs-0", "n1")
	add("runs", "runs-1", "n1")
	add("part", "part-0", "n1")
	add("part", "part-1", "")
	list := question.New(e.View()).GangList()
	var got []string
	for _, g := range list.Gangs {
		first := "-"
		if g.Pod != nil {
			first = g.Pod.Name
		}
		got = append(got, fmt.Sprintf("%s %s %d of %d bound, %d waiting from %s, %d missing, %s", g.Name, g.Source,
			g.Bound, g.Quorum, g.Waiting, first, g.Missing, g.Where))
	}
	want := []string{
		"default/part annotation 1 of 2 bound, 1 waiting from part-1, 0 missing, active",
		"default/runs annotation 2 of 2 bound, 0 waiting from -, 0 missing, gone",
		"default/waits annotation 0 of 2 bound, 1 waiting from waits-0, 1 missing, gated",
	}
	if !slices.Equal(got, want) {
		t.Errorf("gangs:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if c := list.Counts; c.Gangs != 3 || c.Waiting != 2 || c.Partial != 1 {
		t.Errorf("counts %+v", c)
	}
}
