// SPDX-License-Identifier: Apache-2.0

package kumiki

import (
	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/release"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/host/framework"
)

// Config goes the way of a configuration file: written as YAML, read strictly by
// package config, made into plugins by package app.
func Config(p *scenario.Profile) (engine.Config, error) { return ConfigWith(p, nil) }

// ConfigWith is Config for a profile that may have plugins of kube-scheduler's framework.
func ConfigWith(p *scenario.Profile, hosted []framework.Registration) (engine.Config, error) {
	text, err := File(p)
	if err != nil {
		return engine.Config{}, err
	}
	plugins, err := app.Plugins{}.WithFramework(hosted...)
	if err != nil {
		return engine.Config{}, err
	}
	plugins = plugins.With(release.Features())
	resolved, err := plugins.ParseConfig(text)
	if err != nil {
		return engine.Config{}, err
	}
	return plugins.EngineConfig(resolved)
}

// Profile is the one profile of Config.
func Profile(p *scenario.Profile) (engine.Profile, error) {
	c, err := Config(p)
	if err != nil {
		return engine.Profile{}, err
	}
	return c.Profiles[0], nil
}

// object is a piece of a configuration file.
type object = map[string]any

// File is the profile as a KubeSchedulerConfiguration v1.
func File(p *scenario.Profile) ([]byte, error) {
	var enabled []object
	for _, e := range p.Plugins {
		o := object{"name": e.Name}
		if e.Weight != 0 {
			o["weight"] = e.Weight
		}
		enabled = append(enabled, o)
	}
	var args []object
	if p.NodeAffinity != nil {
		args = append(args, object{"name": "NodeAffinity", "args": p.NodeAffinity})
	}
	if p.Fit != nil {
		args = append(args, object{"name": "NodeResourcesFit", "args": p.Fit})
	}
	if p.Balanced != nil {
		args = append(args, object{"name": "NodeResourcesBalancedAllocation", "args": p.Balanced})
	}
	if p.Spread != nil {
		args = append(args, object{"name": "PodTopologySpread", "args": p.Spread})
	}
	if p.PodAffinity != nil {
		args = append(args, object{"name": "InterPodAffinity", "args": p.PodAffinity})
	}
	return yaml.Marshal(object{
		"apiVersion": "kubescheduler.config.k8s.io/v1",
		"kind":       "KubeSchedulerConfiguration",
		"profiles": []object{{
			"schedulerName": oracle.SchedulerName,
			"plugins": object{
				"multiPoint": object{"disabled": []object{{"name": "*"}}, "enabled": enabled},
				"preFilter":  object{"disabled": named(p.NoFilter)},
				"filter":     object{"disabled": named(p.NoFilter)},
				"preScore":   object{"disabled": named(p.NoScore)},
				"score":      object{"disabled": named(p.NoScore)},
			},
			"pluginConfig": args,
		}},
	})
}

func named(names []string) []object {
	var out []object
	for _, n := range names {
		out = append(out, object{"name": n})
	}
	return out
}
