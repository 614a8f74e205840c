// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/conformance/gen"
)

// pluginConfig makes valid arguments for some plugins, in an order of its own.
func pluginConfig(r *gen.Rand, seed int) list {
	kinds := map[string]func(*gen.Rand) object{ // plugin -> generator of its arguments
		"DefaultPreemption": preemptionArgs, "DynamicResources": deviceArgs, "InterPodAffinity": podAffinityArgs,
		"NodeAffinity": nodeAffinityArgs, "NodeResourcesBalancedAllocation": balancedArgs, "NodeResourcesFit": fitArgs,
		"PodTopologySpread": spreadArgs, "VolumeBinding": volumeArgs,
	}
	out := list{}
	for _, name := range gen.Some(r, r.Range(0, 4), "VolumeBinding", "DefaultPreemption", "DynamicResources", "InterPodAffinity", "NodeAffinity",
		"NodeResourcesBalancedAllocation", "NodeResourcesFit", "PodTopologySpread") {
		entry := object{"name": name}
		if !r.Rare(12) {
			args := kinds[name](r)
			maybe(r, args, "kind", 20, func() any { return name + "Args" })
			if args["kind"] != nil {
				args["apiVersion"] = "kubescheduler.config.k8s.io/v1"
			}
			entry["args"] = args
		}
		out = append(out, entry)
	}
	if r.Chance(10) {
		out = append(out, object{"name": gen.Pick(r, "NodeName", "ImageLocality"), "args": object{}})
	}
	if r.Chance(30) {
		out = append(out, object{"name": "Kumiki", "args": kumikiArgs(r, seed)})
	}
	return out
}

// kumikiArgs are our own settings; seed is the same for all profiles of a file.
func kumikiArgs(r *gen.Rand, seed int) object {
	o := object{}
	maybe(r, o, "seed", 50, func() any { return seed })
	maybe(r, o, "inFlightBinds", 30, func() any { return 100 })
	maybe(r, o, "fitScoresReal", 30, func() any { return r.Chance(50) })
	maybe(r, o, "syncPreemption", 30, func() any { return r.Chance(50) })
	maybe(r, o, "preemption", 20, func() any {
		return object{"budgets": gen.Pick(r, "BestEffort", "Strict"), "victimTimeout": gen.Pick(r, "0s", "90s"),
			"after": gen.Pick(r, "0s", "30s")}
	})
	maybe(r, o, "strategy", 60, func() any { return gen.Pick(r, "all", "window", "randomSubset", "powerOfTwo") })
	maybe(r, o, "gangs", 20, func() any { // the same in all profiles of a file, too
		return object{"podgroup": []string{"Auto", "On", "Off"}[seed%3], "sigs": true,
			"pfnet": object{"prefix": "example.com/gang"}, "scaleUp": object{"for": "10m"}}
	})
	maybe(r, o, "fit", 20, func() any { return "resources" }) // slots want their filter
	if seed%4 == 0 {                                          // the same in all profiles of a file, if only some of them say it
		maybe(r, o, "cycle", 50, func() any { return "sessions" })
	}
	if o["strategy"] == "randomSubset" {
		o["subset"] = r.Range(1, 500)
	}
	return o
}

func preemptionArgs(r *gen.Rand) object {
	o := object{}
	maybe(r, o, "minCandidateNodesPercentage", 60, func() any { return gen.Pick(r, 0, 1, 50, 100) })
	maybe(r, o, "minCandidateNodesAbsolute", 60, func() any { return gen.Pick(r, 1, 7, 100000) })
	return o
}

func deviceArgs(r *gen.Rand) object {
	o := object{}
	maybe(r, o, "filterTimeout", 60, func() any { return gen.Pick[any](r, "0s", "5s", "1h", nil) })
	maybe(r, o, "bindingTimeout", 60, func() any { return gen.Pick[any](r, "1s", "20m", nil) })
	return o
}

func podAffinityArgs(r *gen.Rand) object {
	o := object{}
	maybe(r, o, "hardPodAffinityWeight", 60, func() any { return gen.Pick[any](r, 0, 1, 50, 100, nil) })
	maybe(r, o, "ignorePreferredTermsOfExistingPods", 60, func() any { return r.Chance(50) })
	return o
}

func volumeArgs(r *gen.Rand) object {
	o := object{}
	maybe(r, o, "bindTimeoutSeconds", 60, func() any { return gen.Pick[any](r, 0, 1, 600, 86400, nil) })
	return o
}

func requirement(r *gen.Rand) object {
	op := gen.Pick(r, "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
	o := object{"key": gen.Pick(r, "zone", "example.com/rack"), "operator": op}
	switch op {
	case "In", "NotIn":
		o["values"] = list{"a", "b"}
	case "Gt", "Lt":
		o["values"] = list{"5"}
	}
	return o
}

func nodeSelectorTerm(r *gen.Rand) object {
	o := object{}
	maybe(r, o, "matchExpressions", 70, func() any { return list{requirement(r)} })
	maybe(r, o, "matchFields", 20, func() any {
		return list{object{"key": "metadata.name", "operator": "In", "values": list{"n1"}}}
	})
	return o
}

func nodeAffinityArgs(r *gen.Rand) object {
	o, added := object{}, object{}
	maybe(r, added, "requiredDuringSchedulingIgnoredDuringExecution", 50, func() any {
		return object{"nodeSelectorTerms": list{nodeSelectorTerm(r), nodeSelectorTerm(r)}}
	})
	maybe(r, added, "preferredDuringSchedulingIgnoredDuringExecution", 50, func() any {
		return list{object{"weight": r.Range(1, 100), "preference": nodeSelectorTerm(r)}}
	})
	maybe(r, o, "addedAffinity", 70, func() any { return added })
	return o
}

func resources(r *gen.Rand, weights ...int) list {
	out := list{}
	for _, name := range gen.Some(r, r.Range(0, 3), "cpu", "memory", "ephemeral-storage", "example.com/gpu") {
		o := object{"name": name}
		maybe(r, o, "weight", 60, func() any { return gen.Pick(r, weights...) })
		out = append(out, o)
	}
	return out
}

func balancedArgs(r *gen.Rand) object {
	o := object{}
	maybe(r, o, "resources", 70, func() any { return resources(r, 0, 1) })
	return o
}

func fitArgs(r *gen.Rand) object {
	o := object{}
	maybe(r, o, "ignoredResources", 40, func() any { return list{"example.com/a", "b"} })
	maybe(r, o, "ignoredResourceGroups", 40, func() any { return list{"example.com"} })
	maybe(r, o, "scoringStrategy", 60, func() any {
		s := object{"type": gen.Pick(r, "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")}
		maybe(r, s, "resources", 60, func() any { return resources(r, 0, 1, 5, 100) })
		if s["type"] == "RequestedToCapacityRatio" {
			s["requestedToCapacityRatio"] = object{"shape": list{
				object{"utilization": r.Range(0, 50), "score": r.Range(0, 10)}, object{"utilization": r.Range(51, 100), "score": r.Range(0, 10)}}}
		}
		return s
	})
	return o
}

func spreadArgs(r *gen.Rand) object {
	o := object{}
	switch r.Intn(4) {
	case 0:
		o["defaultingType"] = "System"
	case 1, 2:
		o["defaultingType"] = "List"
		constraints := list{}
		for i := range r.Range(0, 3) {
			c := object{"maxSkew": r.Range(1, 9), "topologyKey": fmt.Sprintf("example.com/key-%d", i),
				"whenUnsatisfiable": gen.Pick(r, "DoNotSchedule", "ScheduleAnyway")}
			maybe(r, c, "minDomains", 10, func() any { return 2 })
			maybe(r, c, "nodeAffinityPolicy", 10, func() any { return "Honor" })
			constraints = append(constraints, c)
		}
		o["defaultConstraints"] = constraints
	}
	return o
}
