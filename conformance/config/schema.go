// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	configv1 "k8s.io/kube-scheduler/config/v1"

	ours "github.com/kumiki-scheduler/kumiki/config"
)

const apiVersion = "kubescheduler.config.k8s.io/v1"

// Schema generates the JSON schema of configuration files (draft 7): the shape from upstream's Go types and ours,
// limits and names from what package config accepts. It holds whatever package config accepts; what only fields
// together make wrong, it cannot say.
func Schema() ([]byte, error) {
	g := &generator{definitions: object{}}
	g.of(reflect.TypeFor[configv1.KubeSchedulerConfiguration]())
	top := g.definitions["KubeSchedulerConfiguration"].(object)
	top["type"] = "object"
	top["required"] = list{"apiVersion", "kind"}
	top["properties"].(object)["apiVersion"] = object{"const": apiVersion}
	top["properties"].(object)["kind"] = object{"const": "KubeSchedulerConfiguration"}
	g.points()
	g.arguments()
	return json.MarshalIndent(object{
		"$schema":     "http://json-schema.org/draft-07/schema#",
		"title":       "KubeSchedulerConfiguration " + apiVersion + ", with the settings of kumiki",
		"$ref":        "#/definitions/KubeSchedulerConfiguration",
		"definitions": g.definitions,
	}, "", "  ")
}

// generator collects definitions by name of their type.
type generator struct{ definitions object }

// duration is what time.ParseDuration reads.
const duration = `^[-+]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$`

// of is the schema of a type. Everything may be null, which is like leaving it out.
func (g *generator) of(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[metav1.Duration]():
		return object{"type": list{"string", "null"}, "pattern": duration}
	case reflect.TypeFor[runtime.RawExtension]():
		return object{}
	case reflect.TypeFor[[]byte]():
		return object{"type": list{"string", "null"}, "contentEncoding": "base64"}
	case reflect.TypeFor[ours.Strategy]():
		return object{"enum": list{"all", "window", "randomSubset", "powerOfTwo", nil}}
	case reflect.TypeFor[ours.Cycle]():
		return object{"enum": list{"continuous", "sessions", nil}}
	case reflect.TypeFor[ours.Norm]():
		return object{"enum": list{"L1", "L2", "", nil}}
	case reflect.TypeFor[ours.Fit]():
		return object{"enum": list{"resources", "slots", nil}}
	case reflect.TypeFor[ours.Wire]():
		return object{"enum": list{"Prepared", "TypedClients", nil}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.of(t.Elem())
	case reflect.Bool:
		return object{"type": list{"boolean", "null"}}
	case reflect.String:
		return object{"type": list{"string", "null"}}
	case reflect.Int32:
		return object{"type": list{"integer", "null"}, "minimum": math.MinInt32, "maximum": math.MaxInt32}
	case reflect.Int64:
		return object{"type": list{"integer", "null"}}
	case reflect.Uint64:
		return object{"type": list{"integer", "null"}, "minimum": 0}
	case reflect.Float32:
		return object{"type": list{"number", "null"}}
	case reflect.Slice:
		return object{"type": list{"array", "null"}, "items": g.of(t.Elem())}
	case reflect.Map:
		return object{"type": list{"object", "null"}, "additionalProperties": g.of(t.Elem())}
	case reflect.Struct:
		g.define(t)
		return object{"$ref": "#/definitions/" + t.Name()}
	}
	panic(fmt.Sprintf("a configuration holds a %s", t))
}

// define adds a struct to the definitions, once.
func (g *generator) define(t reflect.Type) {
	if g.definitions[t.Name()] != nil {
		return
	}
	properties := object{}
	g.definitions[t.Name()] = object{"type": list{"object", "null"}, "additionalProperties": false, "properties": properties}
	g.fields(t, properties)
}

func (g *generator) fields(t reflect.Type, properties object) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			g.fields(f.Type, properties)
			continue
		}
		s := g.of(f.Type)
		for key, value := range limits[t.Name()+"."+name] { // order: a map is filled
			s[key] = value
		}
		properties[name] = s
	}
}

// limits are what package config demands of single fields, and what ours mean: type.field -> schema.
var limits = map[string]object{
	"KubeSchedulerConfiguration.parallelism":              {"minimum": 1, "description": "read for compatibility; kumiki decides on one goroutine"},
	"KubeSchedulerConfiguration.percentageOfNodesToScore": share,
	"KubeSchedulerProfile.percentageOfNodesToScore":       share,
	"KubeSchedulerConfiguration.podInitialBackoffSeconds": {"minimum": 1},
	"KubeSchedulerConfiguration.podMaxBackoffSeconds":     {"minimum": 1},
	"ClientConnectionConfiguration.burst":                 {"minimum": 0},
	"Plugin.weight":                                       {"minimum": 0},
	"DefaultPreemptionArgs.minCandidateNodesPercentage":   {"minimum": 0, "maximum": 100},
	"DefaultPreemptionArgs.minCandidateNodesAbsolute":     {"minimum": 0},
	"InterPodAffinityArgs.hardPodAffinityWeight":          {"minimum": 0, "maximum": 100},
	"VolumeBindingArgs.bindTimeoutSeconds":                {"minimum": 0},
	"ScoringStrategy.type":                                {"enum": list{"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"}},
	"UtilizationShapePoint.utilization":                   {"minimum": 0, "maximum": 100},
	"UtilizationShapePoint.score":                         {"minimum": 0, "maximum": 10},
	"PodTopologySpreadArgs.defaultingType":                {"enum": list{"", "System", "List", nil}},
	"TopologySpreadConstraint.maxSkew":                    {"minimum": 1},
	"TopologySpreadConstraint.whenUnsatisfiable":          {"enum": list{"DoNotSchedule", "ScheduleAnyway"}},
	"NodeResourcesBestFitArgs.norm": {
		"description": "how what is left of several resources becomes one number: L1, their weighted mean, or L2, " +
			"the square root of the weighted mean of squares; default L1"},
	"NodeResourcesBestFitArgs.demandWeights": {
		"description": "the weight of each resource is multiplied by what pods request of it on average, those seen " +
			"so far and the pod itself, as a share of the largest node; default false"},
	"NodeResourcesFragmentationArgs.resources": {
		"description": "resources whose weight is not 1; every resource that pods request counts"},
	"KumikiArgs.seed":              {"description": "seed of random choices; the same in all profiles; default 1"},
	"KumikiArgs.inFlightBinds":     {"minimum": 1, "description": "maximum number of binds in flight; the same in all profiles; default 100"},
	"KumikiArgs.strategy":          {"description": "which nodes that fit are ranked; without it, window if percentageOfNodesToScore is above 0, else all"},
	"KumikiArgs.subset":            {"minimum": 1, "description": "number of nodes that randomSubset ranks"},
	"KumikiArgs.syncPreemption":    {"description": "a pod may be tried again before the evictions for it are carried out"},
	"KumikiArgs.preemption":        {"description": "rules for evictions in addition to DefaultPreemptionArgs"},
	"PreemptionArgs.budgets":       {"enum": list{"BestEffort", "Strict", nil}, "description": "BestEffort evicts against a disruption budget if there is no other capacity, Strict never; default BestEffort"},
	"PreemptionArgs.victimTimeout": {"description": "how long after its grace period the capacity of a terminating pod still counts as becoming free, in preemption with gangs; at most 24h, 0s without limit; default 5m"},
	"PreemptionArgs.after":         {"description": "how long a pod or gang waits for new nodes, since it was first rejected, before pods are evicted for it; at most 24h; default 0s"},
	"KumikiArgs.fitScoresReal":     {"description": "NodeResourcesFit scores what containers request, without assumptions about those that request nothing"},
	"KumikiArgs.cycle":             {"description": "when pods are tried: continuous, as soon as an event may help them; sessions, all together on one snapshot of the cluster; the same in all profiles; default continuous"},
	"KumikiArgs.sessionPeriod":     {"description": "the time from the end of a session to the start of the next, 100ms to 1h; only with cycle sessions, the same in all profiles; default 5s"},
	"KumikiArgs.fit":               {"description": "what makes a node full: resources, or slots, with which each node holds one pod regardless of its requests; default resources"},
	"KumikiArgs.wire": {"description": "how binds and events are sent: Prepared, requests prepared once per kind, or " +
		"TypedClients, client-go's; the same in all profiles; default Prepared"},
	"KumikiArgs.hosted": {"description": "limits for plugins that are written for kube-scheduler's framework; " +
		"the same in all profiles"},
	"HostedArgs.pluginTimeout": {"description": "how long a call of a plugin may take; one that takes longer is " +
		"an error; at most 1h, 0s without limit; default 0s"},
	"HostedArgs.slowCall": {"description": "how long a call of a plugin takes that is logged and counted as " +
		"slow; at most 1h, 0s for none; default 1s"},
	"HostedArgs.reuse": {"enum": list{"None", "Signed", nil}, "description": "which verdicts of Filter are used for " +
		"several pods: Signed, those of plugins that sign the pods alike, on nodes that have not changed, for 500ms; " +
		"default None"},
	"HostedArgs.check": {"description": "compare what is lent to a plugin before and after each call, and log and " +
		"count plugins that modify it; for tests; default false"},
	"KumikiArgs.instances": {"description": "how several instances share the cluster; the same in all profiles; " +
		"default: one, which decides everything"},
	"InstancesArgs.mode": {"type": list{"string", "boolean", "null"}, "enum": list{"Off", "Shared", false, nil},
		"description": "Off, this process decides everything in one loop, or Shared, planners propose placements to " +
			"the loop; default Off"},
	"InstancesArgs.local": {"minimum": 1, "maximum": 63, "description": "number of planners in this process; only " +
		"with mode Shared; default 4"},
	"InstancesArgs.lending": {"enum": list{"Auto", "Always", "Never", nil}, "description": "which units planners " +
		"decide: Auto, those that call extenders, and all while the scheduling loop is busy; only with mode Shared; " +
		"default Auto"},
	"KumikiArgs.gangs":     {"description": "which declarations of gangs count; the same in all profiles; default: native pod groups, if they can be read"},
	"GangsArgs.podgroup":   onOff("Auto"),
	"GangsArgs.annotation": onOff(),
	"GangsArgs.sigs":       onOff(),
	"GangsArgs.volcano":    onOff(),
	"GangsArgs.hold":       {"description": "when capacity is reserved for a blocked gang; one gang at a time"},
	"HoldArgs.after":       {"description": "how long a gang must have been blocked before capacity is reserved; default 10s"},
	"HoldArgs.for":         {"description": "how long capacity is reserved at most, 0s for no reservation; default 5m"},
	"HoldArgs.backfill":    onOff(),
	"HoldArgs.evictablePriorityClasses": {"description": "PriorityClasses whose pods may be evicted for gangs of " +
		"their priority or more, and use reserved capacity until then"},
	"GangsArgs.scaleUp": {
		"description": "how long a blocked gang requests nodes from an autoscaler"},
	"ScaleUpArgs.for": {
		"description": "how long its pods have the reason Unschedulable, since it was first blocked and after each " +
			"pause; at most 24h, 0s without limit; default 0s"},
	"ScaleUpArgs.pause": {
		"description": "how long they then have the reason SchedulingGated, which autoscalers ignore; 1s to 24h; " +
			"default 30m"},
	"PfnetArgs.prefix": {"description": "prefix of the names of the annotations: PREFIX-name and PREFIX-size"},
}

// onOff is a switch; YAML reads On and Off as booleans unless they are quoted.
func onOff(more ...any) object {
	return object{"type": list{"string", "boolean", "null"}, "enum": append(list{"On", "Off", true, false, nil}, more...)}
}

var share = object{"minimum": 0, "maximum": 100,
	"description": "above 0: kube-scheduler's window of nodes, with this share; 0 or absent: kumiki evaluates all nodes"}

// points gives each extension point its own set, with the names of the plugins that extend it.
func (g *generator) points() {
	properties := g.definitions["Plugins"].(object)["properties"].(object)
	for name := range properties { // order: a map is filled
		enabled := object{"$ref": "#/definitions/Plugin"}
		if names := ours.PluginsAt(ours.Point(name)); len(names) > 0 {
			enabled = object{"allOf": list{enabled, object{"properties": object{"name": object{"enum": names}}}}}
		} else {
			enabled = object{"not": object{}} // no plugin extends this point
		}
		properties[name] = object{"type": list{"object", "null"}, "additionalProperties": false, "properties": object{
			"enabled":  object{"type": list{"array", "null"}, "items": enabled},
			"disabled": object{"type": list{"array", "null"}, "items": object{"$ref": "#/definitions/Plugin"}},
		}}
	}
	delete(g.definitions, "PluginSet")
}

// arguments ties the arguments in pluginConfig to the name that they are for.
func (g *generator) arguments() {
	entry := g.definitions["PluginConfig"].(object)
	entry["properties"].(object)["name"] = object{"enum": append(ours.Catalog{}.Plugins(), ours.Kumiki)}
	var ties list
	for _, t := range []reflect.Type{
		reflect.TypeFor[configv1.DefaultPreemptionArgs](), reflect.TypeFor[configv1.DynamicResourcesArgs](), reflect.TypeFor[configv1.InterPodAffinityArgs](),
		reflect.TypeFor[configv1.NodeAffinityArgs](), reflect.TypeFor[configv1.NodeResourcesBalancedAllocationArgs](),
		reflect.TypeFor[configv1.NodeResourcesFitArgs](), reflect.TypeFor[configv1.PodTopologySpreadArgs](), reflect.TypeFor[configv1.VolumeBindingArgs](),
		reflect.TypeFor[ours.NodeResourcesBestFitArgs](), reflect.TypeFor[ours.NodeResourcesDotProductArgs](),
		reflect.TypeFor[ours.NodeResourcesFragmentationArgs](), reflect.TypeFor[ours.KumikiArgs](),
	} {
		ref := g.of(t)
		if properties := g.definitions[t.Name()].(object)["properties"].(object); t != reflect.TypeFor[ours.KumikiArgs]() {
			properties["kind"] = object{"enum": list{"", t.Name(), nil}}
			properties["apiVersion"] = object{"enum": list{"", apiVersion, nil}}
		}
		ties = append(ties, object{
			"if":   object{"required": list{"name"}, "properties": object{"name": object{"const": strings.TrimSuffix(t.Name(), "Args")}}},
			"then": object{"properties": object{"args": ref}},
		})
	}
	entry["allOf"] = ties
}
