// SPDX-License-Identifier: Apache-2.0

package app

import (
	"slices"
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	componentmetrics "k8s.io/component-base/metrics"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/question"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
	"github.com/kumiki-scheduler/kumiki/record"
)

// pools is a custom plugin that accepts the nodes of the storage class "pool", which its provisioner names.
type pools struct{}

func (pools) Name() string { return "Pools" }

func (pools) PrepareFilter(cluster.Snapshot, *cluster.Pod) plugin.FilterPlan {
	return plugin.FilterPlan{Filter: plugin.FilterByNode(poolFilter{})}
}

func (pools) PrepareScore(cluster.Snapshot, *cluster.Pod) plugin.PodScore {
	return plugin.ScoreByNode(poolScore{})
}

func (pools) Normal() plugin.Normal { return plugin.AsIs }

// Wakes declares that the plugin reads storage classes.
func (pools) Wakes() []plugin.Wake {
	return []plugin.Wake{{Event: plugin.Event{Resource: plugin.StorageClassObject, Action: plugin.Add}}}
}

type poolFilter struct{}

func (poolFilter) Plain(s cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	c, ok := cluster.Find[*storagev1.StorageClass](s, "", "pool")
	if ok && strings.HasPrefix(v.Node.Name, c.Provisioner) {
		return plugin.Fit
	}
	return 1
}

func (poolFilter) Reasons(plugin.Code) []string { return []string{"node(s) were not in the pool"} }

// poolScore prefers the node a2.
type poolScore struct{}

func (poolScore) Plain(_ cluster.Snapshot, v *cluster.NodeView) int64 {
	if v.Node.Name == "a2" {
		return 7
	}
	return 0
}

// TestACustomPluginInACluster: the objects that only a custom plugin reads are watched, the report on a pod names the
// plugin with its reason and the events that it waits for, a decision has its score, and metrics carry its name.
func TestACustomPluginInACluster(t *testing.T) {
	t.Parallel()
	p := mustPlugins(t, plugin.WithoutArgs(pools{}))
	c, err := p.ParseConfig([]byte(strings.Replace(fileWith("  plugins: {multiPoint: {disabled: [{name: '*'}], enabled: "+
		"[{name: PrioritySort}, {name: DefaultBinder}, {name: Pools, weight: 3}]}}\n"), "schedulerName: s",
		"schedulerName: default-scheduler", 1)))
	if err != nil {
		t.Fatal(err)
	}
	registry := componentmetrics.NewKubeRegistry()
	decisions := make(chan record.Decision, 100)
	api := newAPIServer(t)
	api.serve(t, "1.36", false)
	for _, name := range []string{"a1", "a2", "b1"} {
		api.node(t, name)
	}
	api.pod(t, "p", "")
	r := startWith(t, api, func(o *Options) {
		leader := o.Config.LeaderElection
		o.Config, o.Plugins, o.Metrics = c, p, metrics.New(registry)
		o.Config.LeaderElection = leader
		o.Observers = append(o.Observers, func(_ engine.Event, effects []engine.Effect) {
			for _, effect := range effects {
				if d, is := effect.(engine.Decided); is {
					decisions <- d.Decision
				}
			}
		})
	})
	eventually(t, r, "the plugin rejects the pod", func() bool { return r.rejected(t, "p") })
	var report record.PodReport
	if err := r.Ask(t.Context(), func(e *engine.Engine) {
		report, _ = question.New(e.View()).ExplainPod("default", "p")
	}); err != nil {
		t.Fatal(err)
	}
	if f := report.Fit; f == nil || len(f.Reasons) != 1 || f.Reasons[0].Plugin != "Pools" || f.Reasons[0].Nodes != 3 ||
		f.Reasons[0].Reason != "node(s) were not in the pool" {
		t.Errorf("reasons %+v", report.Fit)
	}
	if w := report.WaitsFor; len(w) != 1 || w[0].Plugin != "Pools" ||
		!slices.Equal(w[0].Events, []string{"storage.k8s.io/StorageClassAdd"}) {
		t.Errorf("waits for %+v", w)
	}
	api.put(t, "/apis/storage.k8s.io/v1/storageclasses", "{metadata: {name: pool}, provisioner: a}")
	r.binds(t, api, "p")
	for d := range decisions {
		if d.Winner == nil {
			continue
		}
		if s := d.Winner.Scores; len(s) != 1 || s[0].Plugin != "Pools" || s[0].Raw != 7 || s[0].Weighted != 21 {
			t.Errorf("the node that was chosen has scores %+v", s)
		}
		break
	}
	for name, labels := range map[string][]string{
		"scheduler_plugin_execution_duration_seconds": {"plugin=Pools", "extension_point=Filter"},
		"scheduler_plugin_evaluation_total":           {"plugin=Pools", "extension_point=PreFilter"},
	} {
		eventually(t, r, name+" counts the plugin", func() bool {
			return kubetest.Value(t, registry, name, labels...) > 0
		})
	}
}
