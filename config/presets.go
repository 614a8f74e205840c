// SPDX-License-Identifier: Apache-2.0

package config

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed presets/*.yaml
var presets embed.FS

// Presets returns the names of the configuration files that come with the program, sorted.
func Presets() []string {
	files, err := presets.ReadDir("presets")
	if err != nil {
		panic(fmt.Sprintf("config: reading the embedded presets: %v", err))
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), path.Ext(f.Name())))
	}
	slices.Sort(names)
	return names
}

// Preset returns the text of a configuration file that comes with the program.
func Preset(name string) ([]byte, error) {
	if !slices.Contains(Presets(), name) {
		return nil, fmt.Errorf("there is no preset %q; there are %s", name, strings.Join(Presets(), ", "))
	}
	return presets.ReadFile("presets/" + name + ".yaml")
}

// PresetTitle returns what a preset is for: its first line.
func PresetTitle(name string) (string, error) {
	text, err := Preset(name)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	_, title, _ := strings.Cut(line, ": ")
	return title, nil
}
