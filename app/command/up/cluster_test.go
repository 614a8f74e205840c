// SPDX-License-Identifier: Apache-2.0

package up

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestUpOnce runs the demonstration on a real cluster: everything that can run does, what waits is explained, and
// nothing is left behind.
func TestUpOnce(t *testing.T) {
	var out, progress bytes.Buffer
	err := Run(context.Background(), Options{Nodes: 10, Once: true, Timeout: 2 * time.Minute, Out: &out,
		Err: &progress})
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out.String(), progress.String())
	}
	for _, want := range []string{
		`demo +Deployment/web +24 +24 +24 +0 +0 `,
		`demo +DaemonSet/agent +10 +10 +10 `,
		`demo +Job/train +2 +2 +0 +2 `,
		`demo +Pod/huge-pages +1 +1 +1 +0 +0 +1\n`,
		`pod demo/too-big: Pending, 0/10 nodes fit\n`,
		`9 +NodeResourcesFit +Insufficient cpu`,
		`1 +TaintToleration +node\(s\) had untolerated taint\(s\) +gpu-0000\n`,
		`pod demo/gated: Gated, waiting for 1 scheduling gate to be removed: example.com/quota\n`,
		`every pod that can run does\n`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("the report does not match %q:\n%s", want, out.String())
		}
	}
	kubeconfig := regexp.MustCompile(`export KUBECONFIG=(.*)`).FindStringSubmatch(out.String())
	if kubeconfig == nil {
		t.Fatalf("no KUBECONFIG line:\n%s", out.String())
	}
	if _, err := os.Stat(filepath.Dir(filepath.Dir(kubeconfig[1]))); !os.IsNotExist(err) {
		t.Errorf("the data directory is still there: %v", err)
	}
}

// TestUpOnceSaysNo: with manifests of the user, a pod that fails on its node makes the answer no. A pod that names its
// node itself passes by every scheduler, and the kubelet refuses it.
func TestUpOnceSaysNo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pod.yaml")
	manifest := `apiVersion: v1
kind: Pod
metadata: {name: forced}
spec:
  nodeName: node-0000
  containers:
  - name: c
    image: registry.k8s.io/pause:3.10
    resources: {requests: {cpu: "99"}}
`
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, progress bytes.Buffer
	err := Run(context.Background(), Options{Nodes: 2, File: path, Once: true, Timeout: 2 * time.Minute, Out: &out,
		Err: &progress})
	if err == nil || !strings.Contains(out.String(), "wrong: pod default/forced failed on node node-0000") {
		t.Errorf("err %v\n%s\n%s", err, out.String(), progress.String())
	}
}

// TestGangsComeUp: every example of a gang is placed, and its pods run.
func TestGangsComeUp(t *testing.T) {
	var out, progress bytes.Buffer
	err := Run(context.Background(), Options{Nodes: 4, Gangs: true, Once: true, Timeout: 2 * time.Minute, Out: &out,
		Err: &progress})
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out.String(), progress.String())
	}
	for _, job := range []string{"native", "annotated", "coscheduled", "batch", "together"} {
		if !regexp.MustCompile(`gangs +Job/` + job + ` +4 +4 `).MatchString(out.String()) {
			t.Errorf("job %s is not placed:\n%s", job, out.String())
		}
	}
}
