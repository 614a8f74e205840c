// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"

	configv1 "k8s.io/kube-scheduler/config/v1"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// EngineConfig resolves a configuration to what the engine runs: plugins made, in the order in which they run.
func EngineConfig(c config.Resolved) (engine.Config, error) {
	out := engine.Config{
		Seed:           c.Kumiki.Seed,
		InitialBackoff: record.Time(c.PodInitialBackoff),
		MaxBackoff:     record.Time(c.PodMaxBackoff),
	}
	for _, p := range c.Profiles {
		made, less, err := profile(p)
		if err != nil {
			return engine.Config{}, fmt.Errorf("profile %q: %w", p.SchedulerName, err)
		}
		out.Profiles = append(out.Profiles, made)
		out.Less = less // the same in all profiles, or the configuration would not be valid
	}
	return out, nil
}

// profile makes the plugins of one profile, each once.
func profile(p config.Profile) (engine.Profile, plugin.Less, error) {
	out := engine.Profile{Name: p.SchedulerName}
	made := map[string]plugin.Plugin{} // name -> the one instance
	at := func(point config.Point) ([]plugin.Plugin, error) {
		var list []plugin.Plugin
		for _, name := range p.Enabled[point] {
			if made[name] == nil {
				reg, built := plugin.Lookup(name)
				if !built {
					continue // config knows the name; see NotActing
				}
				pl, err := reg.New(arguments(name, p.Args))
				if err != nil {
					return nil, err
				}
				made[name] = pl
				if w, wakes := pl.(plugin.Waker); wakes {
					out.Wakers = append(out.Wakers, w)
				}
			}
			list = append(list, made[name])
		}
		return list, nil
	}
	var less plugin.Less
	// In the order of the cycle, so that Wakers have an order too.
	for _, point := range []config.Point{
		config.PreEnqueue, config.QueueSort, config.PreFilter, config.Filter, config.PostFilter, config.PreScore, config.Score,
		config.Reserve, config.Permit, config.PreBind, config.Bind, config.PostBind,
	} {
		list, err := at(point)
		if err != nil {
			return engine.Profile{}, nil, fmt.Errorf("%s: %w", point, err)
		}
		for _, pl := range list {
			switch point {
			case config.PreEnqueue:
				out.Gates = append(out.Gates, pl.(plugin.Gate))
			case config.QueueSort:
				less = pl.(plugin.Less)
			case config.Filter:
				out.Filters = append(out.Filters, pl.(plugin.Filter))
			case config.Score:
				out.Scorers = append(out.Scorers, place.Scorer{Scorer: pl.(plugin.Scorer), Weight: p.Weights[pl.Name()]})
			}
		}
	}
	return out, less, nil
}

// arguments turns a plugin's arguments from the file's form to the plugin's.
func arguments(name string, a config.Args) any {
	switch name {
	case plugin.NodeAffinityName:
		return plugin.NodeAffinityArgs{AddedAffinity: a.NodeAffinity.AddedAffinity}
	case plugin.NodeResourcesFitName:
		return fitArguments(a.NodeResourcesFit)
	case plugin.NodeResourcesBalancedAllocationName:
		return plugin.BalancedArgs{Resources: weighted(a.NodeResourcesBalancedAllocation.Resources)}
	}
	return nil
}

func fitArguments(a configv1.NodeResourcesFitArgs) plugin.FitArgs {
	out := plugin.DefaultFitArgs()
	out.IgnoredResources, out.IgnoredResourceGroups = a.IgnoredResources, a.IgnoredResourceGroups
	if s := a.ScoringStrategy; s != nil {
		out.Strategy = plugin.Strategy(s.Type)
		out.Resources = weighted(s.Resources)
		if s.RequestedToCapacityRatio != nil {
			for _, point := range s.RequestedToCapacityRatio.Shape {
				out.Shape = append(out.Shape, plugin.ShapePoint{Utilization: int64(point.Utilization), Score: int64(point.Score)})
			}
		}
	}
	return out
}

func weighted(list []configv1.ResourceSpec) []plugin.WeightedResource {
	out := make([]plugin.WeightedResource, len(list))
	for i, r := range list {
		out[i] = plugin.WeightedResource{Name: v1.ResourceName(r.Name), Weight: r.Weight}
	}
	return out
}
