// SPDX-License-Identifier: Apache-2.0

package config

import (
	"reflect"
	"strings"
	"testing"
)

// TestCandidates: multiPoint makes a plugin with undeclared points a candidate for all of them, and a point that names
// it enables it there. Candidates may sort the queue, if the profile leaves that open.
func TestCandidates(t *testing.T) {
	c, err := NewCatalog(Custom{Name: "A", Points: Points(), RawArgs: true, Undeclared: true},
		Custom{Name: "B", Points: []Point{Filter}, RawArgs: true})
	if err != nil {
		t.Fatal(err)
	}
	profile := func(plugins string) (Profile, error) {
		r, err := c.Parse([]byte(head + "profiles:\n- schedulerName: s\n  plugins: " + plugins + "\n"))
		if err != nil {
			return Profile{}, err
		}
		return r.Profiles[0], nil
	}
	p, err := profile("{multiPoint: {enabled: [{name: A}, {name: B}]}, score: {enabled: [{name: A}]}, bind: {disabled: [{name: A}]}}")
	if err != nil {
		t.Fatal(err)
	}
	want := map[Point][]string{}
	for _, at := range Points() {
		if at != Score && at != Bind {
			want[at] = []string{"A"}
		}
	}
	if !reflect.DeepEqual(p.Candidates, want) {
		t.Errorf("candidates %v, want %v", p.Candidates, want)
	}
	if !p.Runs(Filter, "A") || !p.Runs(Score, "A") || p.Runs(Bind, "A") {
		t.Errorf("enabled %v", p.Enabled)
	}
	for plugins, wrong := range map[string]string{ // order: each is compared
		"{multiPoint: {enabled: [{name: A}], disabled: [{name: PrioritySort}]}}": "",
		"{multiPoint: {enabled: [{name: A}]}, queueSort: {enabled: [{name: A}]}}": "exactly one plugin must sort the " +
			"queue, got 2",
		"{queueSort: {disabled: [{name: PrioritySort}]}}": "exactly one plugin must sort the queue, got 0",
	} {
		_, err := profile(plugins)
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v, want %q", plugins, err, wrong)
		}
	}
}

// TestEmptyName: a plugin of upstream's registry may have an empty name, and a file may enable it then. A file without
// such a plugin must name what it enables.
func TestEmptyName(t *testing.T) {
	unnamed := Custom{Points: Points(), RawArgs: true, Undeclared: true}
	c, err := NewCatalog(unnamed)
	if err != nil {
		t.Fatal(err)
	}
	text := []byte(head + `profiles: [{schedulerName: s, plugins: {reserve: {enabled: [{name: ""}]}}}]` + "\n")
	if r, err := c.Parse(text); err != nil || !r.Profiles[0].Runs(Reserve, "") {
		t.Errorf("with the plugin: %v", err)
	}
	if _, err := (Catalog{}).Parse(text); err == nil || !strings.Contains(err.Error(), "a plugin name is required") {
		t.Errorf("without the plugin: error %v", err)
	}
	unnamed.Undeclared = false
	if _, err := NewCatalog(unnamed); err == nil {
		t.Error("a plugin with declared points has no name")
	}
}
