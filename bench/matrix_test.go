// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

// Catches: a run without a scheduler that waits for scheduled pods, or that leaves out operations that create
// objects.
func TestCreateOnlyDoesNotWaitForBinds(t *testing.T) {
	p := workload.Plan{Ops: []workload.Op{&workload.CreateNodes{}, &workload.CreatePods{Count: 3, Steady: time.Second}, &workload.Barrier{},
		&workload.CreatePodSets{Pods: workload.CreatePods{Count: 2}}, &workload.WaitForPodGroups{}, &workload.Sleep{}, &workload.DeletePods{}}}
	var codes []string
	for _, op := range withoutScheduler(p).Ops {
		codes = append(codes, op.Opcode())
		switch op := op.(type) {
		case *workload.CreatePods:
			if !op.SkipWait || op.Steady != 0 || op.Count != 3 {
				t.Errorf("it creates pods as %+v", op)
			}
		case *workload.CreatePodSets:
			if !op.Pods.SkipWait {
				t.Error("it waits for a set of pods")
			}
		}
	}
	if want := []string{"createNodes", "createPods", "createPodSets", "deletePods"}; !slices.Equal(codes, want) {
		t.Errorf("it runs %v, want %v", codes, want)
	}
	if create := p.Ops[1].(*workload.CreatePods); create.SkipWait || create.Steady == 0 {
		t.Error("the plan that schedulers run was changed")
	}
}

// Catches: a filter by name that matches the case alone, labels that do not have to hold all, no word about a filter that lets
// nothing pass, and two sources of which one is ignored.
func TestWorkloadsThatAreAskedFor(t *testing.T) {
	file := filepath.Join(t.TempDir(), "w.yaml")
	const text = `- name: A
  labels: [all]
  workloadTemplate: [{opcode: createPods, countParam: $pods, collectMetrics: true}]
  workloads:
  - {name: small, labels: [short], params: {pods: 1}}
  - {name: large, labels: [performance], params: {pods: 9}}
- name: B
  workloadTemplate: [{opcode: createPods, count: 2, collectMetrics: true}]
  workloads: [{name: small, labels: [short]}]
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		f    fileFlags
		want []string
		err  string
	}{
		{fileFlags{file: file}, []string{"A/small", "A/large", "B/small"}, ""},
		{fileFlags{file: file, match: "A/s"}, []string{"A/small"}, ""},
		{fileFlags{file: file, labels: "all,short"}, []string{"A/small"}, ""},
		{fileFlags{file: file, labels: "all,-short"}, []string{"A/large"}, ""},
		{fileFlags{file: file, match: "C"}, nil, "there are A/small, A/large, B/small"},
		{fileFlags{match: "^(basic|gangs)/small$"}, []string{"basic/small", "gangs/small"}, ""},
		{fileFlags{match: "no such"}, nil, "and so on"},
		{fileFlags{file: file, name: "basic"}, nil, "give one of them"},
		{fileFlags{file: file, match: "("}, nil, "--match"},
		{fileFlags{name: "basic", match: "/small"}, []string{"basic/small"}, ""},
		{fileFlags{name: "nothing"}, nil, "there is no workload nothing"},
	} {
		plans, err := c.f.plans()
		var got []string
		for _, p := range plans {
			got = append(got, p.Name)
		}
		if !slices.Equal(got, c.want) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v gives %v, %v, want %v, %q", c.f, got, err, c.want, c.err)
		}
	}
}
