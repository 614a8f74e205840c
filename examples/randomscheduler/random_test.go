// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
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

// TestDrawsAreUniform compares the pods of each node with equal shares, for each way to choose the nodes that PreScore
// sees: chi-square stays below the limit in 99 of 100 draws. Seeds are fixed, so the test does not fail by chance.
func TestDrawsAreUniform(t *testing.T) {
	const ofTen, of200 = 21.67, 248.3 // chi-square at 1 % with 9 and with 199 degrees of freedom
	for _, tt := range []struct {
		name, settings string
		nodes, pods    int
		limit          float64
	}{
		{"all nodes", "", 10, 1000, ofTen},
		{"a window of upstream's size", "{strategy: window}", 200, 4000, of200},
		{"a random subset", "{strategy: randomSubset, subset: 4}", 10, 1000, ofTen},
	} {
		t.Run(tt.name, func(t *testing.T) {
			script := ""
			for i := range tt.nodes {
				script += fmt.Sprintf("node n%d pods=1000\n", i)
			}
			for i := range tt.pods {
				script += fmt.Sprintf("pod p%d\n", i)
			}
			made := play(t, tt.settings, script)
			square, expected := 0.0, float64(tt.pods)/float64(tt.nodes)
			for i := range tt.nodes {
				d := float64(made.Reserved(fmt.Sprint("n", i))) - expected
				square += d * d / expected
			}
			t.Logf("chi-square %.2f", square)
			if square > tt.limit {
				t.Errorf("chi-square is %.2f, want at most %.2f", square, tt.limit)
			}
		})
	}
}

// TestOneNodeFits: a pod that fits one node runs there, whatever part of the nodes a decision looks at. No node is
// drawn then: upstream scores no single node either.
func TestOneNodeFits(t *testing.T) {
	for _, settings := range []string{"", "{strategy: window}", "{strategy: randomSubset, subset: 4}"} {
		script := ""
		for i := range 200 {
			script += fmt.Sprintf("node n%d cpu=1 pods=1000\n", i)
		}
		script += "node large cpu=64 pods=1000\n"
		for i := range 30 {
			script += fmt.Sprintf("pod p%d cpu=2\n", i)
		}
		if n := play(t, settings, script).Reserved("large"); n != 30 {
			t.Errorf("with %q, %d of 30 pods run on the only node that they fit", settings, n)
		}
	}
}

// play runs a script with the profile of config.yaml and further settings of kumiki, and returns the plugin.
func play(t *testing.T, settings, script string) *random.Plugin {
	t.Helper()
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
	text, err := os.ReadFile("config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if settings != "" {
		text = bytes.ReplaceAll(text, []byte("percentageOfNodesToScore: 100\n"), nil)
		text = fmt.Appendf(text, "  - name: Kumiki\n    args: %s\n", settings)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := apptest.Play(plugins, file, script); err != nil {
		t.Fatal(err)
	}
	return made
}
