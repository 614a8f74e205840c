// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kumiki-scheduler/kumiki/sim"
)

// TestProblemsHaveTheirPlace: what is wrong in a file is reported with line and column, all of it at once.
func TestProblemsHaveTheirPlace(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"until: soon", `line 1, column 8: until: "soon" is no duration`},
		{"until: -3s", `is negative`},
		{"nodes:\n- name: n\n  coutn: 3", `line 3, column 3: nodes[0]: unknown field "coutn"; known are name, count`},
		{"nodes:\n- name: n\n  name: m", `line 3, column 3: nodes[0]: field "name" is there twice`},
		{"nodes:\n- {name: n, count: many}", `line 2, column 20: nodes[0].count: "many" is no int`},
		{"nodes:\n- {name: n, capacity: {cpu: lots}}", `line 2, column 29: nodes[0].capacity.cpu: "lots" is no amount`},
		{"nodes:\n- {name: n, capacity: {cpu: -1}}", `must not be negative`},
		{"nodes:\n- {name: n}", `line 2, column 3: a group of nodes needs a capacity`},
		{"nodes:\n- {name: N, capacity: {cpu: 1}}", `needs a name of lower case letters`},
		{"workloads:\n- {name: a}\n- {name: a}", `line 3, column 3: two workloads have the name "a"`},
		{"workloads:\n- {name: a, kind: deployment}", `unknown kind "deployment"`},
		{"workloads:\n- {name: a, kind: job}", `a job needs work`},
		{"workloads:\n- {name: a, work: uniform 5s 1s}", `the second duration is the shorter one`},
		{"workloads:\n- {name: a, work: gamma 5s}", `is none of: a duration, uniform A B`},
		{"workloads:\n- {name: a, failRate: 120%}", `is no share`},
		{"workloads:\n- {name: a, spec: {contaners: []}}", `line 2, column 19: workloads[0].spec: unknown field "contaners"`},
		{"events:\n- {at: 1s}", `an event needs exactly one action, such as failNodes; has 0`},
		{"events:\n- {at: 1s, addNodes: {group: g}}", `there is no group of nodes "g"`},
		{"events:\n- {at: 1s, scale: {workload: w}}", `there is no workload "w" of kind replicaSet or statefulSet`},
		{"storage:\n- {name: s, perNode: 1}", `line 2, column 3: volumes of nodes need a size`},
		{"storage:\n- {name: s, perNode: 1, size: 1Gi, immediate: true}", `they are bound late`},
		{"storage:\n- {name: s, size: 1Gi}", `size and labels are for volumes of nodes`},
		{"storage:\n- {name: s, perNode: 1, size: -1Gi}", `storage[0].size: "-1Gi" is no amount: must not be negative`},
		{"storage:\n- {name: s}\n- {name: s}", `two classes of storage have the name "s"`},
		{"workloads:\n- {name: a, claims: [{name: c, class: s, size: 1Gi}]}", `there is no class of storage "s"`},
		{"storage: [{name: s}]\nworkloads:\n- {name: a, claims: [{name: c, class: s}]}", `a claim needs a size`},
		{"workloads:\n- {name: a, parallel: true}", `parallel is for kind statefulSet`},
		{"budgets:\n- {name: b}", `a budget needs a name, labels, and one of`},
		{"seeds: 9-1", `is no list of seeds`},
		{"assertions: [pods]", `is no assertion`},
		{"traces:\n- {}", `line 2, column 3: a trace is one of csv and heavyTail`},
		{"traces:\n- csv: {file: f}", `needs a file and a column for arrival`},
		{"traces:\n- csv: {file: f, columns: {arrival: a, work: w, end: e}}", `a column for either work or end`},
		{"traces:\n- csv: {file: f, columns: {arrival: a, work: w}}", `a column for at least one resource`},
		{"traces:\n- csv: {columns: {requests: {cpu: [1]}}}", `line 2, column 35: traces[0].csv.columns.requests.cpu`},
		{"traces:\n- heavyTail: {pods: 0}", `pods must be from 1 to`},
		{"traces:\n- heavyTail: {pods: 1, cpu: uniform 1 2}", `line 2, column 29: traces[0].heavyTail.cpu: "uniform 1 2" is not`},
		{"nodes: 3", `line 1, column 8: nodes: must be a list`},
		{"nodes: [", `reading YAML`},
		{"a: &x 1\nname: *x", `aliases are not supported`},
		{"name: a\n---\nname: b", `a scenario is one document`},
	} {
		_, err := Read([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
	_, err := Read([]byte("x: 1\ny: 2"))
	if err == nil || strings.Count(err.Error(), "unknown field") != 2 {
		t.Errorf("two problems: %v", err)
	}
}

func TestDurationForms(t *testing.T) {
	for text, want := range map[string]sim.Durations{ // order: each by itself
		"90s":                    sim.Always(90 * time.Second),
		"uniform 1s 3s":          {Shape: sim.Uniform, A: time.Second, B: 3 * time.Second},
		"exponential 10s":        {Shape: sim.Exponential, A: 10 * time.Second},
		"exponential 10s max 1m": {Shape: sim.Exponential, A: 10 * time.Second, B: time.Minute},
		"pareto 1m 1.5 max 24h":  {Shape: sim.Pareto, A: time.Minute, Alpha: 1.5, B: 24 * time.Hour},
		"quantiles 0s 1s 1s 1s 1s 1s 1s 1s 2s": {Shape: sim.Quantiles, Steps: [9]time.Duration{0, time.Second, time.Second,
			time.Second, time.Second, time.Second, time.Second, time.Second, 2 * time.Second}},
	} {
		if got, err := durations(text); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "uniform 1s", "exponential", "pareto 1s x", "pareto 1s 0", "uniform 1s 2s max 3s", "1s 2s",
		"quantiles 1s 2s", "quantiles 0s 1s 1s 3s 1s 1s 1s 1s 2s", "quantiles 0s 1s 1s x 1s 1s 1s 1s 2s"} {
		if got, err := durations(text); err == nil {
			t.Errorf("%q is %v, want an error", text, got)
		}
	}
}

func TestSeeds(t *testing.T) {
	for text, want := range map[string][]uint64{"": {1}, "7": {7}, "42-44": {42, 43, 44}, "1,3-4": {1, 3, 4}} { // order: each by itself
		if got, err := Seeds(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"x", "3-1", "1-", "-1", "1-9999999999"} {
		if got, err := Seeds(text); err == nil {
			t.Errorf("%q is %v, want an error", text, got)
		}
	}
}

// TestAssertions: operators, percent, durations, two metrics, a metric without a value, and a misspelled one.
func TestAssertions(t *testing.T) {
	number := func(v float64) *float64 { return &v }
	r := &sim.Result{Metrics: []sim.Metric{{Name: "a", Value: number(2)}, {Name: "b/c.d", Value: number(0.5)}, {Name: "none"}}}
	for text, holds := range map[string]bool{ // order: each by itself
		"a == 2": true, "a != 2": false, "a < 3s": true, "a <= 2": true, "a > 2": false, "a >= 2": true,
		"b/c.d >= 50%": true, "b/c.d<a": true, "none == 0": false, "none != 0": false, "1m > a": true,
	} {
		a, err := ParseAssertion(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := a.Check(r) == nil; got != holds {
			t.Errorf("%q holds: %v, want %v (%v)", text, got, holds, a.Check(r))
		}
	}
	a, _ := ParseAssertion("bb < 3")
	names := []string{"a", "b/c.d", "bbb"}
	if got := a.Unknown(names); len(got) != 1 || got[0] != "bb" || Closest("bb", names) != "bbb" {
		t.Errorf("unknown %v, closest %q", got, Closest("bb", names))
	}
}

const philly = `vc,arrival_s,gpus,job_type,total_steps,duration_v100_s,duration_p100_s,duration_k80_s
a,100,1,x,1,60,,
a,160,16,x,1,120,,
b,170,2,x,1,30,,
a,180,1,x,1,,,
a,190,12,x,1,10,,
a,200,1,x,1,-5,,
`

// TestReadPhilly: rows without a duration, and others that cannot be simulated, are skipped with the reason; 16 GPUs
// are a gang of two pods.
func TestReadPhilly(t *testing.T) {
	rows, err := ReadPhilly(strings.NewReader(philly), "a")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"1 rows: duration_v100_s is negative", "1 rows: gpus is neither from 1 to 8 nor a multiple of it",
		"1 rows: no duration_v100_s"}
	if got := rows.SortedSkips(); rows.Len() != 2 || !reflect.DeepEqual(got, want) {
		t.Errorf("%d rows, skipped %v", rows.Len(), got)
	}
	if rows.Length() != 180*time.Second {
		t.Errorf("length %v", rows.Length())
	}
	f := &File{Traces: []Trace{rows}, Nodes: []NodeGroup{}, Until: time.Hour}
	run, err := f.Start(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	run.World.Run(sim.Limits{Until: time.Hour})
	if got := run.World.Pending(); got != 3 {
		t.Errorf("%d pods, want 1 and 2", got)
	}
	if _, err := ReadPhilly(strings.NewReader("vc,gpus\n"), ""); err == nil || !strings.Contains(err.Error(), `no column "arrival_s"`) {
		t.Errorf("a file without a column: %v", err)
	}
}

// TestReadOpenb: nodes and pods, a GPU model that a pod requires, and a pod that ends before it begins.
func TestReadOpenb(t *testing.T) {
	nodes := "sn,cpu_milli,memory_mib,gpu,model\nn1,8000,1024,2,T4\n"
	pods := "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n" +
		"p1,4000,512,1,460,T4|V100,LS,Running,10,70,20\np2,1000,1,0,0,,LS,Running,5,5,5\n"
	rows, err := ReadOpenb(strings.NewReader(nodes), strings.NewReader(pods))
	if err != nil {
		t.Fatal(err)
	}
	if got := rows.SortedSkips(); rows.Len() != 1 || len(got) != 1 || !strings.Contains(got[0], "deletion_time is not after") {
		t.Errorf("%d rows, skipped %v", rows.Len(), got)
	}
	run, err := (&File{Traces: []Trace{rows}}).Start(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := run.World.Node("n1")
	if n == nil || n.Record.Allocatable.Get(GPUMilli) != 2000 {
		t.Fatalf("node %+v", n)
	}
	if rows.Length() != 50*time.Second {
		t.Errorf("the pod works from its start to its deletion: %v", rows.Length())
	}
}
