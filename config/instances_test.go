// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
)

// TestInstances: how several instances share the cluster.
func TestInstances(t *testing.T) {
	for body, want := range map[string]Instances{
		"":                                 {NotShared, 0, ""},
		own("{instances: {}}"):             {NotShared, 0, ""},
		own("{instances: {mode: Off}}"):    {NotShared, 0, ""},
		own("{instances: {mode: Shared}}"): {Shared, 4, LendAuto},
		own("{instances: {mode: Shared, local: 63, lending: Always}}"): {Shared, 63, LendAlways},
		own("{instances: {mode: Shared, local: 1, lending: Never}}"):   {Shared, 1, LendNever},
	} {
		if got := parse(t, body).Kumiki.Instances; got != want {
			t.Errorf("%s: %v, want %v", body, got, want)
		}
	}
	for args, want := range map[string]string{
		"{mode: Hash}":                       `mode: must be one of [Off Shared], got "Hash"`,
		"{mode: Shared, local: 0}":           "local: must be at least 1 and at most 63, got 0",
		"{mode: Shared, local: -1}":          "local: must be at least 1 and at most 63, got -1",
		"{mode: Shared, local: 64}":          "local: must be at least 1 and at most 63, got 64",
		"{mode: Shared, local: many}":        "local: want a whole number",
		"{mode: Shared, lending: Sometimes}": `lending: must be one of [Auto Always Never], got "Sometimes"`,
		"{local: 4}":                         "local: only allowed with mode Shared, it is Off",
		"{mode: Off, lending: Auto}":         "lending: only allowed with mode Shared, it is Off",
		"{mode: Shared, ack: One}":           "ack: ",
	} {
		expect(t, own("{instances: "+args+"}"), first+"instances."+want)
	}
	expect(t, own("{cycle: sessions, instances: {mode: Shared}}"),
		first+"instances: mode Shared is not allowed with cycle sessions")
	two := "profiles:\n- schedulerName: a\n  pluginConfig: [{name: Kumiki, args: {instances: {mode: Shared}}}]\n" +
		"- schedulerName: b\n  pluginConfig: [{name: Kumiki, args: {instances: {mode: Off}}}]\n"
	expect(t, two, "profiles[1].pluginConfig[0].args.instances: must be the same as in "+
		"profiles[0].pluginConfig[0].args.instances (mode Shared, local 4, lending Auto)")
}

// Local planners do not have the API objects that plugins of kube-scheduler's framework read. Fault: such a plugin
// decides at planners, on objects that it does not find.
func TestInstancesWithPluginsOfTheFramework(t *testing.T) {
	c, err := NewCatalog(Custom{Name: "Native", Points: []Point{Filter}},
		Custom{Name: "Hosted", Points: []Point{Filter}, RawArgs: true, Framework: true})
	if err != nil {
		t.Fatal(err)
	}
	file := func(mode, plugin string) string {
		return head + "profiles:\n- schedulerName: a\n  pluginConfig: [{name: Kumiki, args: {instances: {mode: " + mode + "}}}]\n" +
			"- schedulerName: b\n  plugins: {filter: {enabled: [{name: " + plugin + "}]}}\n"
	}
	for _, text := range []string{file("Shared", "Native"), file("Off", "Hosted")} {
		if _, err := c.Parse([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	_, err = c.Parse([]byte(file("Shared", "Hosted")))
	want := "profiles[0].pluginConfig[0].args.instances: mode Shared is not allowed with plugin Hosted of kube-scheduler's " +
		"framework, which profiles[1] enables: "
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
