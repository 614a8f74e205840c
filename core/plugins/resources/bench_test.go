// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

func fitWith(strategy Strategy) *NodeResourcesFit {
	args := DefaultFitArgs()
	if args.Strategy = strategy; strategy == RequestedToCapacityRatio {
		args.Shape = []plugin.ShapePoint{{Utilization: 0, Score: 0}, {Utilization: 100, Score: 10}}
	}
	return plugintest.Must(NewNodeResourcesFit(args))
}

func BenchmarkColumnFit(b *testing.B) {
	for _, name := range []string{"plain", "gpu", "port", "whale"} {
		plugintest.BenchColumn(b, fitWith(LeastAllocated), name)
	}
}

func BenchmarkColumnFitMost(b *testing.B) { plugintest.BenchColumn(b, fitWith(MostAllocated), "plain") }
func BenchmarkColumnFitRatio(b *testing.B) {
	plugintest.BenchColumn(b, fitWith(RequestedToCapacityRatio), "plain")
}

func BenchmarkColumnBalanced(b *testing.B) {
	plugintest.BenchColumn(b, plugintest.Must(NewNodeResourcesBalancedAllocation(DefaultBalancedArgs())), "plain")
}

func BenchmarkColumnBalancedThree(b *testing.B) {
	plugintest.BenchColumn(b, plugintest.Must(NewNodeResourcesBalancedAllocation(BalancedArgs{append(DefaultBalancedArgs().Resources, WeightedResource{"example.com/gpu", 1})})), "gpu")
}
