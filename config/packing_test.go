// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"
	"testing"
)

const packingFile = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    score: {enabled: [{name: NodeResourcesBestFit, weight: 7}, {name: NodeResourcesFragmentation}]}
  pluginConfig:
  - name: NodeResourcesBestFit
    args:
      norm: L2
      demandWeights: true
      resources:
      - {name: cpu}
      - {name: nvidia.com/gpu, weight: 4}
`

// TestOptionalPluginsAreOffByDefault: no point of the default profile has them, and a file can enable them at score.
func TestOptionalPluginsAreOffByDefault(t *testing.T) {
	for _, point := range Points() {
		for _, name := range OptionalPlugins() {
			if Default().Profiles[0].Runs(point, name) {
				t.Errorf("the default profile runs %s at %s", name, point)
			}
		}
	}
	c, err := Parse([]byte(packingFile))
	if err != nil {
		t.Fatal(err)
	}
	p := c.Profiles[0]
	if p.Weights[NodeResourcesBestFit] != 7 || p.Weights[NodeResourcesFragmentation] != 1 {
		t.Errorf("weights %v", p.Weights)
	}
	if a := p.Args.NodeResourcesBestFit; a.Norm != L2 || !a.DemandWeights || len(a.Resources) != 2 || a.Resources[0].Weight != 1 ||
		a.Resources[1].Weight != 4 {
		t.Errorf("arguments %+v", a)
	}
}

// TestPackingArgumentsReadBack: the effective configuration has the arguments of the optional plugins that it enables,
// no others, and means the same.
func TestPackingArgumentsReadBack(t *testing.T) {
	c, err := Parse([]byte(packingFile))
	if err != nil {
		t.Fatal(err)
	}
	wire, err := c.Wire()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, pc := range wire.Profiles[0].PluginConfig {
		if slices.Contains(OptionalPlugins(), pc.Name) {
			names = append(names, pc.Name)
		}
	}
	if want := []string{NodeResourcesBestFit, NodeResourcesFragmentation}; !slices.Equal(names, want) {
		t.Errorf("arguments of %v, want %v", names, want)
	}
}

// TestWrongPackingArguments: each mistake is reported with its line and field.
func TestWrongPackingArguments(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"norm: L2", "norm: L3", `line 9: profiles[0].pluginConfig[0].args.norm: must be one of [L1 L2], got "L3"`},
		{"{name: cpu}", "{name: nvidia.com/gpu}",
			`line 13: profiles[0].pluginConfig[0].args.resources[1].name: resource "nvidia.com/gpu" is given twice`},
		{"weight: 4", "weight: 101", "line 13: profiles[0].pluginConfig[0].args.resources[1].weight: " +
			"the weight of nvidia.com/gpu must be between 1 and 100, got 101"},
		{"{name: cpu}", "{weight: 2}",
			"line 12: profiles[0].pluginConfig[0].args.resources[0].name: a resource name is required"},
		{"norm: L2", "nrm: L2", `line 9: profiles[0].pluginConfig[0].args.nrm: unknown field`},
		{"name: NodeResourcesBestFit\n", "name: NodeResourcesFragmentation\n",
			`line 9: profiles[0].pluginConfig[0].args.norm: unknown field`},
		{"score:", "filter:", `plugin "NodeResourcesBestFit" does not extend filter; it extends score`},
	} {
		text := strings.Replace(packingFile, c.old, c.new, 1)
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s instead of %s: %v, want %q", c.new, c.old, err, c.want)
		}
	}
}
