// SPDX-License-Identifier: Apache-2.0

package kumiki

import (
	v1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

func fitArgs(a *config.Args) plugin.FitArgs {
	strategy := a.NodeResourcesFit.ScoringStrategy
	out := plugin.FitArgs{
		IgnoredResources:      a.NodeResourcesFit.IgnoredResources,
		IgnoredResourceGroups: a.NodeResourcesFit.IgnoredResourceGroups,
		Strategy:              plugin.Strategy(strategy.Type),
		Resources:             weighted(strategy.Resources),
	}
	if r := strategy.RequestedToCapacityRatio; r != nil {
		for _, p := range r.Shape {
			out.Shape = append(out.Shape, plugin.ShapePoint{Utilization: int64(p.Utilization), Score: int64(p.Score)})
		}
	}
	return out
}

func weighted(specs []configv1.ResourceSpec) []plugin.WeightedResource {
	out := make([]plugin.WeightedResource, 0, len(specs))
	for _, s := range specs {
		out = append(out, plugin.WeightedResource{Name: v1.ResourceName(s.Name), Weight: s.Weight})
	}
	return out
}
