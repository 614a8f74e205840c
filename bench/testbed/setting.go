// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/usage"
)

// Setting is a setting of a scheduler that a benchmark varies, with a value above 0.
type Setting struct {
	Name  string
	Value int
}

// The settings. Parallelism is the number of goroutines for one decision, Procs the number of processors of the
// scheduler's process, and InFlight kumiki's maximum number of concurrent binds.
const (
	Parallelism = "parallelism"
	Procs       = "GOMAXPROCS"
	InFlight    = "inFlightBinds"
)

// SettingNames are the settings.
var SettingNames = []string{Parallelism, Procs, InFlight}

// ParseSettings reads NAME=VALUE,VALUE and returns a setting for each value.
func ParseSettings(text string) ([]Setting, error) {
	name, list, _ := strings.Cut(text, "=")
	if !slices.Contains(SettingNames, name) {
		return nil, usage.Errorf("--set %q: the setting must be one of %s, as in %s=1,2,4", text,
			strings.Join(SettingNames, ", "), Parallelism)
	}
	var out []Setting
	for value := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > 1<<16 {
			return nil, usage.Errorf("--set %q: a value must be from 1 to %d, got %q", text, 1<<16, value)
		}
		s := Setting{name, n}
		if slices.Contains(out, s) {
			return nil, usage.Errorf("--set %q: %d is there twice", text, n)
		}
		out = append(out, s)
	}
	return out, nil
}

// in returns a configuration with the setting.
func (s Setting) in(config string) (string, error) {
	if s.Name != Parallelism && s.Name != InFlight {
		return config, nil
	}
	var c map[string]any // field -> value
	if err := yaml.Unmarshal([]byte(config), &c); err != nil {
		return "", err
	}
	if s.Name == Parallelism {
		c[Parallelism] = s.Value
	} else if err := setArgs(c, InFlight, s.Value); err != nil {
		return "", err
	}
	text, err := yaml.Marshal(c)
	return string(text), err
}

// setArgs sets an argument of kumiki in all profiles of a configuration; one that has none gets the default one.
func setArgs(c map[string]any, name string, value any) error {
	profiles, _ := c["profiles"].([]any)
	if len(profiles) == 0 {
		profiles = []any{map[string]any{"schedulerName": "default-scheduler"}}
	}
	for _, p := range profiles {
		profile, ok := p.(map[string]any)
		if !ok {
			return fmt.Errorf("a profile of the configuration is %v", p)
		}
		list, _ := profile["pluginConfig"].([]any)
		at := slices.IndexFunc(list, func(one any) bool {
			plugin, ok := one.(map[string]any)
			return ok && plugin["name"] == "Kumiki"
		})
		if at < 0 {
			at, list = len(list), append(list, map[string]any{"name": "Kumiki"})
		}
		under(list[at].(map[string]any), "args")[name] = value
		profile["pluginConfig"] = list
	}
	c["profiles"] = profiles
	return nil
}

// limits returns the limits of a process with the setting.
func (s Setting) limits(l report.GoLimits) report.GoLimits {
	if s.Name == Procs {
		l.Procs = s.Value
	}
	return l
}
