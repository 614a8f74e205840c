// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"math"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/bench/core"
)

// ablated takes SCHEDULER~PLUGIN apart: a scheduler whose configuration disables a plugin at every point. Without ~ the plugin
// is empty.
func ablated(name string) (scheduler, plugin string) {
	scheduler, plugin, _ = strings.Cut(name, "~")
	return scheduler, plugin
}

// disable takes a plugin out of all profiles of a configuration; one that has none gets the default one.
func disable(config, plugin string) (string, error) {
	var c map[string]any // field -> value
	if err := yaml.Unmarshal([]byte(config), &c); err != nil {
		return "", err
	}
	profiles, _ := c["profiles"].([]any)
	if len(profiles) == 0 {
		profiles = []any{map[string]any{"schedulerName": "default-scheduler"}}
	}
	for _, p := range profiles {
		profile, ok := p.(map[string]any)
		if !ok {
			return "", fmt.Errorf("a profile of the configuration is %v", p)
		}
		multiPoint := under(under(profile, "plugins"), "multiPoint")
		disabled, _ := multiPoint["disabled"].([]any)
		multiPoint["disabled"] = append(disabled, map[string]any{"name": plugin})
	}
	c["profiles"] = profiles
	text, err := yaml.Marshal(c)
	return string(text), err
}

// under is a mapping in a field of another, made when it is missing.
func under(m map[string]any, field string) map[string]any {
	inner, ok := m[field].(map[string]any)
	if !ok {
		inner = map[string]any{}
		m[field] = inner
	}
	return inner
}

// ablate adds kumiki without each of the plugins to those that are measured, and kumiki itself if it is missing.
func (o *Options) ablate(plugins []string) error {
	if err := core.CheckAblatable(plugins); err != nil {
		return err
	}
	add := func(name string) {
		for _, s := range o.Schedulers {
			if s == name {
				return
			}
		}
		o.Schedulers = append(o.Schedulers, name)
	}
	if len(plugins) > 0 {
		add(Kumiki)
	}
	for _, p := range plugins {
		add(Kumiki + "~" + p)
	}
	return nil
}

// costs are what plugins cost that some row lacks, against the row that has it.
func costs(rows []WorkloadRow) []string {
	var out []string
	for i := range rows {
		name, plugin := ablated(rows[i].Scheduler)
		if plugin == "" {
			continue
		}
		for k := range rows {
			if with := &rows[k]; with.Scheduler == name {
				share := 1 - float64(rows[i].Latency.P99)/float64(with.Latency.P99)
				out = append(out, fmt.Sprintf("%s costs %s %s of the p99, and %s CPU seconds of %s", plugin, name,
					percentText(share), number("%.2f", with.CPU.Median-rows[i].CPU.Median), number("%.2f", with.CPU.Median)))
			}
		}
	}
	return out
}

func percentText(share float64) string {
	if math.IsInf(share, 0) {
		share = math.NaN()
	}
	return number("%.0f %%", 100*share)
}
