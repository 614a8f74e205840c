// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// layer says what one package may import of kumiki, and what the package is for.
type layer struct {
	may []string
	why string
}

// below joins lists of packages.
func below(lists ...[]string) []string { return slices.Concat(lists...) }

// The layers, lowest first. Every name is the directory of a package.
var (
	upToCluster = []string{"record", "core/resource", "core/cluster", "core/cluster/convert"}
	upToPlugin  = below(upToCluster, []string{"core/plugin"})
	upToPlace   = below(upToPlugin, []string{"core/queue", "core/place"})
	upToPlugins = below(upToPlugin, []string{"core/plugins/internal/nodematch"})
	subjects    = []string{"core/plugins/basic", "core/plugins/packing", "core/plugins/podaffinity",
		"core/plugins/resources", "core/plugins/spread", "core/plugins/volumes"}
	plugins  = below([]string{"core/plugins"}, subjects)
	upToGang = below(upToPlace, []string{"core/gang", "core/preempt", "core/preempt/victim", "core/preempt/units", "core/shard",
		"core/replica"})
	upToEvict   = below(upToGang, []string{"core/deadline", "core/evict"})
	upToEngine  = below(upToEvict, []string{"core/message", "core/blocked", "core/state", "core/engine"})
	upToAnswers = below(upToEngine, []string{"core/answers", "core/question", "core/recording"})
	// formsOfCounters are forms of data that counters of pods use.
	formsOfCounters = []string{"core/cluster/internal/labelindex", "core/cluster/internal/sparse"}
	partsOfKube     = []string{"kube/call", "kube/gangapi", "kube/metrics", "kube/intake", "kube/effects",
		"kube/wire", "kube/serve", "kube/incident", "kube/instances"}
	benchmarks = []string{"bench/usage", "bench/report", "bench/testbed"}
	profiles   = []string{"apm", "apm/bottleneck", "apm/bundle", "apm/compare", "apm/journey", "apm/outside",
		"apm/pipeline", "apm/pods", "apm/timeline"}
	edges = below(upToAnswers, partsOfKube,
		[]string{"config", "host/...", "kube", "shadow", "sim", "sim/defrag", "sim/fit", "sim/quality", "sim/report",
			"sim/scenario", "sim/shrink", "sim/size", "timing", "view"})
)

// graph is the import graph of kumiki: package -> what it may import directly. Arrows point down; packages of one
// layer do not know each other and are joined by the layer above. A new package stands here before it compiles in
// anywhere: the place to argue about an arrow is the change that adds it.
var graph = map[string]layer{
	"record": {nil, "what the scheduler says of itself; a leaf, so that everything may show it"},
	"config": {nil, "reads KubeSchedulerConfiguration; a leaf, so that a tool can check a file without a scheduler"},

	"core/resource": {[]string{"record"}, "quantities know nothing of pods and nodes"},
	"core/cluster": {below([]string{"record", "core/resource"}, formsOfCounters),
		"the state, with one writer; it knows no policy"},
	"core/cluster/internal/labelindex": {nil, "a form of data; it knows neither pods nor counters"},
	"core/cluster/internal/sparse":     {nil, "as core/cluster/internal/labelindex"},
	"core/cluster/convert": {[]string{"record", "core/resource", "core/cluster"},
		"records of API objects, made outside the loop; the state does not know it"},
	"core/plugin": {upToCluster, "the contract of plugins; it knows neither plugins nor their callers"},
	"core/queue":  {upToPlugin, "waiting is independent of the search for nodes"},
	"core/place": {below(upToPlugin, []string{"core/place/classes"}),
		"the search is independent of waiting"},
	"core/place/classes": {upToPlugin, "what is kept between searches knows no search"},
	"core/gang":          {upToPlace, "works through cluster.Trial; knows neither preemption nor shards"},
	"core/preempt": {below(upToPlace, []string{"core/preempt/victim"}),
		"works through cluster.Trial; knows neither gangs nor shards"},
	"core/shard": {upToPlace, "ownership is independent of gangs and preemption"},
	"core/arbiter": {below(upToPlace, []string{"core/gang", "core/deadline", "core/message", "core/shard",
		"core/replica"}),
		"lends units, and what follows a proposal; what it needs of the engine is an interface that it declares"},
	"core/planner": {below(upToPlace, []string{"core/message", "core/shard", "core/replica"}),
		"a planner's session with its arbiter; it knows neither decisions nor the arbiter's side"},
	"core/pace": {below(upToPlace, []string{"core/deadline", "core/message", "core/state"}),
		"when units are tried; it knows nothing of how"},
	"core/replica": {below(upToCluster, []string{"core/shard"}),
		"the log of an arbiter as data; it knows neither the engine nor a network"},
	"core/deadline": {[]string{"record"}, "times alone; what happens at them is decided by those who set them"},
	"core/evict": {below(upToGang, []string{"core/deadline"}),
		"the life of an eviction; what it needs of the engine is an interface that it declares"},
	"core/message": {[]string{"record", "core/cluster", "core/plugin", "core/place", "core/queue", "core/shard"},
		"what goes into the engine and comes out, as data; it knows nothing of what the engine does with it"},
	"core/blocked": {below(upToPlace, []string{"core/gang", "core/deadline", "core/message"}),
		"gangs that wait for capacity; it knows neither evictions nor the engine, which joins both"},
	"core/state": {below(upToPlace, []string{"core/evict", "core/message", "core/blocked"}),
		"the facts of an engine as data; it knows nothing of how the engine goes on from them"},
	"core/engine": {below(upToEvict, []string{"core/plugins", "core/message", "core/blocked", "core/state", "core/pace",
		"core/arbiter", "core/planner"}),
		"joins the core; knows nothing of the world outside"},
	"core/plugins":                    {below(upToPlugin, subjects), "the registry of the default plugins, for the engine and above; queue and place do not know it"},
	"core/plugins/basic":              {upToPlugins, "plugins of one subject know no other subject"},
	"core/plugins/packing":            {upToPlugins, "as core/plugins/basic"},
	"core/plugins/podaffinity":        {upToPlugins, "as core/plugins/basic"},
	"core/plugins/resources":          {upToPlugins, "as core/plugins/basic"},
	"core/plugins/spread":             {upToPlugins, "as core/plugins/basic"},
	"core/plugins/volumes":            {upToPlugins, "as core/plugins/basic"},
	"core/plugins/internal/nodematch": {upToPlugin, "how pods match nodes: selectors and tolerations, for plugins of several subjects"},
	"core/answers": {upToPlugin,
		"answers of plugins as data, at their contract; it knows neither the engine nor the host of the plugins"},
	"core/recording": {below(upToEngine, []string{"core/answers"}),
		"the text form of events and effects; the engine does not know it"},
	"core/question":       {upToEngine, "reads an engine through its view; the engine does not know it"},
	"core/preempt/victim": {upToPlace, "what both searches for victims share; it knows neither of them"},
	"core/preempt/units": {below(upToPlace, []string{"core/preempt", "core/preempt/victim"}),
		"whole gangs as victims; the search for one pod on one node does not know it"},
	"core/preempt/simulated": {below(upToPlace, plugins), "a cluster in memory for the tests of core/preempt"},

	"host/...": {below(upToEngine, []string{"config", "host/..."}), "runs foreign plugins; the one side where their contract is known"},
	"host/framework/plugintest": {below(upToEngine, []string{"app", "config", "core/cluster/convert", "host/...",
		"kube/intake"}),
		"tests for plugins of kube-scheduler's framework; imports testing, so no program imports it"},
	"kube": {below(upToAnswers, partsOfKube, []string{"timing"}),
		"the edge to the API server: the loop and the lease join the parts below"},
	"shadow": {upToAnswers, "stands where the engine stands in the loop, and knows no more of the world than it does"},
	"sim": {below(upToEngine, []string{"sim/bound"}),
		"the edge to a virtual clock; it receives schedulers, and makes none"},
	"timing": {[]string{"record"},
		"records moments that it is given; it reads no clock and knows neither engine nor loop"},
	"view": {[]string{"record", "timing"},
		"shows records and nothing else, so that it works on a file as on a live scheduler"},

	"sim/quality": {below(upToEngine, []string{"sim", "sim/bound"}),
		"protocols on published traces; it receives schedulers, as sim does"},
	"sim/bound": {nil, "limits for every scheduler; it knows none of them"},
	"sim/scenario": {below(upToEngine, []string{"sim"}),
		"files to simulations; it knows no configuration of schedulers"},
	"sim/defrag": {below(upToEngine, []string{"sim"}), "one question about simulations"},
	"sim/fit":    {below(upToEngine, []string{"sim"}), "one question about recordings"},
	"sim/shrink": {upToEngine, "how inputs become smaller; it knows no simulation"},
	"sim/size":   {below(upToEngine, []string{"sim"}), "one question about simulations"},
	"sim/simtest": {below(upToEngine, []string{"app", "config", "host/...", "sim", "sim/scenario"}),
		"tests for plugins on a simulated cluster; imports testing, so no program imports it"},
	"sim/report": {[]string{"sim"}, "how results of simulations are shown; no more"},

	"apm": {[]string{"record", "apm/bundle", "apm/pods", "apm/timeline"},
		"analyses files of any scheduler; of kumiki it knows records"},
	"apm/bundle":   {nil, "the file format alone, for what writes and what reads it"},
	"apm/compare":  {[]string{"apm", "apm/pods"}, "compares analyses; it reads no file"},
	"apm/pods":     {[]string{"apm/bundle"}, "times of pods as a part of a file; it knows no scheduler"},
	"apm/timeline": {nil, "spans and their forms for other tools; it knows neither traces nor schedulers"},
	"apm/outside":  {[]string{"apm/bundle", "apm/samples"}, "records any scheduler through the endpoints that it serves"},

	"apm/bottleneck": {nil, "names causes from numbers; where these come from is above it"},
	"apm/journey":    {[]string{"apm/bundle", "record"}, "one pod's way, from a file or an answer; it knows no scheduler"},
	"apm/samples":    {nil, "one part of a bundle, for what records and what reads it"},
	"apm/pipeline": {[]string{"record", "apm", "apm/bottleneck", "apm/bundle", "apm/journey",
		"apm/samples"},
		"what files say of the stages of a scheduler; the finder knows no file"},

	"kube/call": {[]string{"record", "timing"},
		"limits, waits and times of calls to the API server; every part of kube has them"},
	"kube/metrics": {below(upToAnswers, []string{"timing"}),
		"counts what the engine does; every part of kube counts in it"},
	"kube/gangapi": {upToEngine, "reads and writes declarations of gangs; intake and effects need the same formats"},
	"kube/intake":  {below(upToEngine, []string{"kube/call", "kube/gangapi", "kube/metrics"}), "objects to events; knows nothing of effects"},
	"kube/wire": {[]string{"kube/call", "timing"},
		"API objects to requests; it knows neither effects nor who sends them"},
	"kube/effects":  {below(upToEngine, []string{"kube/call", "kube/gangapi", "kube/metrics", "kube/wire"}), "effects to calls; what the watches brought is given to it"},
	"kube/serve":    {[]string{"core/resource", "core/cluster"}, "shows what it is given; it knows neither the loop nor the lease"},
	"kube/incident": {upToAnswers, "keeps the last events of an engine; it knows neither the loop nor files"},
	"kube/instances": {upToAnswers,
		"runs engines beside the loop, and carries messages; it knows neither the loop nor the lease"},
	"kube/kubetest": {[]string{"record", "core/cluster", "core/cluster/convert"}, "a fake API server, for tests; knows no part of kube"},

	"app": {below(edges, plugins), "wires core, kube, host and view; people build their own scheduler with it"},
	"bench": {below(edges, benchmarks, profiles, []string{"app", "internal/testcluster", "bench/workload", "bench/workloads", "bench/ops", "bench/core", "bench/gangs", "bench/instances", "bench/restart", "bench/noop", "bench/scaling", "bench/wire"}),
		"has the commands and the runs of workloads"},
	"bench/usage":   {nil, "marks mistakes on the command line; a leaf, so that every benchmark can"},
	"bench/report":  {[]string{"bench/workload"}, "compares what was measured; it starts and measures nothing"},
	"bench/testbed": {[]string{"apm/outside", "kube", "internal/testcluster", "bench/workload", "bench/ops", "bench/report", "bench/usage"}, "starts clusters and schedulers; it knows no workload's course"},
	"bench/noop":    {[]string{"kube", "kube/effects", "internal/testcluster", "bench/workload", "bench/ops", "bench/testbed"}, "one of the schedulers that are measured; it knows no other"},
	"bench/restart": {below(benchmarks, []string{"internal/testcluster", "bench/standin"}), "measures starts; it runs no workload"},
	"bench/wire": {below(benchmarks, []string{"internal/testcluster", "bench/standin"}),
		"measures one process against a simulated API server; it runs no workload"},
	"bench/workload":  {nil, "reads files; whoever runs them is above it"},
	"bench/workloads": {[]string{"bench/workload"}, "our workload files, embedded; whoever runs them is above it"},
	"bench/ops":       {[]string{"bench/workload", "internal/testcluster"}, "works on an API server; it knows no scheduler"},
	"bench/scaling":   {nil, "formulas alone; it measures nothing"},
	"bench/instances": {nil, "a model in virtual time; it runs no scheduler"},
	"bench/standin":   {nil, "takes the API server's place; it knows no scheduler"},
	"bench/core":      {below(upToEngine, plugins, []string{"config", "app", "bench/usage"}), "measures the core alone, without an API server"},
	"bench/gangs": {below(upToEngine, plugins, []string{"sim"}),
		"compares ways to schedule gangs: the engine on virtual time, or the scheduler of a cluster"},
	"app/apptest": {below(upToEngine, []string{"core/cluster/convert", "app", "config", "host/...", "kube/intake",
		"internal/plugintest"}),
		"tests for programs with custom plugins; imports testing, so no program imports it"},
	"app/command": {below(edges, profiles, []string{"app", "app/command/...", "bench"}),
		"the command line; programs with custom plugins are built from it"},
	"app/command/...": {below(edges, []string{"apm/bundle", "app", "app/command/...", "internal/testcluster", "examples/demo",
		"examples/gangs"}),
		"the parts of the command line"},
	"app/command/ask": {[]string{"record", "kube", "kube/serve", "view"}, "asks the running scheduler; it needs no scheduler of its own"},
	"app/command/text": {[]string{"record", "apm", "apm/bottleneck", "apm/compare", "apm/journey"},
		"how records and profiles look at a terminal; no more"},

	"cmd/kumiki": {[]string{"app/command"}, "the entry of the process; nothing imports a command"},

	"examples/demo":  {nil, "manifests, embedded"},
	"examples/gangs": {nil, "manifests, embedded"},
	"examples/plugin": {below(upToPlugin, []string{"app/command"}),
		"a program with a custom plugin; it uses what programs of other modules can use"},
	"examples/randomscheduler": {[]string{"app/command", "examples/randomscheduler/random"},
		"a program with a plugin of kube-scheduler's framework"},
	"examples/randomscheduler/random": {nil, "a plugin of kube-scheduler's framework; it knows no scheduler"},
	"examples/spare":                  {[]string{"app/command"}, "as examples/randomscheduler"},
	"examples/sessions":               {nil, "manifests, embedded"},

	"internal/lint": {nil, "judges the others, so depends on none"},

	"internal/lint/architecture": {[]string{"internal/lint"}, "writes the diagram of packages into the architecture page"},
	"internal/probe":             {nil, "runs a test that is expected to fail, for tests of any layer"},
	"internal/measure":           {nil, "measures the structure of the others, so depends on none"},
	"internal/quality": {below(edges, []string{"app", "sim/bound"}),
		"measures placements on published traces, which no product code reads"},
	"internal/fidelity": {[]string{"bench/ops", "bench/report", "bench/testbed", "bench/workload", "internal/testcluster",
		"kube"}, "compares simulated runs with recorded ones; it starts kumiki as a program"},
	"internal/mutation":         {nil, "puts faults into copies of packages and runs their tests"},
	"internal/mutation/mutants": {[]string{"internal/mutation"}, "the command of internal/mutation"},
	"internal/e2e/checker":      {nil, "judges placements by the API server alone, so shares no code with what it judges"},
	"internal/plugintest":       {upToPlugin, "builders and checks for tests of plugins"},
	"internal/resumetest":       {below(upToAnswers), "compares an engine with a resumed one, for tests of the engine and of plugins"},
	"internal/fault":            {nil, "stands between a scheduler and its API server; it knows neither"},
	"internal/ecosystem": {[]string{"internal/testcluster"},
		"runs other projects' controllers; like them, it knows only the API server"},
	"internal/ecosystem/cmd/component": {[]string{"internal/ecosystem"},
		"the command of internal/ecosystem, for readers of docs/tasks"},
	"internal/fakekubelet": {nil, "stands behind an API server, for tests; it knows no scheduler"},
	"internal/learntest":   {[]string{"internal/testcluster"}, "runs the commands of docs/learn; it knows only what a reader can type"},
	"internal/reliability/...": {[]string{"internal/e2e/checker", "internal/fault", "internal/reliability/...", "internal/testcluster"},
		"judges the programs from outside, and kube-scheduler by the same measure, so knows nothing of kumiki's inside"},
	"internal/profilecheck/...": {[]string{"apm/bottleneck", "apm/bundle", "apm/pipeline", "internal/fault",
		"internal/profilecheck/...", "internal/testcluster"},
		"judges the analysis of profiles from outside; it starts kumiki as a program"},

	"internal/testcluster": {[]string{"internal/build"}, "starts a real cluster for tests of any layer"},
	"internal/build":       {nil, "runs before anything is built, so it needs the standard library alone"},
	"internal/build/first": {[]string{"internal/build"}, "runs before anything is built, so it needs the standard library alone"},

	"localcluster/...": {[]string{"localcluster/..."}, "a module of its own: upstream's servers must not meet the scheduler in one binary"},
	"conformance/thirdparty/...": {[]string{"kubescheduler/...", "conformance/thirdparty/...", "internal/testcluster"},
		"a module of its own: plugins of another project, whose versions the others must not be moved to"},
	"conformance/seam/...": {[]string{"app", "config", "core/cluster", "core/engine", "core/queue", "record", "kube", "kube/metrics",
		"kube/serve", "kubescheduler/..."},
		"a module of its own: kumiki in the place of a package of k8s.io/kubernetes, in a copy of that module"},
	"kubescheduler/...": {[]string{"app/command", "config", "host/framework"},
		"a module of its own: it has upstream's types for programs with plugins, and so links k8s.io/kubernetes"},
	"deploy/test/draw": {nil, "it gets evaluated series, and so needs neither Prometheus nor kumiki"},
	"tools/...": {[]string{"tools/..."},
		"a module of its own: what builds and packs the others must not move their versions"},
	"conformance/...": {below(upToEngine, plugins, partsOfKube, []string{"config", "host/...", "kube", "timing", "app",
		"app/command/gates", "bench/core", "conformance/...", "examples/randomscheduler/random",
		"internal/testcluster", "sim/bound", "sim/quality"}),
		"a module of its own: the oracle is upstream's scheduler, which kumiki must not be linked with"},
}

// ImportGraph finds imports between packages of kumiki that the graph does not have. Tests may import what they need.
func ImportGraph(t *Tree) []Finding {
	var found []Finding
	unknown := map[string]bool{} // package -> reported
	for _, f := range t.GoFiles(false) {
		from, ok := lookup(f.Dir())
		if !ok {
			if !unknown[f.Dir()] {
				unknown[f.Dir()] = true
				found = append(found, Finding{f.Dir(), "this package is not in the import graph",
					"the shape of the code is decided on purpose: add the package to internal/lint/imports.go with what it may import and why"})
			}
			continue
		}
		for _, spec := range f.AST.Imports {
			to, ours := strings.CutPrefix(importPath(spec), Module+"/")
			if !ours || covers(from.may, to) {
				continue
			}
			found = append(found, Finding{t.at(spec), fmt.Sprintf("%s imports %s", f.Dir(), to),
				fmt.Sprintf("%s: %s. It may import %s", f.Dir(), from.why, orNothing(from.may))})
		}
	}
	return found
}

func orNothing(list []string) string {
	if len(list) == 0 {
		return "nothing of kumiki"
	}
	return strings.Join(list, ", ")
}

// lookup finds the layer of a directory, by its own name or by that of a tree it is in.
func lookup(dir string) (layer, bool) {
	if l, ok := graph[dir]; ok {
		return l, true
	}
	for up := dir; up != "."; up = path.Dir(up) {
		if l, ok := graph[up+"/..."]; ok {
			return l, true
		}
	}
	return layer{}, false
}

// covers reports whether a list of packages and trees (a/...) holds a package.
func covers(list []string, pkg string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		tree, isTree := strings.CutSuffix(entry, "/...")
		return entry == pkg || isTree && (pkg == tree || strings.HasPrefix(pkg, tree+"/"))
	})
}
