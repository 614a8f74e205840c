// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
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
)

// capturing is a cluster that becomes a capture.
type capturing struct {
	in     *convert.Intake
	events []engine.Event
}

func (c *capturing) nodes(count int, cpu string) {
	for i := range count {
		name := fmt.Sprintf("n%d", i)
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}}}
		n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(cpu), v1.ResourcePods: apiresource.MustParse("110")}
		c.events = append(c.events, engine.NodeSet{Node: c.in.Node(n)})
	}
}

// pod adds a pod that a controller of a kind owns.
func (c *capturing) pod(name, on, cpu, kind string) {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", UID: types.UID("uid-" + name)}}
	p.Spec.NodeName, p.Spec.SchedulerName = on, v1.DefaultSchedulerName
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(cpu)}}}}
	if kind != "" {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "o", UID: "o", Controller: &yes}}
	}
	c.events = append(c.events, engine.PodSet{Pod: c.in.Pod(p)})
}

func (c *capturing) write(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.tape")
	if _, _, err := tape.Keep(path, app.Plugins{}, config.Default(), time.Unix(1_700_000_000, 0), append(c.events, engine.Synced{})); err != nil {
		t.Fatal(err)
	}
	return path
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// shop is two nodes of 4 cores with a daemon of 1 and a web pod of 2 on each.
func shop(t *testing.T) string {
	t.Helper()
	c := &capturing{in: convert.NewIntake()}
	c.nodes(2, "4")
	for i := range 2 {
		c.pod(fmt.Sprint("daemon", i), fmt.Sprint("n", i), "1", "DaemonSet")
		c.pod(fmt.Sprint("web", i), fmt.Sprint("n", i), "2", "ReplicaSet")
	}
	return c.write(t)
}

const wide = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: wide, namespace: shop}
spec:
  replicas: 5
  selector: {matchLabels: {app: wide}}
  template:
    metadata: {labels: {app: wide}}
    spec:
      containers:
      - {name: c, image: c, resources: {requests: {cpu: 1}}}
---
apiVersion: v1
kind: Pod
metadata: {name: one}
spec: {containers: [{name: c, image: c, resources: {requests: {cpu: 2}}}]}
`

// TestSimulateSize: new nodes have 3 of 4 cores for pods, because each runs the daemon.
func TestSimulateSize(t *testing.T) {
	from, pods := shop(t), write(t, "pods.yaml", wide)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--pods", pods}, "3 nodes; fewer cannot hold the pods"},          // 7 cores
		{nil, "2 nodes; fewer cannot hold the pods"},                               // two pods of 2
		{[]string{"--pods", pods, "--add"}, "2 nodes; fewer cannot hold the pods"}, // two have 1 core free each
	} {
		code, out, errs := simulate(append([]string{"size", "--from", from, "--like", "node/n0"}, c.args...)...)
		if code != exitOK || !strings.Contains(out, c.want) || !strings.Contains(out, "1 pods of each node") {
			t.Errorf("%v: exit %d, want %s\n%s\n%s", c.args, code, c.want, out, errs)
		}
	}
	code, out, _ := simulate("size", "--from", from, "--like", "node/n0", "--pods", pods, "-o", "json")
	var r sizeReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitOK || r.Fewest != 3 || r.AtLeast != 3 || r.Pods != 6 {
		t.Errorf("exit %d, %v: %+v", code, err, r)
	}
}

// TestSimulateSizeBadInput: what is wrong is named, manifests with line and field.
func TestSimulateSizeBadInput(t *testing.T) {
	from := shop(t)
	for _, c := range []struct {
		pods string
		args []string
		code int
		says string
	}{
		{"", []string{"--like", "n0"}, exitUsage, "must be node/NAME"},
		{"", []string{"--like", "node/n7"}, exitUsage, "no node n7; did you mean n0?"},
		{"", []string{"--like", "node/n0", "--add"}, exitUsage, "--add needs --pods"},
		{"", []string{"--like", "node/n0", "--seeds", "x"}, exitUsage, "no list of seeds"},
		{"", []string{"--like", "node/n0", "--profile", from}, exitUsage, "configuration"},
		{"kind: Service\nmetadata: {name: s}", nil, exitUsage, `line 1, column 1: kind "Service" has no pods`},
		{"kind: Pod\nmetadata: {name: p}\nspec:\n  contaners: []", nil, exitUsage, `line 4, column 14: unknown field "spec.contaners"`},
		{"kind: Pod\nmetadata: {name: p}", nil, exitUsage, "Pod p: the pods have no containers"},
		{"kind: Deployment\nspec: {}", nil, exitUsage, "Deployment: metadata.name is missing"},
		{"", nil, exitUsage, "the file has no pods"},
		{"[", nil, exitUsage, "reading YAML"},
		{strings.ReplaceAll(wide, "cpu: 2", "cpu: 9"), nil, exitNegative, "pod default/one requests cpu 9, and a node as n0 has 3 for it"},
		{wide + "---\n" + wide, nil, exitUsage, "two pods have the name shop/wide-0"},
	} {
		a := append([]string{"size", "--from", from}, c.args...)
		if c.args == nil {
			a = append(a, "--like", "node/n0", "--pods", write(t, "pods.yaml", c.pods))
		}
		if code, _, errs := simulate(a...); code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%v: exit %d, want %d with %s\n%s", a, code, c.code, c.says, errs)
		}
	}
}

// TestSimulateShrink: of a scenario, one workload without nodes is left, with the expression as its assertion; of a
// capture, one pod.
func TestSimulateShrink(t *testing.T) {
	path := write(t, "s.yaml", `
name: mixed # a comment
until: 30m
seeds: 1-2
nodes: [{name: a, count: 3, capacity: {cpu: 4, pods: 110}}, {name: b, count: 2, capacity: {cpu: 8, pods: 110}}]
workloads:
- {name: web, kind: replicaSet, size: 5, requests: {cpu: 1}}
- {name: big, count: 4, every: 10s, requests: {cpu: 9}, labels: {app: big}}
- {name: job, kind: job, size: 2, work: 1m, requests: {cpu: 1}}
events: [{at: 5m, drainNodes: {count: 1}}]
assertions: [pods.created > 0]
`)
	to := filepath.Join(t.TempDir(), "small.yaml")
	code, out, errs := simulate("shrink", path, "--while", "pods.pending > 0", "--to", to)
	if code != exitOK || !strings.Contains(out, "no single part can be removed") {
		t.Fatalf("exit %d\n%s\n%s", code, out, errs)
	}
	want := "name: mixed # a comment\nuntil: 30m\nworkloads:\n  - {name: job}\nseeds: 1\nassertions:\n  - pods.pending > 0\n"
	if got := readFile(t, to); got != want {
		t.Errorf("left:\n%s\nwant:\n%s", got, want)
	}
	if code, _, errs := simulate(to); code != exitOK {
		t.Errorf("the result does not show it: exit %d, %s", code, errs)
	}
	c := &capturing{in: convert.NewIntake()}
	c.nodes(3, "4")
	c.pod("fits", "", "2", "")
	c.pod("large", "", "5", "")
	c.pod("runs", "n1", "3", "")
	tapeTo := filepath.Join(t.TempDir(), "small.tape")
	code, out, errs = simulate("shrink", c.write(t), "--while", "pods.pending > 0", "--to", tapeTo)
	if code != exitOK || !strings.Contains(out, "(versions of nodes: 0, of pods: 1)") {
		t.Errorf("a capture: exit %d\n%s\n%s", code, out, errs)
	}
	if code, _, errs := simulate("--from", tapeTo, "--assert", "pods.pending > 0"); code != exitOK {
		t.Errorf("the result does not show it: exit %d, %s", code, errs)
	}
}

// TestSimulateShrinkBadInput: 1 if the expression does not hold, 2 for mistakes.
func TestSimulateShrinkBadInput(t *testing.T) {
	path, to := write(t, "s.yaml", small), filepath.Join(t.TempDir(), "out")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{path, "--while", "pods.pending > 5", "--to", to}, exitNegative, "does not hold for the whole"},
		{[]string{path, "--while", "pods.pendin > 0", "--to", to}, exitUsage, "did you mean pods.pending?"},
		{[]string{path, "--while", "pods", "--to", to}, exitUsage, "no assertion"},
		{[]string{path, "--to", to}, exitUsage, "--while EXPR"},
		{[]string{path, "--while", "pods.pending > 0"}, exitUsage, "--to FILE"},
		{[]string{path, "--while", "pods.pending > 0", "--to", path}, exitUsage, "exists"},
		{[]string{path + "x", "--while", "pods.pending > 0", "--to", to}, exitUsage, "no such file"},
		{[]string{write(t, "bad.yaml", "nodes: 3"), "--while", "pods.pending > 0", "--to", to}, exitUsage, "line 1, column 8"},
	} {
		if code, _, errs := simulate(append([]string{"shrink"}, c.args...)...); code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%v: exit %d, want %d with %s\n%s", c.args, code, c.code, c.says, errs)
		}
	}
}
