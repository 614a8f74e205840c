// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"slices"

	ours "github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/conformance/gen"
)

// slot is a place in a file that holds a value.
type slot struct {
	path string
	get  func() any
	set  func(any)
}

// slots lists every place of a tree, parents first, in a fixed order.
func slots(path string, value any) []slot {
	var out []slot
	switch v := value.(type) {
	case object:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			here := key
			if path != "" {
				here = path + "." + key
			}
			out = append(out, slot{here, func() any { return v[key] }, func(x any) { v[key] = x }})
			out = append(out, slots(here, v[key])...)
		}
	case list:
		for i := range v {
			here := fmt.Sprintf("%s[%d]", path, i)
			out = append(out, slot{here, func() any { return v[i] }, func(x any) { v[i] = x }})
			out = append(out, slots(here, v[i])...)
		}
	}
	return out
}

// spoil does one thing to a tree that may make it wrong, and says what. It says nothing where it found no place for it.
func spoil(r *gen.Rand, tree object) string {
	all := slots("", tree)
	switch r.Intn(10) {
	case 0:
		return unknownKey(r, tree, all)
	case 1:
		return twice(r, all)
	case 2:
		return contradict(r, tree)
	}
	s := gen.Pick(r, all...)
	if _, isNumber := s.get().(int); !isNumber && r.Chance(60) { // numbers and names are where the rules are
		s = gen.Pick(r, all...)
	}
	value := awkward(r, s.get())
	s.set(value)
	return fmt.Sprintf("%s = %#v", s.path, value)
}

// awkward returns a value that may be wrong, to replace another.
func awkward(r *gen.Rand, old any) any {
	same := r.Chance(75) // of the same type
	_, number := old.(int)
	_, text := old.(string)
	switch {
	case number && same:
		return gen.Pick[any](r, -1, 0, 1, 101, 1<<31, int64(1)<<40, int64(1)<<62, -(int64(1) << 40), 1.5)
	case text && same:
		return gen.Pick[any](r, "", " ", "a b", "*", "x", "a/b/c", "cpu", "requests.example.com/x", "kubernetes.io/x", "EBSLimits", "GangScheduling",
			"NodeName", "ImageLocality", "PrioritySort", "0s", "-1s", "1ns", "300000h", "leases", "endpoints", "In", "window", "nodename")
	}
	return gen.Pick[any](r, nil, true, "text", 3, -3, 2.5, list{}, object{}, list{1}, object{"name": "x"})
}

// unknownKey adds a field that no type has.
func unknownKey(r *gen.Rand, tree object, all []slot) string {
	objects, paths := []object{tree}, []string{""}
	for _, s := range all {
		if o, ok := s.get().(object); ok {
			objects, paths = append(objects, o), append(paths, s.path)
		}
	}
	i := r.Intn(len(objects))
	key := gen.Pick(r, "bogus", "Name", "Weight", "parallelism ", "args2")
	objects[i][key] = gen.Pick[any](r, 1, "x", object{}, nil)
	return fmt.Sprintf("%s gets %q", paths[i], key)
}

// twice repeats an element of a list.
func twice(r *gen.Rand, all []slot) string {
	var lists []slot
	for _, s := range all {
		if l, ok := s.get().(list); ok && len(l) > 0 {
			lists = append(lists, s)
		}
	}
	if len(lists) == 0 {
		return ""
	}
	s := gen.Pick(r, lists...)
	l := s.get().(list)
	i := r.Intn(len(l))
	s.set(append(slices.Clone(l), clone(l[i])))
	return fmt.Sprintf("%s[%d] twice", s.path, i)
}

func clone(v any) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for key, value := range v { // order: a map is filled
			out[key] = clone(value)
		}
		return out
	case list:
		out := list{}
		for _, value := range v {
			out = append(out, clone(value))
		}
		return out
	}
	return v
}

// contradict sets fields that do not go together, each of which would do alone.
func contradict(r *gen.Rand, tree object) string {
	args := func(name string, args object) {
		profile := object{"schedulerName": "only", "pluginConfig": list{object{"name": name, "args": args}}}
		tree["profiles"] = list{profile}
	}
	plugins := func(sets object) { tree["profiles"] = list{object{"plugins": sets}} }
	one := func(name string) list { return list{object{"name": name}} }
	cases := []struct {
		name string
		do   func()
	}{
		{"backoffs in the wrong order", func() { tree["podInitialBackoffSeconds"], tree["podMaxBackoffSeconds"] = 20, 10 }},
		{"only a large first backoff", func() { tree["podInitialBackoffSeconds"] = 20; delete(tree, "podMaxBackoffSeconds") }},
		{"lease in the wrong order", func() {
			tree["leaderElection"] = object{"leaderElect": r.Chance(80), "leaseDuration": "3s", "renewDeadline": "3s"}
		}},
		{"a lock for no election", func() { tree["leaderElection"] = object{"leaderElect": false, "resourceLock": "endpoints"} }},
		{"arguments for the order of the queue", func() {
			sorter := list{object{"name": "PrioritySort", "args": object{"a": 1}}}
			tree["profiles"] = list{object{"schedulerName": "a", "pluginConfig": sorter}, object{"schedulerName": "b"}}
		}},
		{"no candidates", func() {
			args("DefaultPreemption", object{"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0})
		}},
		{"system defaults and a list", func() {
			args("PodTopologySpread", object{"defaultConstraints": list{object{"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule"}}})
		}},
		{"shape without its strategy", func() {
			args("NodeResourcesFit", object{"scoringStrategy": object{"type": gen.Pick(r, "LeastAllocated", "MostAllocated"),
				"requestedToCapacityRatio": object{"shape": list{object{"utilization": 1, "score": 1}}}}})
		}},
		{"strategy without its shape", func() {
			args("NodeResourcesFit", object{"scoringStrategy": object{"type": "RequestedToCapacityRatio"}})
		}},
		{"empty shape", func() {
			args("NodeResourcesFit", object{"scoringStrategy": object{"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": object{"shape": list{}}}})
		}},
		{"falling shape", func() {
			args("NodeResourcesFit", object{"scoringStrategy": object{"type": "RequestedToCapacityRatio",
				"requestedToCapacityRatio": object{"shape": list{object{"utilization": 9, "score": 1}, object{"utilization": r.Range(7, 9), "score": 1}}}}})
		}},
		{"shape of volumes", func() { args("VolumeBinding", object{"shape": list{object{"utilization": 0, "score": 1}}}) }},
		{"empty shape of volumes", func() { args("VolumeBinding", object{"shape": list{}}) }},
		{"heavy balance", func() {
			args("NodeResourcesBalancedAllocation", object{"resources": list{object{"name": "cpu", "weight": 2}}})
		}},
		{"a constraint with a selector", func() {
			args("PodTopologySpread", object{"defaultingType": "List", "defaultConstraints": list{
				object{"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": object{}}}})
		}},
		{"wrong arguments of a plugin that is off", func() {
			off := object{"multiPoint": object{"disabled": one("NodeResourcesFit")}}
			args := list{object{"name": "NodeResourcesFit", "args": object{"ignoredResourceGroups": list{"a/b"}}}}
			tree["profiles"] = list{object{"plugins": off, "pluginConfig": args}}
			delete(tree, "extenders")
		}},
		{"enabled twice at multiPoint", func() {
			name := gen.Pick(r, "DefaultBinder", "NodeName")
			point := map[string]string{"DefaultBinder": "bind", "NodeName": "filter"}[name]
			plugins(object{"multiPoint": object{"enabled": append(one(name), one(name)...)}, point: object{"enabled": one(name)}})
		}},
		{"a negative weight", func() {
			point := gen.Pick(r, "score", "filter")
			plugins(object{point: object{"enabled": list{object{"name": "TaintToleration", "weight": -r.Range(1, 5)}}}})
		}},
		{"nobody sorts", func() { plugins(object{"queueSort": object{"disabled": one("*")}}) }},
		{"nobody binds", func() { plugins(object{"bind": object{"disabled": one("DefaultBinder")}}) }},
		{"nothing at all", func() { plugins(object{"multiPoint": object{"disabled": one("*")}}) }},
		{"wrong point", func() {
			point := gen.Pick(r, "score", "bind", "permit", "placementGenerate", "podGroupPostFilter")
			plugins(object{point: object{"enabled": one("NodeName")}})
		}},
		{"queues sorted in two ways", func() {
			tree["profiles"] = list{object{"schedulerName": "a", "plugins": object{"queueSort": object{"enabled": one("PrioritySort")}}}, object{"schedulerName": "b"}}
		}},
		{"two binders", func() {
			tree["extenders"] = list{object{"urlPrefix": "http://a", "bindVerb": "b"}, object{"urlPrefix": "http://b", "bindVerb": "b"}}
		}},
		{"weightless extender", func() { tree["extenders"] = list{object{"urlPrefix": "http://a", "prioritizeVerb": "p"}} }},
		{"an extender without time", func() {
			tree["extenders"] = list{object{"urlPrefix": "http://a", "filterVerb": "f", "httpTimeout": gen.Pick(r, "-1s", "-1ns", "1ns")}}
		}},
		{"an extender with a file", func() {
			tree["extenders"] = list{object{"urlPrefix": "http://a", "filterVerb": "f", "tlsConfig": object{"caFile": "/nowhere/ca.pem"}}}
		}},
		{"odd resource of an extender", func() {
			tree["extenders"] = list{object{"urlPrefix": "http://a", "filterVerb": "f", "managedResources": one(gen.Pick(r, "cpu", "a b", "x.kubernetes.io/y",
				"requests.a.b/c", "example.com/ok"))}}
		}},
		{"odd TLS of an extender", func() {
			tls := gen.Pick(r, object{"insecure": true, "caData": "aGVsbG8="}, object{"caData": "aGVsbG8="}, object{"insecure": true, "caFile": "/ca"},
				object{"certData": "aGVsbG8=", "keyData": "aGVsbG8="}, object{"certData": "aGVsbG8="}, object{"keyFile": "/k"}, object{"caFile": "/nowhere"})
			tree["extenders"] = list{object{"urlPrefix": "https://a", "filterVerb": "f", "enableHTTPS": r.Chance(50), "tlsConfig": tls}}
		}},
		{"a plugin of a gate, twice", func() {
			name := gen.Pick(r, ours.GatedPlugins()...)
			plugins(object{"multiPoint": object{"enabled": append(one(name), one(name)...)}})
		}},
		{"evictions for groups, twice", func() {
			twice := append(one("DefaultPreemption"), one("DefaultPreemption")...)
			plugins(object{"podGroupPostFilter": object{"enabled": twice}})
		}},
		{"arguments of nobody", func() { args("Nobody", object{"a": 1}) }},
		{"wrong kind of arguments", func() {
			args("NodeResourcesFit", object{"kind": "NodeAffinityArgs", "apiVersion": "kubescheduler.config.k8s.io/v1"})
		}},
		{"wrong version of arguments", func() {
			args("NodeResourcesFit", object{"kind": "NodeResourcesFitArgs", "apiVersion": "kubescheduler.config.k8s.io/v1beta3"})
		}},
		{"no fit, but a resource to ignore", func() {
			plugins(object{"multiPoint": object{"disabled": one("NodeResourcesFit")}})
			tree["extenders"] = list{object{"urlPrefix": "http://a", "filterVerb": "f", "managedResources": list{object{"name": "a.b/c", "ignoredByScheduler": true}}}}
		}},
	}
	c := gen.Pick(r, cases...)
	c.do()
	return c.name
}
