// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// TestOnlyWhatPluginsReadIsWatched: a cluster of a hundred thousand replica sets costs a scheduler nothing that does
// not spread by default.
func TestOnlyWhatPluginsReadIsWatched(t *testing.T) {
	with := func(spread configv1.PodTopologySpreadArgs, names ...string) config.Resolved {
		p := config.Profile{SchedulerName: "s", Enabled: map[config.Point][]string{config.Filter: names,
			config.Score: names}}
		p.Args.PodTopologySpread = spread
		return config.Resolved{Profiles: []config.Profile{p, {SchedulerName: "other"}}}
	}
	list := configv1.PodTopologySpreadArgs{DefaultingType: configv1.ListDefaulting}
	listed := list
	listed.DefaultConstraints = []v1.TopologySpreadConstraint{{TopologyKey: "zone"}}
	for _, c := range []struct {
		config config.Resolved
		want   string
	}{
		{with(list, config.NodePorts, config.NodeName), "[]"},
		{with(list, config.NodeResourcesFit), "[DeviceClass]"},
		{with(list, config.PodTopologySpread), "[]"},
		{with(listed, config.PodTopologySpread), "[ReplicaSet ReplicationController Service StatefulSet]"},
		{with(configv1.PodTopologySpreadArgs{DefaultingType: configv1.SystemDefaulting}, config.PodTopologySpread),
			"[ReplicaSet ReplicationController Service StatefulSet]"},
		{with(list, config.InterPodAffinity, config.VolumeRestrictions), "[Namespace PersistentVolumeClaim]"},
		{with(list, config.DefaultPreemption), "[PodDisruptionBudget]"},
		{with(list, config.DynamicResources), "[DeviceClass ResourceClaim ResourceSlice]"},
	} {
		if got := fmt.Sprint(Kinds(c.config)); got != c.want {
			t.Errorf("kinds %s, want %s", got, c.want)
		}
	}
	// The default profile reads everything but what its gates leave out.
	watched := map[cluster.Kind]bool{}
	for _, kind := range Kinds(config.Default()) {
		watched[kind] = true
	}
	if len(watched) != 16 || watched[cluster.KindDeviceTaint] {
		t.Errorf("the default profile watches %v", watched)
	}
}
