// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/apptest"
	"github.com/kumiki-scheduler/kumiki/examples/randomscheduler/random"
	"github.com/kumiki-scheduler/kumiki/host/framework"
)

// TestScenarios runs testdata/*.txt with the profile of config.yaml.
func TestScenarios(t *testing.T) {
	plugins, err := app.Plugins{}.WithFramework(framework.Registration{Name: random.Name, Factory: random.New})
	if err != nil {
		t.Fatal(err)
	}
	apptest.Scenarios(t, plugins, "config.yaml", "testdata/*.txt")
}

// TestDrawsAreUniform places 1,000 pods on 10 nodes and compares with equal shares: chi-square with 9 degrees of freedom
// stays below 21.67 in 99 of 100 draws. The seed is fixed, so the test does not fail by chance.
func TestDrawsAreUniform(t *testing.T) {
	const nodes, pods = 10, 1000
	var made *random.Plugin
	plugins, err := app.Plugins{}.WithFramework(framework.Registration{Name: random.Name, Type: (*random.Plugin)(nil),
		Factory: func(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
			pl, err := random.New(ctx, args, h)
			made, _ = pl.(*random.Plugin)
			return pl, err
		}})
	if err != nil {
		t.Fatal(err)
	}
	script := ""
	for i := range nodes {
		script += fmt.Sprintf("node n%d pods=1000\n", i)
	}
	for i := range pods {
		script += fmt.Sprintf("pod p%d\n", i)
	}
	if _, err := apptest.Play(plugins, "config.yaml", script); err != nil {
		t.Fatal(err)
	}
	square, expected := 0.0, float64(pods)/nodes
	for i := range nodes {
		d := float64(made.Reserved(fmt.Sprint("n", i))) - expected
		square += d * d / expected
	}
	if square > 21.67 {
		t.Errorf("chi-square is %.2f, want at most 21.67", square)
	}
}
