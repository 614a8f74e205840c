// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/sim"
)

const borg = `time,end,cpus,mem,type,tasks,prio
1000000,61000000,0.25,0.125,1,1,200
2000000,32000000,0.5,0.5,1,3,0
3000000,3000000,0.5,0.5,1,1,0
4000000,,0.5,0.5,1,1,0
5000000,9000000,-0.5,0.5,1,1,0
6000000,9000000,inf,0.5,1,1,0
7000000,9000000,0,0,1,1,0
8000000,9000000,0.5,0.5,1,1.5,0
9000000,10000000,0.5
10000000,20000000,0.5,0.5,2,1,0
`

const borgMap = `
until: 1h
nodes: [{name: n, count: 4, capacity: {cpu: 64, memory: 256Gi, pods: 110}}]
traces:
- csv:
    file: borg.csv
    time: 1us
    kind: gang
    columns: {arrival: time, end: end, pods: tasks, priority: prio, requests: {cpu: cpus, memory: mem}}
    scale: {cpu: 64, memory: 256Gi}
    where: {type: "1"}
`

// TestReadCSV: the columns of a file are mapped, with their units; rows that cannot be used are skipped with the
// reason, and rows that are not chosen without one. A row of three tasks is a gang.
func TestReadCSV(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "borg.csv"), []byte(borg), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Read([]byte(borgMap))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.OpenTraces(dir); err != nil {
		t.Fatal(err)
	}
	want := []string{"1 rows: 3 cells instead of 7", "1 rows: all requests are 0", "1 rows: cpus is negative",
		"1 rows: cpus is no number", "1 rows: end is not after the start", "1 rows: no end",
		"1 rows: tasks is no whole number from 1 to 100000"}
	for i := range want {
		want[i] = "borg.csv is without " + want[i]
	}
	if !reflect.DeepEqual(f.Skipped, want) {
		t.Errorf("skipped:\n%s", strings.Join(f.Skipped, "\n"))
	}
	rows := f.Traces[0].(*Rows)
	if rows.Len() != 2 || rows.Length() != time.Minute {
		t.Fatalf("%d rows of %v", rows.Len(), rows.Length())
	}
	gang := rows.items[1]
	request := gang.load.Pod.Spec.Containers[0].Resources.Requests
	if cpu, memory := request[v1.ResourceCPU], request[v1.ResourceMemory]; gang.load.Kind != sim.Gang || gang.size != 3 ||
		gang.work != 30*time.Second || cpu.Value() != 32 || memory.Value() != 128<<30 {
		t.Errorf("the gang: %+v, %v", gang, request)
	}
	if first := rows.items[0].load.Pod.Spec; *first.Priority != 200 {
		t.Errorf("priority %d", *first.Priority)
	}
	run, err := f.Start(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	run.World.Run(sim.Limits{Until: time.Hour})
	if got := run.World.Pending(); got != 4 {
		t.Errorf("%d pods, want 1 and 3", got)
	}
}

// TestCSVWithoutUse: a file without a column, without rows, and one without a row that can be used are errors.
func TestCSVWithoutUse(t *testing.T) {
	c := &CSV{File: "f", Columns: Columns{Arrival: "at", Work: "for", Requests: map[string]string{"cpu": "cpu"}}}
	for text, want := range map[string]string{ // order: each by itself
		"":                    "the file is empty",
		"at,cpu\n1,1\n":       `there is no column "for"; the columns are at, cpu`,
		"at,for,cpu\n1,,1\n":  "no row can be used: 1 rows: no for",
		"at,for,cpu\n1,\"x,1": "reading CSV",
	} {
		if _, err := ReadCSV(strings.NewReader(text), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	f := &File{Inputs: []Input{{CSV: &CSV{File: "absent.csv"}}}}
	if err := f.OpenTraces(t.TempDir()); err == nil || !strings.Contains(err.Error(), "absent.csv") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestHeavyTail: a generator gives what it states: the number of pods, amounts between the bounds with few shapes, a
// tail with its index, and the same pods for the same seed.
func TestHeavyTail(t *testing.T) {
	f, err := Read([]byte(`
traces:
- heavyTail: {pods: 20000, every: exponential 1s, work: pareto 1m 1.2 max 24h, cpu: pareto 100m 1.5 max 16,
    memory: pareto 128Mi 1.1 max 64Gi, gangs: 10%, gangSize: 8}
`))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.OpenTraces("."); err != nil {
		t.Fatal(err)
	}
	load := func(seed uint64) (pods, arrivals, above, gangs int, shapes map[string]bool) {
		w := sim.New(sim.Setup{Seed: seed})
		loads, err := f.Traces[0].Load(w, 0)
		if err != nil {
			t.Fatal(err)
		}
		w.Start()
		w.Run(sim.Limits{Until: 100 * time.Hour})
		shapes = map[string]bool{}
		for _, l := range loads {
			request := l.Pod.Spec.Containers[0].Resources.Requests
			cpu, memory := request[v1.ResourceCPU], request[v1.ResourceMemory]
			if cpu.MilliValue() < 100 || cpu.MilliValue() > 16000 || memory.Value() < 128<<20 || memory.Value() > 64<<30 {
				t.Fatalf("a pod requests %v and %v", &cpu, &memory)
			}
			shapes[cpu.String()] = true
			units := len(l.Units())
			arrivals += units
			if cpu.MilliValue() > 400 {
				above += units
			}
			if l.Kind == sim.Gang {
				gangs += units
			}
			pods += units * max(l.Size, 1)
		}
		return pods, arrivals, above, gangs, shapes
	}
	pods, arrivals, above, gangs, shapes := load(1)
	if pods != 20000 || gangs < 1000 || gangs > 2000 || len(shapes) > 40 {
		t.Errorf("%d pods, %d gangs, %d amounts of CPU", pods, gangs, len(shapes))
	}
	// Of a Pareto distribution with index 1.5, (1/4)^1.5 = 1/8 are above four times the minimum.
	if share := float64(above) / float64(arrivals); share < 0.09 || share > 0.16 {
		t.Errorf("%v of the arrivals are above four times the minimum", share)
	}
	if p, _, a, g, _ := load(1); p != pods || a != above || g != gangs {
		t.Errorf("the same seed gives %d, %d, %d and then %d, %d, %d", pods, above, gangs, p, a, g)
	}
	if _, _, a, _, _ := load(2); a == above {
		t.Error("another seed gives the same pods")
	}
}

// TestTails: forms of amounts that are none.
func TestTails(t *testing.T) {
	for _, text := range []string{"", "pareto 1 1", "pareto 1 1 max x", "pareto 0 1 max 2", "pareto 2 1 max 1", "pareto 1 0 max 2",
		"pareto 1 NaN max 2", "uniform 1 1 max 2", "pareto -1 1 max 2"} {
		if got, err := tail(text); err == nil {
			t.Errorf("%q is %v, want an error", text, got)
		}
	}
}
