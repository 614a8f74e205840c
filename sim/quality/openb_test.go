// SPDX-License-Identifier: Apache-2.0

package quality

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// openTrace opens a file of the published traces, which are no part of the repository: KUMIKI_TRACES names their
// directory. It returns nil, and says so, if the variable is not set; then the test has nothing to check.
func openTrace(t *testing.T, path ...string) *os.File {
	t.Helper()
	dir := os.Getenv("KUMIKI_TRACES")
	if dir == "" {
		t.Log("KUMIKI_TRACES names no directory of traces: nothing was checked")
		return nil
	}
	f, err := os.Open(filepath.Join(append([]string{dir}, path...)...))
	if err != nil {
		t.Fatalf("KUMIKI_TRACES: %v", err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// tracedOpenb reads a workload of the trace; nil without the traces.
func tracedOpenb(t *testing.T, workload string) *Openb {
	nodes := openTrace(t, "fgd_openb", "openb_node_list_gpu_node.csv")
	if nodes == nil {
		return nil
	}
	o, err := ReadOpenb(nodes, openTrace(t, "fgd_openb", "openb_pod_list_"+workload+".csv"))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestFragmentationOfTheEmptyTrace: the numbers of typical shapes and the fragmentation of the empty cluster are those
// that were computed from the files independently; the first published values are within 0.1 points.
func TestFragmentationOfTheEmptyTrace(t *testing.T) {
	for workload, want := range map[string]struct {
		shapes  int
		percent float64
	}{"default": {35, 13.94}, "cpu250": {0, 25.87}, "gpushare100": {0, 13.64}} { // order: each by itself
		o := tracedOpenb(t, workload)
		if o == nil {
			return
		}
		typical, sum := o.typicalShapes(), 0.0
		for _, n := range emptyStates(o) {
			sum += fragmentation(&n, typical)
		}
		percent := 100 * sum / float64(o.TotalGPU())
		if math.Abs(percent-want.percent) > 0.01 || want.shapes > 0 && len(typical) != want.shapes {
			t.Errorf("%s: %.2f %% with %d shapes, want %.2f %% with %d", workload, percent, len(typical), want.percent,
				want.shapes)
		}
	}
}

// small has two nodes, of 4 CPUs and 2 GPUs, and of 8 CPUs without a GPU.
func small(pods ...string) *Openb {
	nodes := "sn,cpu_milli,memory_mib,gpu,model\na,4000,1000,2,T4\nb,8000,1000,0,\n"
	list := "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time\n"
	for i, p := range pods {
		list += fmt.Sprintf("p%02d,%s,0,1\n", i, p)
	}
	o, err := ReadOpenb(strings.NewReader(nodes), strings.NewReader(list))
	if err != nil {
		panic(err)
	}
	return o
}

// TestBrokenFilesAreRefused: with the file, and the row if there is one.
func TestBrokenFilesAreRefused(t *testing.T) {
	const nodes = "sn,cpu_milli,memory_mib,gpu,model\n"
	const pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time\n"
	for _, c := range []struct{ nodes, pods, want string }{
		{"", pods, "nodes: the file is empty"},
		{"sn,cpu_milli\n", pods, `nodes: there is no column "memory_mib"`},
		{nodes + "a,4,-1,0,\n", pods, `nodes: row 1: "-1" is not a number`},
		{nodes, pods + "p,1,1,0,0,,0,1\nq,1,Inf,0,0,,0,1\n", `pods: row 2: "Inf" is not a number`},
	} {
		if _, err := ReadOpenb(strings.NewReader(c.nodes), strings.NewReader(c.pods)); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

// TestArrivalsAreReproducible: a seed gives one order, of each pod once and then others, until the next one would pass
// 130 % of the GPUs.
func TestArrivalsAreReproducible(t *testing.T) {
	o := small("1000,1,1,500,", "1000,1,1,300,", "1000,1,0,0,")
	for seed := int64(1); seed <= 20; seed++ {
		order := o.Arrive(seed)
		if fmt.Sprint(order) != fmt.Sprint(o.Arrive(seed)) {
			t.Fatalf("seed %d gives two orders", seed)
		}
		seen, total := map[int]bool{}, int64(0) // pods -> arrived
		for i, p := range order {
			if i < 3 && seen[p] {
				t.Errorf("seed %d: pod %d arrives again among the first three", seed, p)
			}
			seen[p] = true
			total += o.Pods[p].GPUMilli()
		}
		if total > 2600 || total <= 2600-500 {
			t.Errorf("seed %d: %d of 2600 thousandths arrive", seed, total)
		}
	}
}

// TestCurve: three arrivals, of which the second is not placed. Means are over the arrivals that round to a percentage.
func TestCurve(t *testing.T) {
	c := &Curve{total: 1000}
	c.Arrived(100, true)  // 10 %: 10
	c.Arrived(2, false)   // 10.2 % -> 10: 10
	c.Arrived(2, true)    // 10.4 % -> 10: 10.2
	c.Arrived(100, false) // 20.4 % -> 20: 10.2
	if got := c.At(10); math.Abs(got-10.0666) > 0.001 {
		t.Errorf("at 10 %%: %v", got)
	}
	if got := c.At(20); math.Abs(got-10.2) > 1e-9 {
		t.Errorf("at 20 %%: %v", got)
	}
	if got := c.End(); math.Abs(got-10.2) > 1e-9 {
		t.Errorf("at the end: %v", got)
	}
	if got := c.At(15); !math.IsNaN(got) {
		t.Errorf("at 15 %%: %v, want none", got)
	}
}

// TestUnusable: what a shape cannot use of a node with 300, 1000 and 0 thousandths free on its GPUs.
func TestUnusable(t *testing.T) {
	n := &openbState{cpu: 4000, free: [maxGPUs]int64{300, 1000, 0}, gpus: 3, model: "T4"}
	for _, c := range []struct {
		shape OpenbShape
		want  int64
	}{
		{OpenbShape{CPU: 1000}, 1300},                                      // requests no GPU
		{OpenbShape{CPU: 5000, GPUs: 1, Milli: 200}, 1300},                 // too few CPUs
		{OpenbShape{CPU: 1000, GPUs: 1, Milli: 500}, 300},                  // one GPU is too full
		{OpenbShape{CPU: 1000, GPUs: 1, Milli: 200}, 0},                    // each is large enough, or full
		{OpenbShape{CPU: 1000, GPUs: 2, Milli: 1000}, 1300},                // one free GPU of two
		{OpenbShape{CPU: 1000, GPUs: 1, Milli: 200, Models: "P100"}, 1300}, // another model
		{OpenbShape{CPU: 1000, GPUs: 1, Milli: 200, Models: "P100|T4"}, 0},
	} {
		if got := n.unusable(&c.shape); got != c.want {
			t.Errorf("%+v: %d, want %d", c.shape, got, c.want)
		}
	}
}

// TestReferencePolicies: BestFit places a share on the fuller of two GPUs; FGD keeps the free GPU for the shape that
// needs all of it, where BestFit, which looks at amounts only, places a pod without a GPU on the node with GPUs.
func TestReferencePolicies(t *testing.T) {
	n := &openbState{cpu: 4000, free: [maxGPUs]int64{1000, 600}, gpus: 2, model: "T4"}
	half := &OpenbShape{CPU: 1000, GPUs: 1, Milli: 500}
	if _, gpu := BestFit(n, half); gpu != 1 {
		t.Errorf("BestFit places a share on GPU %d, want 1", gpu)
	}
	o := small("1000,1,1,1000,", "1000,1,1,1000,", "1000,1,1,500,", "3500,1,0,0,")
	fgd := o.FGD()
	if _, gpu := fgd(n, half); gpu != 1 {
		t.Errorf("FGD places a share on GPU %d, want 1", gpu)
	}
	states := emptyStates(o)
	cpuOnly := &OpenbShape{CPU: 3500}
	with, _ := fgd(&states[0], cpuOnly)
	without, _ := fgd(&states[1], cpuOnly)
	if with >= without {
		t.Errorf("FGD scores %d with GPUs and %d without for a pod without a GPU", with, without)
	}
	// what the node can hold is held, with either policy: 2 GPUs
	for name, policy := range map[string]Policy{"BestFit": BestFit, "FGD": fgd} { // order: each by itself
		curve := small("500,1,1,1000,", "500,1,1,1000,").Reference(policy, 1)
		if got := curve.At(100); got != 100 {
			t.Errorf("%s allocates %v %%, want 100", name, got)
		}
	}
}

// TestReferencesReproduceThePaper compares both policies with the published values of the first two seeds of one
// workload; `make quality` compares all.
func TestReferencesReproduceThePaper(t *testing.T) {
	o := tracedOpenb(t, "default")
	if o == nil {
		return
	}
	published, err := ReadPublished(openTrace(t, "fgd_openb", "expected_results", "analysis_allo_discrete.csv"))
	if err != nil {
		t.Fatal(err)
	}
	policies := map[string]Policy{PublishedBestFit: BestFit, PublishedFGD: o.FGD()} // name -> policy
	for name, policy := range policies {                                            // order: each by itself
		var sum float64
		for seed := int64(42); seed < 44; seed++ {
			got, want := o.Reference(policy, seed).At(130), published.At("default", name, seed, 130)
			t.Logf("%s, seed %d: %.2f, published %.2f", name, seed, got, want)
			sum += (got - want) / 2
		}
		if math.Abs(sum) > 0.2 {
			t.Errorf("%s: %.2f points from the published mean", name, sum)
		}
	}
}

// TestChangedShapes: pods of one shape keep one shape, within 20 % of the amounts, and whole GPUs stay whole.
func TestChangedShapes(t *testing.T) {
	o := small("1000,100,1,500,", "1000,100,1,500,", "2000,100,2,1000,", "3000,100,0,0,")
	changed := o.Changed(7)
	if changed.Pods[0].OpenbShape != changed.Pods[1].OpenbShape {
		t.Errorf("one shape became two: %+v, %+v", changed.Pods[0].OpenbShape, changed.Pods[1].OpenbShape)
	}
	within := func(was, is int64) bool { return 10*is >= 8*was-10 && 10*is <= 12*was }
	moved := false
	for i := range o.Pods {
		was, is := o.Pods[i].OpenbShape, changed.Pods[i].OpenbShape
		moved = moved || was != is
		if !within(was.CPU, is.CPU) || !within(was.Memory, is.Memory) || !within(was.Milli, is.Milli) ||
			was.GPUs != is.GPUs || was.GPUs == 2 && is.Milli != WholeGPU {
			t.Errorf("%+v became %+v", was, is)
		}
	}
	if !moved {
		t.Error("no shape was changed")
	}
}
