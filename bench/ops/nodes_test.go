// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

var nodeScenarios = []scenario{
	{"nodes without a template", defaultNodes},
	{"nodes from a template", templateNodes},
	{"nodes with labels in turn", labelledNodes},
	{"nodes with labels of their own", uniqueNodes},
	{"nodes that offer something else", offeringNodes},
	{"nodes that cannot be made", wrongNodes},
	{"namespaces", namespaces},
}

// nodes are those whose name begins with a prefix.
func (g *ground) nodes(t *testing.T, prefix string) []corev1.Node {
	t.Helper()
	list, err := g.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(n corev1.Node) bool { return !strings.HasPrefix(n.Name, prefix) })
}

// Catches: one node more or fewer than Count; names that another run would not give; a node that is not Ready or has a
// taint, so that nothing is scheduled to it; no hostname label, without which spreading over hosts breaks.
func defaultNodes(t *testing.T, g *ground) {
	g.run(t, g.env(), &workload.CreateNodes{Count: 40})
	nodes := g.nodes(t, "node-0-")
	wantNames(t, "nodes", names(nodes), serials("node-", 0, 40))
	for _, n := range nodes {
		ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		offers := n.Status.Allocatable
		if !ready || len(n.Spec.Taints) > 0 || offers.Cpu().String() != "4" || offers.Memory().String() != "32Gi" || offers.Pods().String() != "110" {
			t.Errorf("node %s: ready %v, taints %v, offers %v", n.Name, ready, n.Spec.Taints, offers)
		}
		if n.Labels[corev1.LabelHostname] != n.Name {
			t.Errorf("node %s: hostname label %q", n.Name, n.Labels[corev1.LabelHostname])
		}
	}
}

// Catches: a template that is rendered once for all nodes, or with the index that counts over operations; a count that is
// not that of the operation; a generateName that the second operation takes up again from the start.
func templateNodes(t *testing.T, g *ground) {
	text := manifest(`
apiVersion: v1
kind: Node
metadata:
  generateName: templated-
  labels: {index: "{{.Index}}", count: "{{.Count}}", size: "{{.size}}"}
status:
  capacity: {cpu: "{{AddInt .Index 1}}", pods: "10"}
`)
	text.Params = map[string]any{"size": "big"}
	g.run(t, g.env(), &workload.CreateNodes{Count: 3, Template: text}, &workload.CreateNodes{Count: 2, Template: text})
	nodes := g.nodes(t, "templated-")
	wantNames(t, "nodes", names(nodes), append(serials("templated-", 0, 3), serials("templated-", 1, 2)...))
	for i, n := range nodes {
		index, count := i, "3"
		if i >= 3 {
			index, count = i-3, "2"
		}
		if n.Labels["index"] != strconv.Itoa(index) || n.Labels["count"] != count || n.Labels["size"] != "big" {
			t.Errorf("node %s has labels %v, want index %d, count %s, size big", n.Name, n.Labels, index, count)
		}
		if got := n.Status.Capacity.Cpu().Value(); got != int64(index+1) {
			t.Errorf("node %s has %d cores, want %d", n.Name, got, index+1)
		}
	}
}

// Catches: values given in the order in which the creators finish, which would make another cluster in each run; values
// that start with the second; other labels of the template thrown away.
func labelledNodes(t *testing.T, g *ground) {
	g.run(t, g.env(), &workload.CreateNodes{
		Count: 7, Label: &workload.NodeLabel{Key: "zone", Values: []string{"a", "b", "c"}},
		Template: manifest("metadata: {generateName: zoned-, labels: {kept: here}}"),
	})
	var zones []string
	for _, n := range g.nodes(t, "zoned-") {
		zones = append(zones, n.Labels["zone"])
		if n.Labels["kept"] != "here" {
			t.Errorf("node %s lost the template's label: %v", n.Name, n.Labels)
		}
	}
	wantNames(t, "zones of the nodes in turn", zones, []string{"a", "b", "c", "a", "b", "c", "a"})
}

// Catches: one value for all nodes.
func uniqueNodes(t *testing.T, g *ground) {
	g.run(t, g.env(), &workload.CreateNodes{
		Count: 5, UniqueLabel: &workload.NodeUniqueLabel{Key: "own"}, Template: manifest("metadata: {generateName: unique-}"),
	})
	values := map[string]bool{} // value -> seen
	for _, n := range g.nodes(t, "unique-") {
		values[n.Labels["own"]] = true
	}
	if len(values) != 5 || values[""] {
		t.Errorf("the values are %v, want 5 different ones", slices.Sorted(maps.Keys(values)))
	}
}

// Catches: the allocatable resources sent with an update of the node, which the API server drops (as in scheduler_perf);
// what the template offers besides thrown away, its capacity where it says nothing else; a CSINode without limit, without node ID or without the migrated plugins.
func offeringNodes(t *testing.T, g *ground) {
	g.run(t, g.env(), &workload.CreateNodes{
		Count: 2, Template: manifest("metadata: {generateName: offering-}\nstatus: {capacity: {cpu: 4}, allocatable: {cpu: 4, memory: 1Gi}}"),
		Allocatable: &workload.NodeAllocatable{
			Allocatable:    map[string]string{"cpu": "3", "example.com/gpu": "8"},
			CSIAllocatable: map[string]int32{"b.example.com": 39, "a.example.com": 1},
			Migrated:       map[string]map[string]bool{"b.example.com": {"kubernetes.io/aws-ebs": true, "kubernetes.io/azure-disk": false}},
		},
	})
	g.run(t, g.env(), &workload.CreateNodes{
		Count: 1, Template: manifest("metadata: {generateName: capable-}\nstatus: {capacity: {cpu: 4, pods: 110}}"),
		Allocatable: &workload.NodeAllocatable{Allocatable: map[string]string{"example.com/gpu": "8"}},
	})
	for _, n := range g.nodes(t, "capable-") {
		if offers := n.Status.Allocatable; offers.Cpu().String() != "4" || offers.Pods().Value() != 110 || len(offers) != 3 {
			t.Errorf("node %s has a capacity and gets more, and offers %v", n.Name, offers)
		}
	}
	nodes := g.nodes(t, "offering-")
	if len(nodes) != 2 {
		t.Fatalf("%d nodes, want 2", len(nodes))
	}
	for _, n := range nodes {
		gpus := n.Status.Allocatable["example.com/gpu"]
		if offers := n.Status.Allocatable; offers.Cpu().String() != "3" || offers.Memory().String() != "1Gi" || gpus.Value() != 8 {
			t.Errorf("node %s offers %v", n.Name, offers)
		}
		csi, err := g.client.StorageV1().CSINodes().Get(t.Context(), n.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if csi.Annotations[corev1.MigratedPluginsAnnotationKey] != "kubernetes.io/aws-ebs" {
			t.Errorf("CSINode %s: annotations %v", n.Name, csi.Annotations)
		}
		limits := map[string]int32{} // driver -> volumes
		for _, d := range csi.Spec.Drivers {
			limits[d.Name] = *d.Allocatable.Count
			if d.NodeID != n.Name {
				t.Errorf("CSINode %s: driver %s is on node %q", n.Name, d.Name, d.NodeID)
			}
		}
		if !maps.Equal(limits, map[string]int32{"a.example.com": 1, "b.example.com": 39}) {
			t.Errorf("CSINode %s: limits %v", n.Name, limits)
		}
	}
}

// Catches: an error that does not say which operation and which object; a run that goes on after one.
func wrongNodes(t *testing.T, g *ground) {
	env := g.env()
	out, err := Run(t.Context(), env, plan(
		&workload.CreateNodes{Count: 1, Template: manifest("metadata: {name: taken}")},
		&workload.CreateNodes{Count: 1, Template: manifest("metadata: {name: taken}")},
		&workload.CreateNodes{Count: 1, Template: manifest("metadata: {name: never}")}))
	if err == nil || !strings.HasPrefix(err.Error(), "op 1 (createNodes): create node taken: ") {
		t.Errorf("the error is %v", err)
	}
	if len(out.Steps) != 1 || len(g.nodes(t, "never")) != 0 {
		t.Errorf("%d steps and %d nodes of the last operation, want 1 and none", len(out.Steps), len(g.nodes(t, "never")))
	}
	if _, err := Run(t.Context(), g.env(), plan(&workload.CreateNodes{Count: 1, Template: manifest("metadata: {nmae: x}")})); err == nil ||
		!strings.Contains(err.Error(), "test.yaml") || !strings.Contains(err.Error(), "nmae") {
		t.Errorf("an unknown field gives %v, want the template and the field", err)
	}
}

// Catches: names from 1 to Count; a template's labels dropped, which namespace selectors choose by.
func namespaces(t *testing.T, g *ground) {
	g.run(t, g.env(), &workload.CreateNamespaces{Prefix: "spaces", Count: 3, Template: manifest("metadata: {labels: {team: devops}}")})
	list, err := g.client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: "team=devops"})
	if err != nil {
		t.Fatal(err)
	}
	wantNames(t, "namespaces", names(list.Items), []string{"spaces-0", "spaces-1", "spaces-2"})
}
