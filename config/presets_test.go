// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"
	"testing"
)

// TestPresetsAreValid: each preset is read without a problem or a warning, says in its first line what it is for, and
// explains each weight in the line above it.
func TestPresetsAreValid(t *testing.T) {
	if want := []string{"binpack", "fgd", "spread"}; !slices.Equal(Presets(), want) {
		t.Errorf("presets %v, want %v", Presets(), want)
	}
	for _, name := range Presets() {
		text, err := Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Parse(text)
		if err != nil || len(c.Warnings) > 0 { // warnings too: the file is an example
			t.Errorf("%s: %v, warnings %v", name, err, c.Warnings)
		}
		if title, _ := PresetTitle(name); title == "" || !strings.HasPrefix(string(text), "# "+name+": "+title+"\n") {
			t.Errorf("%s has the title %q", name, title)
		}
		lines := strings.Split(string(text), "\n")
		for i, line := range lines {
			if strings.Contains(line, "- {name: Node") && !strings.Contains(lines[i-1], "# ") {
				t.Errorf("%s: line %d has a weight without an explanation above it", name, i+1)
			}
		}
	}
	if _, err := Preset("binpac"); err == nil || !strings.Contains(err.Error(), "binpack, fgd, spread") {
		t.Errorf("an unknown preset: %v", err)
	}
}
