// SPDX-License-Identifier: Apache-2.0

package kumiki

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Profile goes the way of a configuration file: written as YAML, read strictly by
// package config, made into plugins.
func Profile(p *scenario.Profile) (engine.Profile, error) {
	text, err := File(p)
	if err != nil {
		return engine.Profile{}, err
	}
	resolved, err := config.Parse(text)
	if err != nil {
		return engine.Profile{}, err
	}
	return plugins(resolved.Profiles[0])
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
	return yaml.Marshal(object{
		"apiVersion": "kubescheduler.config.k8s.io/v1",
		"kind":       "KubeSchedulerConfiguration",
		"profiles": []object{{
			"schedulerName": oracle.SchedulerName,
			"plugins":       object{"multiPoint": object{"disabled": []object{{"name": "*"}}, "enabled": enabled}},
			"pluginConfig":  args,
		}},
	})
}

// plugins makes the plugins of a resolved profile.
func plugins(p config.Profile) (engine.Profile, error) {
	fit, err := plugin.NewNodeResourcesFit(fitArgs(&p.Args))
	if err != nil {
		return engine.Profile{}, err
	}
	balanced, err := plugin.NewNodeResourcesBalancedAllocation(plugin.BalancedArgs{Resources: weighted(p.Args.NodeResourcesBalancedAllocation.Resources)})
	if err != nil {
		return engine.Profile{}, err
	}
	affinity, err := plugin.NewNodeAffinity(plugin.NodeAffinityArgs{AddedAffinity: p.Args.NodeAffinity.AddedAffinity})
	if err != nil {
		return engine.Profile{}, err
	}
	all := map[string]plugin.Plugin{} // name -> plugin
	for _, pl := range []plugin.Plugin{
		plugin.SchedulingGates{}, plugin.PrioritySort{}, plugin.NodeUnschedulable{}, plugin.NodeName{}, plugin.TaintToleration{},
		affinity, plugin.NodePorts{}, fit, balanced, plugin.ImageLocality{}, plugin.DefaultBinder{},
	} {
		all[pl.Name()] = pl
	}
	out := engine.Profile{Name: p.SchedulerName}
	for _, name := range p.Enabled[config.PreEnqueue] {
		out.Gates = append(out.Gates, all[name].(plugin.Gate))
	}
	for _, name := range p.Enabled[config.Filter] {
		out.Filters = append(out.Filters, all[name].(plugin.Filter))
	}
	for _, name := range p.Enabled[config.Score] {
		out.Scorers = append(out.Scorers, place.Scorer{Scorer: all[name].(plugin.Scorer), Weight: p.Weights[name]})
	}
	seen := map[string]bool{} // plugin -> listed as a waker
	for _, at := range []config.Point{config.PreEnqueue, config.PreFilter, config.Filter} {
		for _, name := range p.Enabled[at] {
			if w, ok := all[name].(plugin.Waker); ok && !seen[name] {
				seen[name] = true
				out.Wakers = append(out.Wakers, w)
			}
		}
	}
	if len(out.Gates)+len(out.Filters)+len(out.Scorers) == 0 {
		return out, fmt.Errorf("profile %s enables no plugin that decides anything", p.SchedulerName)
	}
	return out, nil
}
