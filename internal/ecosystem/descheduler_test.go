// SPDX-License-Identifier: Apache-2.0

//go:build ecosystem

package ecosystem

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// services are the pods of services.yaml by the prefix of their names.
var services = map[string]int{"web-": 4, "api-": 4, "cache-": 1, "index-": 1, "mail-": 1, "store-": 1}

// twoNodes cordons or uncordons two of four nodes.
func (s *suite) twoNodes(unschedulable bool) {
	s.Helper()
	for _, name := range []string{"c", "d"} {
		node := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Node",
			"metadata": map[string]any{"name": name}, "spec": map[string]any{"unschedulable": unschedulable}}}
		s.eventually("cordon", func(ctx context.Context) error { return s.Apply(ctx, node) })
	}
}

// installed installs what a component needs, and returns a kubeconfig of its service account.
func (s *suite) installed(c Component) string {
	s.Helper()
	v, err := c.values(s.Context(), s.root, s.TempDir())
	if err != nil {
		s.Fatal(err)
	}
	objects, _, err := c.objects(v, nil)
	if err == nil {
		_, err = s.install(s.Context(), objects)
	}
	if err == nil {
		err = s.writeKubeconfig(s.Context(), c.Namespace, c.ServiceAccount, v.Kubeconfig)
	}
	if err != nil {
		s.Fatal(err)
	}
	return v.Kubeconfig
}

// unprotected writes a copy of the policy that evicts any pod.
func (s *suite) unprotected(policy string) string {
	s.Helper()
	text, err := os.ReadFile(policy)
	if err != nil {
		s.Fatal(err)
	}
	var kept []string
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, "labelSelector:") && !strings.Contains(line, "noEvictionPolicy:") {
			kept = append(kept, line)
		}
	}
	file := filepath.Join(s.TempDir(), "unprotected.yaml")
	if err := os.WriteFile(file, []byte(strings.Join(kept, "")), 0o600); err != nil {
		s.Fatal(err)
	}
	return file
}

// evictedBy reads from the output which plugin evicted a pod.
var evictedBy = regexp.MustCompile(`"Evicted pod".*strategy="(\w+)"`)

// totalEvicted is the number of evictions of a round in the output.
var totalEvicted = regexp.MustCompile(`totalEvicted=(\d+)`)

// round runs the descheduler once with a policy, as its service account. It returns the plugins that evicted a pod.
func (s *suite) round(binary, kubeconfig, policy string) []string {
	s.Helper()
	out, err := exec.CommandContext(s.Context(), binary, "--kubeconfig", kubeconfig, "--policy-config-file", policy,
		"--secure-port", "0", "--v", "1").CombinedOutput()
	if err != nil {
		s.Fatalf("descheduler: %v\n%s", err, out)
	}
	var by []string
	for _, m := range evictedBy.FindAllStringSubmatch(string(out), -1) {
		by = append(by, m[1])
	}
	total := totalEvicted.FindStringSubmatch(string(out))
	if total == nil || total[1] != strconv.Itoa(len(by)) || strings.Contains(string(out), "forbidden") {
		s.Fatalf("%d evictions are in the output:\n%s", len(by), out)
	}
	return by
}

// TestDescheduler: pods fill two nodes, and two more nodes become available. The descheduler evicts pods for three
// reasons, kumiki places their replacements on the other nodes, and the cluster settles: later rounds evict nothing.
// The running gang of a Job is never touched.
func TestDescheduler(t *testing.T) {
	s := newCluster(t, testcluster.Options{Nodes: -1, NoHeartbeats: true})
	s.addNodes("a", "b", "c", "d")
	s.twoNodes(true)
	s.schedule(allGangs)
	binary, err := Descheduler.Build(t.Context(), s.root)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := s.installed(Descheduler)
	for _, name := range []string{"services.yaml", "small-gang.yaml"} {
		text, err := os.ReadFile(filepath.Join(s.root, "docs/tasks/files", name))
		if err != nil {
			t.Fatal(err)
		}
		s.apply(string(text))
	}
	gang := s.runs("default", "train-", 4)
	all := func() {
		for prefix, n := range services {
			s.runs("default", prefix, n)
		}
	}
	all()
	s.twoNodes(false)
	s.has(4) // their taints are removed a moment later
	policy := filepath.Join(s.root, "docs/tasks/files/descheduler.yaml")
	var by []string
	quiet := 0
	for rounds := 0; quiet < 3; rounds++ {
		if rounds == 10 {
			t.Fatalf("the cluster does not settle: evictions by %v", by)
		}
		these := s.round(binary, kubeconfig, policy)
		t.Logf("round %d: evictions by %v", rounds+1, these)
		by = append(by, these...)
		quiet++
		if len(these) > 0 {
			quiet = 0
		}
		all()
	}
	plugins := []string{"RemoveDuplicates", "RemovePodsViolatingTopologySpreadConstraint", "LowNodeUtilization"}
	for _, plugin := range plugins {
		if !slices.Contains(by, plugin) {
			t.Errorf("%s evicted nothing", plugin)
		}
	}
	if left := s.runs("default", "train-", 4); !maps.Equal(left, gang) {
		t.Error("a pod of the gang was evicted")
	}
	// Two pods of the gang share a node, so that RemoveDuplicates evicts some if nothing protects them.
	s.round(binary, kubeconfig, s.unprotected(policy))
	if left := s.runs("default", "train-", 4); maps.Equal(left, gang) {
		t.Error("without the protections of the policy, no pod of the gang is evicted either: the scenario shows nothing")
	}
}
