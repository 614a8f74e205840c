// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"

	ours "github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/conformance/gen"
)

// object and list are pieces of a configuration file.
type (
	object = map[string]any
	list   = []any
)

// Case is one generated file.
type Case struct {
	Text []byte
	// Faults are what was done to a valid file, in order; empty for a valid one.
	Faults []string
}

// Generate makes the n-th case of a seed. About half of the cases are valid, most others have one fault.
func Generate(seed, n uint64) Case {
	r := gen.NewRand(seed, n)
	tree := valid(r)
	var c Case
	faults := gen.Pick(r, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2)
	for range faults {
		if name := spoil(r, tree); name != "" {
			c.Faults = append(c.Faults, name)
		}
	}
	text, err := yaml.Marshal(tree)
	if err != nil {
		panic(fmt.Sprintf("writing case %d of seed %d: %v", n, seed, err))
	}
	c.Text = text
	if faults > 0 && r.Rare(40) { // what no tree can hold
		c.Text = append(c.Text, "parallelism: 3\nparallelism: 4\n"...)
		c.Faults = append(c.Faults, "a field twice")
	}
	return c
}

// maybe sets a field in a share of the draws, given in percent.
func maybe(r *gen.Rand, o object, key string, percent int, value func() any) {
	if r.Chance(percent) {
		o[key] = value()
	}
}

func valid(r *gen.Rand) object {
	tree := object{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
	maybe(r, tree, "parallelism", 30, func() any { return r.Range(1, 64) })
	maybe(r, tree, "percentageOfNodesToScore", 30, func() any { return gen.Pick[any](r, 0, 1, 50, 100, nil) })
	maybe(r, tree, "enableProfiling", 30, func() any { return r.Chance(50) })
	maybe(r, tree, "enableContentionProfiling", 30, func() any { return r.Chance(50) })
	maybe(r, tree, "delayCacheUntilActive", 20, func() any { return r.Chance(50) })
	maybe(r, tree, "podInitialBackoffSeconds", 30, func() any { return r.Range(1, 10) })
	maybe(r, tree, "podMaxBackoffSeconds", 30, func() any { return r.Range(10, 3000) })
	maybe(r, tree, "leaderElection", 40, func() any { return leaderElection(r) })
	maybe(r, tree, "clientConnection", 40, func() any { return clientConnection(r) })
	maybe(r, tree, "profiles", 80, func() any { return profiles(r) })
	maybe(r, tree, "extenders", 30, func() any { return extenders(r) })
	return tree
}

func leaderElection(r *gen.Rand) object {
	o := object{}
	maybe(r, o, "leaderElect", 50, func() any { return r.Chance(50) })
	maybe(r, o, "leaseDuration", 40, func() any { return gen.Pick(r, "15s", "1m", "11s", "0s") })
	maybe(r, o, "renewDeadline", 40, func() any { return gen.Pick(r, "10s", "5s", "0s", "100ms") })
	maybe(r, o, "retryPeriod", 40, func() any { return gen.Pick(r, "2s", "1m", "0s") })
	maybe(r, o, "resourceLock", 20, func() any { return gen.Pick(r, "leases", "") })
	maybe(r, o, "resourceName", 30, func() any { return gen.Pick(r, "mine", "") })
	maybe(r, o, "resourceNamespace", 30, func() any { return gen.Pick(r, "elsewhere", "") })
	return o
}

func clientConnection(r *gen.Rand) object {
	o := object{}
	maybe(r, o, "kubeconfig", 50, func() any { return "/etc/kubeconfig" })
	maybe(r, o, "contentType", 30, func() any { return gen.Pick(r, "application/json", "") })
	maybe(r, o, "acceptContentTypes", 30, func() any { return "application/json" })
	maybe(r, o, "qps", 50, func() any { return gen.Pick[any](r, 5, 0.5, 1000, -1) })
	maybe(r, o, "burst", 50, func() any { return gen.Pick(r, 1, 200) })
	return o
}

func extenders(r *gen.Rand) list {
	var out list
	binder := false
	for i := range r.Range(0, 3) {
		e := object{"urlPrefix": fmt.Sprintf("http://extender-%d.example:8080/path", i)}
		maybe(r, e, "filterVerb", 60, func() any { return "filter" })
		maybe(r, e, "preemptVerb", 20, func() any { return "preempt" })
		if r.Chance(50) {
			e["prioritizeVerb"], e["weight"] = "prioritize", r.Range(1, 10)
		}
		if !binder && r.Chance(30) {
			e["bindVerb"], binder = "bind", true
		}
		maybe(r, e, "enableHTTPS", 30, func() any { return r.Chance(50) })
		maybe(r, e, "httpTimeout", 30, func() any { return gen.Pick(r, "1s", "200ms", "0s") })
		maybe(r, e, "nodeCacheCapable", 30, func() any { return r.Chance(50) })
		maybe(r, e, "ignorable", 30, func() any { return r.Chance(50) })
		maybe(r, e, "tlsConfig", 20, func() any {
			return object{"insecure": r.Chance(50), "serverName": gen.Pick(r, "", "name")}
		})
		maybe(r, e, "managedResources", 30, func() any {
			var managed list
			for j := range r.Range(1, 2) {
				managed = append(managed, object{"name": fmt.Sprintf("example.com/r%d-%d", i, j), "ignoredByScheduler": r.Chance(30)})
			}
			return managed
		})
		out = append(out, e)
	}
	return out
}

func profiles(r *gen.Rand) list {
	out := list{}
	n := gen.Pick(r, 0, 1, 1, 1, 2, 3)
	queueSort := object{}
	maybe(r, queueSort, "enabled", 10, func() any { return list{object{"name": "PrioritySort"}} })
	seed := r.Range(0, 1000)
	for i := range n {
		p := object{}
		if n > 1 || r.Chance(60) {
			p["schedulerName"] = fmt.Sprintf("scheduler-%d", i)
		}
		maybe(r, p, "percentageOfNodesToScore", 20, func() any { return gen.Pick[any](r, 0, 5, 100, nil) })
		maybe(r, p, "plugins", 60, func() any { return pluginSets(r) })
		if plugins, ok := p["plugins"].(object); ok {
			plugins["queueSort"] = clone(queueSort)
		} else if len(queueSort) > 0 {
			p["plugins"] = object{"queueSort": clone(queueSort)}
		}
		maybe(r, p, "pluginConfig", 70, func() any { return pluginConfig(r, seed) })
		out = append(out, p)
	}
	return out
}

// places: extension point -> default plugins that extend it.
var places = map[string][]string{
	"preEnqueue": {"SchedulingGates", "DynamicResources", "DefaultPreemption", "GangScheduling"},
	"preFilter":  {"NodeAffinity", "NodePorts", "NodeResourcesFit", "VolumeRestrictions", "VolumeBinding", "PodTopologySpread", "NodeDeclaredFeatures"},
	"filter": {"NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeVolumeLimits", "VolumeZone", "InterPodAffinity",
		"DynamicResources", "DeferredPodScheduling"},
	"postFilter": {"DynamicResources", "DefaultPreemption"},
	"preScore":   {"TaintToleration", "NodeAffinity", "NodeResourcesFit", "VolumeBinding", "PodTopologySpread", "InterPodAffinity", "NodeResourcesBalancedAllocation"},
	"score": {"TaintToleration", "NodeAffinity", "NodeResourcesFit", "VolumeBinding", "PodTopologySpread", "InterPodAffinity", "DynamicResources",
		"NodeResourcesBalancedAllocation", "ImageLocality"},
	"reserve":        {"VolumeBinding", "DynamicResources"},
	"preBind":        {"VolumeBinding", "DynamicResources"},
	"bind":           {"DefaultBinder"},
	"permit":         {"GangScheduling", "DeferredPodScheduling"},
	"postBind":       nil,
	"placementScore": {"NodeResourcesFit", "PodGroupPodsCount"},

	"placementGenerate":  {"TopologyPlacementGenerator"},
	"podGroupPostFilter": {"DynamicResources", "DefaultPreemption"},
}

func pluginSets(r *gen.Rand) object {
	out := object{}
	for _, point := range []string{"preEnqueue", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit", "preBind", "bind",
		"postBind", "placementGenerate", "placementScore", "podGroupPostFilter"} {
		share := 12
		if point == "score" || point == "filter" {
			share = 40
		}
		maybe(r, out, point, share, func() any { return pluginSet(r, point, places[point]) })
	}
	maybe(r, out, "multiPoint", 40, func() any { return multiPoint(r) })
	return out
}

func pluginSet(r *gen.Rand, point string, from []string) object {
	set := object{}
	var enabled, disabled list
	for _, name := range gen.Some(r, r.Range(0, 3), from...) {
		entry := object{"name": name}
		maybe(r, entry, "weight", 50, func() any { return gen.Pick(r, 0, 1, 7, 100) })
		enabled = append(enabled, entry)
	}
	if point != "bind" {
		for _, name := range gen.Some(r, r.Range(0, 2), from...) {
			disabled = append(disabled, object{"name": name})
		}
		if r.Chance(10) {
			disabled = append(disabled, object{"name": "*"})
		}
	}
	if len(enabled) > 0 || r.Chance(20) {
		set["enabled"] = enabled
	}
	if len(disabled) > 0 || r.Chance(20) {
		set["disabled"] = disabled
	}
	return set
}

// multiPoint enables and disables for all points, and always leaves the queue sorted and pods bound.
func multiPoint(r *gen.Rand) object {
	all := slices.Concat(ours.Plugins(), ours.GatedPlugins()) // kube-scheduler has no others
	var enabled, disabled list
	star := r.Chance(15)
	if star {
		disabled = append(disabled, object{"name": "*"})
		enabled = append(enabled, object{"name": "PrioritySort"}, object{"name": "DefaultBinder"})
	}
	for _, name := range gen.Some(r, r.Range(0, 5), all...) {
		if name == "PrioritySort" || name == "DefaultBinder" {
			continue
		}
		switch {
		case r.Chance(50):
			entry := object{"name": name}
			maybe(r, entry, "weight", 50, func() any { return gen.Pick(r, 0, 1, 7, 100) })
			enabled = append(enabled, entry)
		case !star:
			disabled = append(disabled, object{"name": name})
		}
	}
	return object{"enabled": enabled, "disabled": disabled}
}
