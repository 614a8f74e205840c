// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
)

// TestProblemsHaveLines: every problem of a file is reported at once, with its line and its field.
func TestProblemsHaveLines(t *testing.T) {
	bad := file(t, head+`parallelism: 0
extenders:
- urlPrefix: http://e
  prioritizeVerb: p
profiles:
- pluginConfig:
  - name: Kumiki
    args: {strategy: randomSubset}
`)
	code, out, errs := command(t, "kumiki", "config", "validate", bad)
	if code != 1 || out != "" {
		t.Errorf("code %d, stdout %q", code, out)
	}
	for _, want := range []string{"3 problems", "line 3: parallelism: must be above 0, got 0",
		"line 5: extenders[0].weight:",
		"line 10: profiles[0].pluginConfig[0].args.subset: strategy randomSubset needs a number"} {
		if !strings.Contains(errs, want) {
			t.Errorf("stderr lacks %q:\n%s", want, errs)
		}
	}
}

// TestShow: the table tells who turns the fast path off; yaml and json are files that can be used.
func TestShow(t *testing.T) {
	path := file(t, head+`extenders: [{urlPrefix: "http://e", filterVerb: f}]
percentageOfNodesToScore: 20
profiles:
- schedulerName: mine
  plugins: {multiPoint: {disabled: [{name: DefaultPreemption}]}, score: {enabled: [{name: ImageLocality, weight: 9}]}}
`)
	code, out, _ := command(t, "kumiki", "config", "show", path)
	if code != 0 {
		t.Fatalf("code %d", code)
	}
	for _, want := range []string{"profile mine", "window: nodes in turn, until 20% of them fit", "PLUGIN",
		"ImageLocality", "counts pods on other nodes",
		"comes after VolumeRestrictions",
		"extender http://e (filter): off for all pods: it is sent the name of every node that fits",
		"backoff          1s to 10s"} {
		if !strings.Contains(out, want) {
			t.Errorf("the table lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "DefaultPreemption") {
		t.Errorf("a plugin that is off is in the table:\n%s", out)
	}
	for _, format := range []string{"json", "yaml"} {
		_, out, _ := command(t, "kumiki", "config", "show", "-o", format, path)
		c, err := config.Parse([]byte(out))
		if err != nil {
			t.Errorf("-o %s is no configuration: %v\n%s", format, err, out)
		} else if c.Profiles[0].Weights[config.ImageLocality] != 9 || c.Profiles[0].Search.Strategy != config.Window {
			t.Errorf("-o %s: %+v", format, c.Profiles[0])
		}
	}
	_, out, _ = command(t, "kumiki", "config", "show", "-o", "json", "--fast-path", path)
	var d app.Description
	if err := json.Unmarshal([]byte(out), &d); err != nil || len(d.Profiles) != 1 || len(d.Profiles[0].Extenders) != 1 {
		t.Errorf("--fast-path: %v\n%s", err, out)
	}
}

// TestSchema: what is printed is JSON.
func TestSchema(t *testing.T) {
	code, out, _ := command(t, "kumiki", "config", "schema")
	var schema map[string]any
	if err := json.Unmarshal([]byte(out), &schema); code != 0 || err != nil || schema["definitions"] == nil {
		t.Errorf("code %d, %v", code, err)
	}
}
