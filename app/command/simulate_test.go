// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/tape"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/sim/report"
)

// simulate runs kumiki simulate and returns its exit code, output and errors.
func simulate(a ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = Run(context.Background(), append([]string{"kumiki", "simulate"}, a...), strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

const examples = "../../examples/simulate/"

// write writes a file of a test.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSimulateExamples: the examples run, and their assertions hold, under each of their seeds.
func TestSimulateExamples(t *testing.T) {
	for _, name := range []string{"zone-loss.yaml", "two-schedulers.yaml", "database.yaml"} {
		code, out, errs := simulate(examples + name)
		if code != exitOK || !strings.Contains(out, "pods.bound") {
			t.Errorf("%s: exit %d\n%s\n%s", name, code, out, errs)
		}
	}
}

// TestSimulateComparesProfiles: a configuration that fills nodes uses fewer of them under every seed, and the
// comparison is paired.
func TestSimulateComparesProfiles(t *testing.T) {
	path := write(t, "s.yaml", `
name: packing
until: 30m
nodes: [{name: n, count: 10, capacity: {cpu: 8, memory: 32Gi, pods: 110}}]
workloads:
- {name: w, count: 20, every: exponential 10s, work: uniform 5m 10m, requests: {cpu: 1, memory: 1Gi}}
`)
	code, out, errs := simulate(path, "--profile", examples+"default.yaml", "--profile", examples+"packing.yaml",
		"--seeds", "1-5", "-o", "json")
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var r report.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Results) != 10 || r.Profiles[1] != "packing" {
		t.Fatalf("%d results of %v", len(r.Results), r.Profiles)
	}
	for _, row := range r.Rows {
		if row.Name != "nodeHours" {
			continue
		}
		c := row.Cells[1]
		if c.Difference == nil || c.Half == nil || *c.Difference+*c.Half >= 0 {
			t.Errorf("node hours: %+v", row)
		}
	}
	_, again, _ := simulate(path, "--profile", examples+"default.yaml", "--profile", examples+"packing.yaml",
		"--seeds", "1-5", "-o", "json")
	if again != out {
		t.Error("the same command gives another output")
	}
}

const small = `
name: small
until: 10m
nodes: [{name: n, count: 1, capacity: {cpu: 2, pods: 110}}]
workloads: [{name: w, count: 3, requests: {cpu: 1}}]
`

// TestSimulateExitCodes: 1 for an assertion that fails, 2 for what is misspelled, with the place.
func TestSimulateExitCodes(t *testing.T) {
	path := write(t, "s.yaml", small)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{path, "--assert", "pods.pending == 1"}, exitOK, ""},
		{[]string{path, "--assert", "pods.pending == 0"}, exitNegative, "pods.pending == 0: got 1 and 0"},
		{[]string{path, "--assert", "pods.pendin == 0"}, exitUsage, "did you mean pods.pending?"},
		{[]string{path, "--assert", "pods.pending"}, exitUsage, "no assertion"},
		{[]string{path, "--seeds", "3-1"}, exitUsage, "no list of seeds"},
		{[]string{path, "-o", "xml"}, exitUsage, "table, json, csv, html"},
		{[]string{path, "--change", path}, exitUsage, "--from"},
		{[]string{}, exitUsage, "name a scenario file"},
		{[]string{path + "x"}, exitUsage, "no such file"},
		{[]string{path, "--from", path}, exitUsage, "not a recording"},
		{[]string{path, "--profile", path}, exitUsage, "configuration"},
		{[]string{write(t, "bad.yaml", "nodes:\n- name: n\n  cuont: 3\n")}, exitUsage, `line 3, column 3: nodes[0]: unknown field "cuont"`},
	} {
		code, _, errs := simulate(c.args...)
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%v: exit %d, want %d\n%s", c.args, code, c.code, errs)
		}
	}
}

// TestSimulateFormats: each format holds the result; the page needs no other file.
func TestSimulateFormats(t *testing.T) {
	path := write(t, "s.yaml", small)
	for format, want := range map[string]string{"table": "pods.bound", "csv": "small,default,1,pods.bound,,2", // order: each by itself
		"json": `"name": "pods.bound"`, "html": "<polyline"} {
		code, out, errs := simulate(path, "-o", format)
		if code != exitOK || !strings.Contains(out, want) {
			t.Errorf("%s: exit %d, %s\n%s", format, code, errs, out)
		}
		if format == "html" && (strings.Contains(out, "src=") || strings.Contains(out, "href=")) {
			t.Error("the page refers to another file")
		}
	}
}

// TestSimulateFromCapture: a captured node of 4 cores with a pod of 3 on it has no place for another of 2, until the
// change adds a node.
func TestSimulateFromCapture(t *testing.T) {
	in := convert.NewIntake()
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("4"), v1.ResourcePods: apiresource.MustParse("110")}
	pod := func(name, cpu, node string) engine.Event {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", UID: types.UID("uid-" + name)}}
		p.Spec.NodeName, p.Spec.SchedulerName = node, "another"
		p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(cpu)}}}}
		return engine.PodSet{Pod: in.Pod(p)}
	}
	events := []engine.Event{engine.NodeSet{Node: in.Node(n)}, pod("a", "3", "n"), pod("b", "2", ""), engine.Synced{}}
	path := filepath.Join(t.TempDir(), "c.tape")
	if _, _, err := tape.Keep(path, app.Plugins{}, config.Default(), time.Unix(1_700_000_000, 0), events); err != nil {
		t.Fatal(err)
	}
	code, out, errs := simulate("--from", path, "--assert", "pods.pending == 1")
	if code != exitOK {
		t.Fatalf("exit %d: %s\n%s", code, errs, out)
	}
	change := write(t, "change.yaml", "nodes: [{name: more, count: 1, capacity: {cpu: 4, pods: 110}}]\n")
	code, out, errs = simulate("--from", path, "--change", change, "-o", "csv")
	if code != exitOK || !strings.Contains(out, "as captured,1,pods.pending,,1") ||
		!strings.Contains(out, "changed,1,pods.pending,,0") {
		t.Errorf("exit %d: %s\n%s", code, errs, out)
	}
}
