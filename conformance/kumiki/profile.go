// SPDX-License-Identifier: Apache-2.0

package kumiki

import (
	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/host/framework"
)

// Config goes the way of a configuration file: written as YAML, read strictly by
// package config, made into plugins by package app.
func Config(p *scenario.Profile) (engine.Config, error) { return ConfigWith(p, nil) }

// ConfigWith is Config for a profile that may have plugins of kube-scheduler's framework.
func ConfigWith(p *scenario.Profile, hosted []framework.Registration) (engine.Config, error) {
	out, _, err := Hosting{Plugins: hosted}.Config(p)
	return out, err
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
func File(p *scenario.Profile) ([]byte, error) { return Hosting{}.file(p) }

func (h Hosting) file(p *scenario.Profile) ([]byte, error) {
	var enabled, renamed []object
	for _, e := range p.Plugins {
		o := object{"name": h.name(e.Name)}
		if h.name(e.Name) != e.Name {
			renamed = append(renamed, o)
		}
		if e.Weight != 0 {
			o["weight"] = e.Weight
		}
		enabled = append(enabled, o)
	}
	var args []object
	if p.NodeAffinity != nil {
		args = append(args, object{"name": h.name("NodeAffinity"), "args": p.NodeAffinity})
	}
	if p.Fit != nil {
		args = append(args, object{"name": h.name("NodeResourcesFit"), "args": p.Fit})
	}
	if p.Balanced != nil {
		args = append(args, object{"name": h.name("NodeResourcesBalancedAllocation"), "args": p.Balanced})
	}
	if p.Spread != nil {
		args = append(args, object{"name": h.name("PodTopologySpread"), "args": p.Spread})
	}
	if p.PodAffinity != nil {
		args = append(args, object{"name": h.name("InterPodAffinity"), "args": p.PodAffinity})
	}
	return yaml.Marshal(object{
		"apiVersion": "kubescheduler.config.k8s.io/v1",
		"kind":       "KubeSchedulerConfiguration",
		"profiles": []object{{
			"schedulerName": oracle.SchedulerName,
			"plugins": object{
				"multiPoint": object{"disabled": []object{{"name": "*"}}, "enabled": enabled},
				"preFilter":  object{"disabled": h.named(p.NoFilter)},
				"filter":     object{"disabled": h.named(p.NoFilter)},
				"preScore":   object{"disabled": h.named(p.NoScore)},
				"score":      object{"disabled": h.named(p.NoScore)},
				// Hosted plugins do not run at the points of pod groups.
				"placementGenerate":  object{"disabled": renamed},
				"placementScore":     object{"disabled": renamed},
				"podGroupPostFilter": object{"disabled": renamed},
			},
			"pluginConfig": args,
		}},
	})
}

func (h Hosting) named(names []string) []object {
	var out []object
	for _, n := range names {
		out = append(out, object{"name": h.name(n)})
	}
	return out
}
