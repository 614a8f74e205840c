// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// zoneArgs are the arguments of zones.
type zoneArgs struct {
	Label string `json:"label"`
}

// zones is a custom plugin that scores and takes arguments.
type zones struct{}

func (zones) Name() string { return "Zones" }

func (zones) PrepareScore(cluster.Snapshot, *cluster.Pod) plugin.PodScore { return nil }

func (zones) Normal() plugin.Normal { return plugin.AsIs }

// quotas is a custom plugin that gates and takes no arguments.
type quotas struct{}

func (quotas) Name() string { return "Quotas" }

func (quotas) Gated(cluster.Snapshot, *cluster.Pod) (string, bool) { return "", true }

// custom runs a command line of a program with zones and quotas.
func custom(t *testing.T, line ...string) (code int, out, complaints string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	newZones := func(a zoneArgs) (zones, error) {
		if a.Label == "" {
			return zones{}, errors.New("label must not be empty")
		}
		return zones{}, nil
	}
	code = Run(context.Background(), line, strings.NewReader(""), &stdout, &stderr,
		WithPlugin(plugin.WithArgs("Zones", func() zoneArgs { return zoneArgs{"zone"} }, newZones)),
		WithPlugin(plugin.WithoutArgs(quotas{})))
	return code, stdout.String(), stderr.String()
}

// schemaOf returns the schema that a command line prints, the plugins that can be enabled at a point, and those that
// pluginConfig can name.
func schemaOf(t *testing.T, text string) (enabled func(config.Point) []any, configured []any, ties string) {
	t.Helper()
	type object = map[string]any
	var all object
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	definitions := all["definitions"].(object)
	enabled = func(at config.Point) []any {
		point := definitions["Plugins"].(object)["properties"].(object)[string(at)].(object)
		items := point["properties"].(object)["enabled"].(object)["items"].(object)
		if items["allOf"] == nil {
			return nil
		}
		return items["allOf"].([]any)[1].(object)["properties"].(object)["name"].(object)["enum"].([]any)
	}
	entry := definitions["PluginConfig"].(object)
	text2, err := json.Marshal(entry["allOf"])
	if err != nil {
		t.Fatal(err)
	}
	return enabled, entry["properties"].(object)["name"].(object)["enum"].([]any), string(text2)
}

// TestSchemaHasCustomPlugins: the schema has a custom plugin at its extension points and in pluginConfig, and the
// default arguments of one that takes arguments. Without custom plugins it is the schema of the default plugins.
func TestSchemaHasCustomPlugins(t *testing.T) {
	_, out, _ := command(t, "kumiki", "config", "schema")
	if out != string(config.Schema()) {
		t.Error("without custom plugins, the schema is not that of the default plugins")
	}
	enabled, configured, ties := schemaOf(t, out)
	code, out, errs := custom(t, "kumiki", "config", "schema")
	if code != 0 {
		t.Fatalf("code %d: %s", code, errs)
	}
	enabledBoth, configuredBoth, tiesBoth := schemaOf(t, out)
	for _, at := range append([]config.Point{config.MultiPoint}, config.Points()...) {
		want := enabled(at)
		switch at {
		case config.MultiPoint:
			want = append(want, "Zones", "Quotas")
		case config.Score:
			want = append(want, "Zones")
		case config.PreEnqueue:
			want = append(want, "Quotas")
		}
		if got := enabledBoth(at); !slices.Equal(got, want) {
			t.Errorf("at %s: %v, want %v", at, got, want)
		}
	}
	last := len(configured) - 1 // Kumiki
	if want := slices.Insert(slices.Clone(configured), last, any("Zones"), "Quotas"); !slices.Equal(configuredBoth, want) {
		t.Errorf("pluginConfig takes %v, want %v", configuredBoth, want)
	}
	want := strings.TrimSuffix(ties, "]") + `,{"if":{"properties":{"name":{"const":"Zones"}},"required":["name"]},` +
		`"then":{"properties":{"args":{"default":{"label":"zone"},` +
		`"description":"arguments of the custom plugin Zones","type":["object","null"]}}}}]`
	if tiesBoth != want {
		t.Errorf("arguments:\n%s\nwant\n%s", tiesBoth, want)
	}
}

// TestConfigOfACustomPlugin: validate reports mistakes in the use of a custom plugin with their line, and show has its
// points, its weight, whether it is cached, and its arguments.
func TestConfigOfACustomPlugin(t *testing.T) {
	profile := func(args string) string {
		return head + "profiles:\n- plugins: {multiPoint: {enabled: [{name: Zones, weight: 4}, {name: Quotas}]}}\n" +
			"  pluginConfig:\n" + args
	}
	good := file(t, profile("  - {name: Zones, args: {label: rack}}\n"))
	for _, tt := range []struct {
		line      []string
		code      int
		out, errs string // each must be contained
	}{
		{[]string{"validate", good}, 0, "is valid: 1 profile(s)", ""},
		{[]string{"validate", file(t, profile("  - {name: Zones, args: {lable: rack}}\n"))}, 1, "",
			"line 6: profiles[0].pluginConfig[0].args.lable: unknown field"},
		{[]string{"validate", file(t, profile("  - {name: Zones, args: {label: ''}}\n"))}, 1, "",
			`plugin "Zones": label must not be empty`},
		{[]string{"validate", file(t, profile("  - {name: Quotas, args: {label: rack}}\n"))}, 0, "is valid",
			`plugin "Quotas" takes no arguments`},
		{[]string{"validate", file(t, strings.Replace(profile("  - {name: Zones}\n"), "multiPoint", "filter", 1))}, 1, "",
			`plugin "Zones" does not extend filter; it extends score`},
		{[]string{"show", good}, 0, " Zones 4 - off pods that it does not skip: may read more than the node", ""},
		{[]string{"show", "-o", "wide", good}, 0, " Quotas preEnqueue - - ", ""},
		{[]string{"show", "-o", "yaml", good}, 0, " - args: label: rack name: Zones ", ""},
		{[]string{"show", "-o", "yaml", good}, 0, " - name: Zones weight: 4 ", ""},
	} {
		code, out, errs := custom(t, append([]string{"kumiki", "config"}, tt.line...)...)
		out = strings.Join(strings.Fields(out), " ") + " "
		if code != tt.code || !strings.Contains(out, tt.out) || !strings.Contains(errs, tt.errs) {
			t.Errorf("%v: code %d, want %d\nstdout: %s\nstderr: %s", tt.line, code, tt.code, out, errs)
		}
	}
	if code, _, errs := command(t, "kumiki", "config", "validate", good); code != 1 ||
		!strings.Contains(errs, `line 4: profiles[0].plugins.multiPoint.enabled[0].name: unknown plugin "Zones"`) {
		t.Errorf("a program without the plugins: code %d, %s", code, errs)
	}
	_, shown, _ := custom(t, "kumiki", "config", "show", "-o", "yaml", good)
	if code, _, errs := custom(t, "kumiki", "config", "validate", file(t, shown)); code != 0 {
		t.Errorf("what show prints is not valid: %s", errs)
	}
}
