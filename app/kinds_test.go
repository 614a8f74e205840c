// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// TestOnlyWhatPluginsReadIsWatched: a cluster of a hundred thousand replica sets costs a scheduler nothing that does
// not spread by default.
func TestOnlyWhatPluginsReadIsWatched(t *testing.T) {
	with := func(spread configv1.PodTopologySpreadArgs, names ...string) config.Resolved {
		p := config.Profile{SchedulerName: "s", Enabled: map[config.Point][]string{config.Filter: names,
			config.Score: names}}
		p.Args.PodTopologySpread = spread
		return config.Resolved{Profiles: []config.Profile{p, {SchedulerName: "other"}},
			Features: config.DefaultFeatures()}
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
		{with(list, config.DynamicResources), "[DeviceClass DeviceTaintRule ResourceClaim ResourceSlice]"},
	} {
		if got := fmt.Sprint(Plugins{}.Kinds(c.config, engine.Config{})); got != c.want {
			t.Errorf("kinds %s, want %s", got, c.want)
		}
	}
	// The default profile reads everything.
	watched := map[cluster.Kind]bool{}
	for _, kind := range kindsOf(t, Plugins{}, config.Default()) {
		watched[kind] = true
	}
	if len(watched) != 17 {
		t.Errorf("the default profile watches %v", watched)
	}
}

// kindsOf returns the kinds that are watched for a configuration.
func kindsOf(t *testing.T, p Plugins, c config.Resolved) []cluster.Kind {
	t.Helper()
	made, err := p.EngineConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return p.Kinds(c, made)
}

// reader is a custom plugin that gates and declares kinds, as its arguments say.
type reader struct{ args readerArgs }

type readerArgs struct {
	Kinds  []cluster.Kind `json:"kinds,omitempty"`
	Events []plugin.Event `json:"events,omitempty"`
}

func (reader) Name() string { return "Reader" }

func (reader) Gated(cluster.Snapshot, *cluster.Pod) (string, bool) { return "", true }

func (r reader) Kinds() []cluster.Kind { return r.args.Kinds }

// wakingReader is a reader that declares events.
type wakingReader struct{ reader }

func (r wakingReader) Wakes() []plugin.Wake {
	var wakes []plugin.Wake
	for _, ev := range r.args.Events {
		wakes = append(wakes, plugin.Wake{Event: ev})
	}
	return wakes
}

// objectFilter declares that it reads objects, and does not say which.
type objectFilter struct{ namedFilter }

func (objectFilter) Reads() plugin.Reads { return plugin.ReadsNode | plugin.ReadsObjects }

// TestWhatACustomPluginDeclaresIsWatched: the kinds that it names, and those of its events. A profile that does not
// enable the plugin does not need them.
func TestWhatACustomPluginDeclaresIsWatched(t *testing.T) {
	kinds := func(list ...cluster.Kind) readerArgs { return readerArgs{Kinds: list} }
	register := func(args readerArgs, wakes bool) plugin.Registration {
		defaults := func() readerArgs { return args }
		if wakes {
			return plugin.WithArgs("Reader", defaults, func(a readerArgs) (wakingReader, error) {
				return wakingReader{reader{a}}, nil
			})
		}
		return plugin.WithArgs("Reader", defaults, func(a readerArgs) (reader, error) { return reader{a}, nil })
	}
	only := "  plugins: {multiPoint: {enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: %s}], " +
		"disabled: [{name: '*'}]}}\n"
	events := []plugin.Event{{Resource: plugin.StorageClassObject, Action: plugin.Add}, {Resource: plugin.Wildcard,
		Action: plugin.All}, {Resource: plugin.NodeObject, Action: plugin.Add}}
	for _, tt := range []struct {
		name    string
		plugin  plugin.Registration
		profile string
		want    string
	}{
		{"nothing", register(kinds(), false), only, "[]"},
		{"kinds", register(kinds(cluster.KindService, cluster.KindNamespace), false), only, "[Namespace Service]"},
		{"events", register(readerArgs{Events: events}, true), only, "[StorageClass]"},
		{"both", register(readerArgs{[]cluster.Kind{cluster.KindStorageClass, cluster.KindBudget}, events}, true), only,
			"[PodDisruptionBudget StorageClass]"},
		{"gangs are watched as configured", register(kinds(cluster.KindGang), false), only, "[]"},
		{"by arguments", register(kinds(), false),
			only + "  pluginConfig: [{name: Reader, args: {kinds: [CSINode]}}]\n", "[CSINode]"},
		{"not enabled", register(kinds(cluster.KindNamespace), false),
			"  plugins: {multiPoint: {enabled: [{name: PrioritySort}, {name: DefaultBinder}], disabled: [{name: '*'}]}}\n",
			"[]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := mustPlugins(t, tt.plugin)
			c, err := p.ParseConfig([]byte(fileWith(strings.ReplaceAll(tt.profile, "%s", "Reader"))))
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(kindsOf(t, p, c)); got != tt.want {
				t.Errorf("watches %s, want %s", got, tt.want)
			}
		})
	}
	for want, r := range map[string]plugin.Registration{
		`reads objects of an unknown kind "Secret"`: register(kinds("Secret"), false),
		"names no kind of them":                     plugin.WithoutArgs(objectFilter{namedFilter{"Reader"}}),
	} {
		p := mustPlugins(t, r)
		c, err := p.ParseConfig([]byte(fileWith(strings.ReplaceAll(only, "%s", "Reader"))))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.EngineConfig(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
