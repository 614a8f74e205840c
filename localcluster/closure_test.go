// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestClosure: what made the first start long is not compiled in again. A local cluster is built from source, so each
// package of upstream costs its users time.
func TestClosure(t *testing.T) {
	const kubernetes = "k8s.io/kubernetes/"
	unwanted := map[string]string{ // tree of packages -> why
		"pkg/scheduler":                   "a local cluster has no scheduler",
		"pkg/kubelet/cm":                  "fake nodes have no containers",
		"cmd/kube-controller-manager/app": "it imports every controller; package controllers has those that run",
		"pkg/controller/podgc":            "it imports the kubelet's eviction manager; package podgc takes its place",
	}
	// package -> who imports it in what a local cluster needs.
	small := map[string]string{
		"pkg/scheduler/util":        "counting the usage of quotas",
		"pkg/scheduler/apis/config": "kube-apiserver",
		// The garbage collector imports the configuration of all controllers.
		"pkg/controller/podgc/config":          "garbage collector",
		"pkg/controller/podgc/config/v1alpha1": "garbage collector",
	}
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("list what is compiled: %v", err)
	}
	packages := strings.Fields(string(out))
	if !slices.Contains(packages, kubernetes+"pkg/controller/job") {
		t.Fatalf("the list of %d packages lacks a controller that runs: the test would judge nothing", len(packages))
	}
	for _, path := range packages {
		name, ours := strings.CutPrefix(path, kubernetes)
		for tree, why := range unwanted {
			if ours && (name == tree || strings.HasPrefix(name, tree+"/")) && small[name] == "" {
				t.Errorf("%s is compiled in, but %s; 'go mod why' shows who imports it", path, why)
			}
		}
	}
	for name := range small {
		if !slices.Contains(packages, kubernetes+name) {
			t.Errorf("%s is not compiled in any more: remove its exception", name)
		}
	}
}
