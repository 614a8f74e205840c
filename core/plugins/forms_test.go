// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/plugins/resources"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// randomPlugins are the plugins with random arguments.
func randomPlugins(t *rapid.T, nodes int) []plugin.Plugin {
	fit := resources.DefaultFitArgs()
	fit.Strategy = plugintest.Pick(t, []resources.Strategy{resources.LeastAllocated, resources.LeastAllocated, resources.MostAllocated, resources.RequestedToCapacityRatio}, "strategy")
	fit.ScoreReal = plugintest.Chance(t, 20, "score real")
	if fit.Strategy == resources.RequestedToCapacityRatio {
		fit.Shape = plugintest.Pick(t, [][]plugin.ShapePoint{{{Utilization: 0, Score: 0}, {Utilization: 100, Score: 10}}, {{Utilization: 0, Score: 10}, {Utilization: 100, Score: 0}}, {{Utilization: 10, Score: 3}, {Utilization: 40, Score: 9}, {Utilization: 70, Score: 0}}}, "shape")
	}
	var balanced resources.BalancedArgs
	if plugintest.Chance(t, 50, "more resources") {
		fit.Resources = nil
		for _, name := range []v1.ResourceName{"cpu", "memory", "ephemeral-storage", "example.com/gpu", "other.org/nic", "absent.org/thing"} {
			if plugintest.Chance(t, 60, string(name)) {
				fit.Resources = append(fit.Resources, resources.WeightedResource{Name: name, Weight: rapid.Int64Range(1, 100).Draw(t, "weight")})
				balanced.Resources = append(balanced.Resources, resources.WeightedResource{Name: name, Weight: 1})
			}
		}
	}
	if len(fit.Resources) == 0 {
		fit.Resources = resources.DefaultFitArgs().Resources
	}
	if len(balanced.Resources) == 0 {
		balanced = resources.DefaultBalancedArgs()
	}
	if plugintest.Chance(t, 20, "ignored") {
		fit.IgnoredResources = []string{"example.com/gpu"}
		fit.IgnoredResourceGroups = []string{"other.org"}
	}
	plugins := []plugin.Plugin{basic.NodeUnschedulable{}, basic.NodeName{}, basic.TaintToleration{}, randomNodeAffinity(t, nodes), basic.NodePorts{}, resources.NodeSlots{},
		plugintest.Must(resources.NewNodeResourcesFit(fit)), plugintest.Must(resources.NewNodeResourcesBalancedAllocation(balanced)), basic.ImageLocality{}}
	return plugins
}

func randomNodeAffinity(t *rapid.T, nodes int) *basic.NodeAffinity {
	added := &v1.NodeAffinity{}
	if plugintest.Chance(t, 30, "added required") {
		added.RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{plugintest.RandomTerm(t, nodes)}}
	}
	if plugintest.Chance(t, 30, "added preferred") {
		added.PreferredDuringSchedulingIgnoredDuringExecution = []v1.PreferredSchedulingTerm{{Weight: 7, Preference: plugintest.RandomTerm(t, nodes)}}
	}
	pl, err := basic.NewNodeAffinity(basic.NodeAffinityArgs{AddedAffinity: added})
	if err != nil { // the configuration may not hold terms that do not parse
		return plugintest.Must(basic.NewNodeAffinity(basic.NodeAffinityArgs{}))
	}
	return pl
}

// A prepared column form says what the plain form says: on the whole cluster, on part of it, on one row; also after the
// cluster has changed. Mutant: fit-column-skips-memory, and every other that is built into one form alone.
func propertyForms(t *rapid.T) {
	w, nodes := plugintest.RandomCluster(t, 200)
	s := w.Store.Snapshot()
	p := w.Intake.PendingPod(plugintest.RandomPod(t, "pending", nodes))
	all := plugintest.Prepare(s, p, randomPlugins(t, nodes))
	for step := range 3 {
		rows := cluster.NodeIdx(s.Rows())
		plugintest.CheckForms(t, s, all, 0, rows)
		if rows > 0 {
			n := cluster.NodeIdx(rapid.IntRange(0, int(rows)-1).Draw(t, "row"))
			plugintest.CheckForms(t, s, all, n, n+1)
			plugintest.CheckForms(t, s, all, n, rows)
		}
		plugintest.RandomChange(t, w, nodes, step)
	}
}

func TestColumnsSayWhatPlainFormsSay(t *testing.T) { rapid.Check(t, propertyForms) }

// The same from bytes. Run it with -fuzzminimizetime 5x: minimising inputs costs go test most of the time otherwise.
func FuzzColumnsSayWhatPlainFormsSay(f *testing.F) { f.Fuzz(rapid.MakeFuzz(propertyForms)) }
