// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	configv1 "k8s.io/kube-scheduler/config/v1"
)

// TestArgumentsExtendersAndBadInputOnARealAPIServer plays a scenario for each argument and setting that changes where
// pods are placed, for each verb of extenders, and for objects that the API server accepts although they are
// unusable. Some settings apply to a whole process, so several schedulers share the cluster, each with profiles that
// the others do not have. Preemption has scenarios of its own.
func TestArgumentsExtendersAndBadInputOnARealAPIServer(t *testing.T) {
	x := startExtenders(t)
	var scenarios []scenario
	for _, more := range [][]scenario{argumentScenarios(), searchArgumentScenarios(), processScenarios(x), extenderScenarios(x), victimScenarios(x), badInputScenarios(x)} {
		scenarios = append(scenarios, more...)
	}
	one := func(name, more string, list ...configv1.Extender) string {
		return x.configured(settings(more, named(name)), list...)
	}
	playAll(t, []string{
		x.configured(settings("", argumentProfiles), x.settings()...),
		one("asks-about-all", "", takingAll()...),
		one("leaves-to-extender", "", managing()),
		one("hasty", "podInitialBackoffSeconds: 1\npodMaxBackoffSeconds: 1", filter("fails")),
		one("patient", "", filter("fails")), // 1 s, doubled up to 10 s
		one("late", "podInitialBackoffSeconds: 3600\npodMaxBackoffSeconds: 3600", filter("fails")),
		settings("percentageOfNodesToScore: 40", searchProfiles),
		settings("", seeded("seed-7", 7)), settings("", seeded("seed-7-too", 7)), settings("", seeded("seed-8", 8)),
	}, scenarios)
}

// settings is a configuration with settings of the whole process.
func settings(more, profiles string) string {
	return "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nleaderElection: {leaderElect: false}\n" +
		more + "\nprofiles:" + profiles
}

func named(profile string) string { return "\n- schedulerName: " + profile + "\n" }

func seeded(profile string, seed int) string {
	return fmt.Sprintf("%s  plugins: {score: {disabled: [{name: '*'}]}}\n  pluginConfig: [{name: Kumiki, args: {seed: %d}}]\n", named(profile), seed)
}

// onlyScore begins a profile in which so many plugins score and no others.
func onlyScore(profile string, scorers ...string) string {
	return named(profile) + "  plugins: {score: {disabled: [{name: '*'}], enabled: [" + strings.Join(scorers, ", ") + "]}}\n"
}

func with(plugin, args string) string {
	return "  - {name: " + plugin + ", args: {" + args + "}}\n"
}

// argumentProfiles come in pairs that differ in one argument, and place the same pod differently.
var argumentProfiles = named("default-scheduler") +
	named("likes-b") + "  pluginConfig:\n" +
	with("NodeAffinity", "addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: {matchExpressions: [{key: shape, operator: In, values: [b]}]}}]}") +
	onlyScore("by-cpu", "{name: NodeResourcesFit}") + "  pluginConfig:\n" +
	with("NodeResourcesFit", "scoringStrategy: {type: LeastAllocated, resources: [{name: cpu, weight: 10}, {name: memory, weight: 1}]}") +
	onlyScore("by-memory", "{name: NodeResourcesFit}") + "  pluginConfig:\n" +
	with("NodeResourcesFit", "scoringStrategy: {type: LeastAllocated, resources: [{name: cpu, weight: 1}, {name: memory, weight: 10}]}") +
	onlyScore("rising", "{name: NodeResourcesFit}") + "  pluginConfig:\n" +
	with("NodeResourcesFit", ratio("{utilization: 0, score: 0}, {utilization: 100, score: 10}")) +
	onlyScore("falling", "{name: NodeResourcesFit}") + "  pluginConfig:\n" +
	with("NodeResourcesFit", ratio("{utilization: 0, score: 10}, {utilization: 100, score: 0}")) +
	onlyScore("balances-memory", "{name: NodeResourcesBalancedAllocation}") +
	onlyScore("balances-slots", "{name: NodeResourcesBalancedAllocation}") + "  pluginConfig:\n" +
	with("NodeResourcesBalancedAllocation", "resources: [{name: cpu, weight: 1}, {name: example.com/slot, weight: 1}]") +
	packs("system-spread", "defaultingType: System") + packs("no-spread", "defaultingType: List") +
	named("key-spread") + "  pluginConfig:\n" +
	with("PodTopologySpread", "defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: example.com/nobody-has, whenUnsatisfiable: DoNotSchedule}]") +
	onlyScore("hard-1", "{name: InterPodAffinity}") +
	onlyScore("hard-100", "{name: InterPodAffinity}") + "  pluginConfig:\n" + with("InterPodAffinity", "hardPodAffinityWeight: 100") +
	onlyScore("hears-others", "{name: InterPodAffinity, weight: 100}, {name: NodeResourcesFit}") +
	onlyScore("deaf-to-others", "{name: InterPodAffinity, weight: 100}, {name: NodeResourcesFit}") + "  pluginConfig:\n" +
	with("InterPodAffinity", "ignorePreferredTermsOfExistingPods: true") +
	named("in-a-hurry") + "  pluginConfig:\n" + with("VolumeBinding", "bindTimeoutSeconds: 1") + with("DynamicResources", "bindingTimeout: 1s") +
	named("no-time") + "  pluginConfig:\n" + with("DynamicResources", "filterTimeout: 1ns") +
	named("takes-anything") + "  plugins: {multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: DefaultBinder}]}}\n" +
	onlyScore("affinity-heavy", "{name: NodeResourcesFit, weight: 1}, {name: NodeAffinity, weight: 10}") +
	onlyScore("affinity-light", "{name: NodeResourcesFit, weight: 10}, {name: NodeAffinity, weight: 1}")

func ratio(shape string) string {
	return "scoringStrategy: {type: RequestedToCapacityRatio, resources: [{name: example.com/slot, weight: 1}], requestedToCapacityRatio: {shape: [" + shape + "]}}"
}

// packs is a profile that fills nodes unless pods keep apart.
func packs(profile, spread string) string {
	return onlyScore(profile, "{name: PodTopologySpread, weight: 100}, {name: NodeResourcesFit}") + "  pluginConfig:\n" +
		with("NodeResourcesFit", "scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}") + with("PodTopologySpread", spread)
}

// by is a pod of a profile.
func by(profile, pod, more string) string {
	return "- {kind: Pod, name: " + pod + ", " + strings.TrimPrefix(more+", ", ", ") + "spec: {schedulerName: " + profile + "}}\n"
}

func argumentScenarios() []scenario {
	pinned := func(name, node, more string) string {
		return "- {kind: Pod, name: " + name + ", " + strings.TrimPrefix(more+", ", ", ") + "spec: {nodeSelector: {kubernetes.io/hostname: SCENARIO-" + node + "}}}\n"
	}
	affine := func(name, profile, node, app, affinity string) string {
		return "- {kind: Pod, name: " + name + ", labels: {app: " + app + "}, spec: {schedulerName: " + profile + ", nodeSelector: {" + node + "}, affinity: {podAffinity: {" + affinity + "}}}}\n"
	}
	const term = "{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: pull}}}"
	const required, preferred = "requiredDuringSchedulingIgnoredDuringExecution: [" + term + "]", "preferredDuringSchedulingIgnoredDuringExecution: [{weight: 50, podAffinityTerm: " + term + "}]"
	host := func(node string) string { return "kubernetes.io/hostname: SCENARIO-" + node }
	replicas := func(name, profile string) string {
		return "- {kind: ReplicaSet, name: " + name + ", spec: {replicas: 3, selector: {matchLabels: {app: " + name + "}}, template: {metadata: {labels: {app: " + name + "}}, spec: {schedulerName: " + profile +
			", nodeSelector: {scenario: SCENARIO}, terminationGracePeriodSeconds: 0, containers: [{name: c, image: 'registry.example/app:1', resources: {requests: {cpu: 100m}}}]}}}}\n"
	}
	return []scenario{
		{"arg-added-preference", [][2]string{{"a", "{count: 2, labels: {shape: a}}"}, {"b", "{labels: {shape: b}}"}}, []step{
			{apply: pinned("filler", "b-0000", `cpu: "2"`), want: map[string]string{"filler": "b-0"}},
			{apply: by("likes-b", "added", "") + "- {kind: Pod, name: plain}", want: map[string]string{"added": "b-0", "plain": "a-0|a-1"}},
		}},
		{"arg-fit-weights", [][2]string{{"a", "{}"}, {"b", "{}"}}, []step{
			{apply: pinned("much-cpu", "a-0000", `requests: {cpu: "2", memory: 100Mi}`) + pinned("much-memory", "b-0000", "requests: {cpu: 100m, memory: 4Gi}"),
				want: map[string]string{"much-cpu": "a-0", "much-memory": "b-0"}},
			{apply: by("by-cpu", "c", "requests: {cpu: 10m, memory: 10Mi}") + by("by-memory", "m", "requests: {cpu: 10m, memory: 10Mi}"), want: map[string]string{"c": "b-0", "m": "a-0"}},
		}},
		{"arg-fit-shape", [][2]string{{"a", "{count: 2, devices: {example.com/slot: 4}}"}}, []step{
			{apply: pinned("filler", "a-0001", "requests: {example.com/slot: '2'}"), want: map[string]string{"filler": "a-1"}},
			{apply: by("rising", "up", "requests: {example.com/slot: '1'}"), want: map[string]string{"up": "a-1"}},
			{apply: by("falling", "down", "requests: {example.com/slot: '1'}"), want: map[string]string{"down": "a-0"}},
		}},
		{"arg-balance", [][2]string{{"a", "{capacity: {memory: 64Gi}, devices: {example.com/slot: 2}}"}, {"b", "{capacity: {memory: 2Gi}, devices: {example.com/slot: 100}}"}}, []step{
			{apply: by("balances-memory", "m", "requests: {cpu: '2', memory: 1Gi, example.com/slot: '1'}"), want: map[string]string{"m": "b-0"}},
			{remove: []string{"Pod/m"}},
			{apply: by("balances-slots", "s", "requests: {cpu: '2', memory: 1Gi, example.com/slot: '1'}"), want: map[string]string{"s": "a-0"}},
		}},
		// Pods of one owner: the system's constraints keep them apart, an empty list lets them pile up.
		{"arg-spread-system", [][2]string{{"a", "{count: 3}"}}, []step{{apply: replicas("r", "system-spread"), check: counts("r-", 1, 1, 1)}}},
		{"arg-spread-none", [][2]string{{"a", "{count: 3}"}}, []step{{apply: replicas("r", "no-spread"), check: counts("r-", 3)}}},
		{"arg-spread-list", [][2]string{{"a", "{}"}}, []step{
			{apply: `[{kind: Service, name: s, spec: {selector: {app: x}, ports: [{port: 80}]}}]`},
			// What the profile asks for holds for the pods of services only, and not for those that ask themselves.
			{apply: by("key-spread", "served", "labels: {app: x}") + by("key-spread", "unserved", "labels: {app: z}") +
				"- {kind: Pod, name: asks, labels: {app: x}, spec: {schedulerName: key-spread, topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: x}}}]}}\n" +
				"- {kind: Pod, name: elsewhere, labels: {app: x}}",
				want: map[string]string{"served": "!missing required label", "unserved": "a-0", "asks": "a-0", "elsewhere": "a-0"}},
		}},
		// A required term of one pod against a preferred one, of weight 50, of another.
		{"arg-hard-weight", [][2]string{{"a", "{count: 2}"}}, []step{
			{apply: affine("seed", "default-scheduler", host("a-0000"), "pull", ""), want: map[string]string{"seed": "a-0"}},
			{apply: affine("requires", "default-scheduler", host("a-0000"), "other", required) + affine("prefers", "default-scheduler", host("a-0001"), "other", preferred),
				want: map[string]string{"requires": "a-0", "prefers": "a-1"}},
			{apply: by("hard-1", "one", "labels: {app: pull}") + by("hard-100", "hundred", "labels: {app: pull}"), want: map[string]string{"one": "a-1", "hundred": "a-0"}},
		}},
		{"arg-ignore-preferred", [][2]string{{"a", "{count: 2}"}}, []step{
			{apply: affine("prefers", "default-scheduler", host("a-0001"), "other", preferred), want: map[string]string{"prefers": "a-1"}},
			{apply: by("hears-others", "hears", "labels: {app: pull}"), want: map[string]string{"hears": "a-1"}},
			{apply: by("deaf-to-others", "deaf", "labels: {app: pull}"), want: map[string]string{"deaf": "a-0"}},
		}},
		// No provisioner makes the volume, and no driver attaches the device: both waits end at the timeout of the
		// profile.
		{"arg-bind-timeout", [][2]string{{"a", "{csi: {" + disk + ": 0}}"}}, []step{
			{apply: storageClass("silent.example.com", late, "") + wantsVolume("c", "SCENARIO", 1, "") + mounts("p", "c", ", schedulerName: in-a-hurry") + "- {kind: Pod, name: others}",
				want: map[string]string{"p": "!SchedulerError&binding volumes", "others": "a-0"}},
		}},
		{"arg-binding-timeout", [][2]string{{"a", "{}"}}, []step{
			{apply: deviceClass("") + slice("s", `{name: d, bindingConditions: [ready], bindingFailureConditions: [broken]}`, "") +
				claimed("ResourceClaim", "c", oneDevice) + uses("p", byName, "c", ", schedulerName: in-a-hurry") + "- {kind: Pod, name: others}",
				want: map[string]string{"p": "!device binding timeout", "others": "a-0"}},
		}},
		{"arg-filter-timeout", [][2]string{{"a", fmt.Sprintf("{claimable: [{driver: %s, count: 2}]}", gpu)}}, []step{
			{apply: deviceClass("") + claimed("ResourceClaim", "c", oneDevice) + claimed("ResourceClaim", "d", oneDevice) +
				uses("p", byName, "c", ", schedulerName: no-time") + uses("calm", byName, "d", ""),
				want: map[string]string{"p": "!timed out trying to allocate devices", "calm": "a-0"}},
		}},
		{"arg-nothing-enabled", [][2]string{{"a", "{unschedulable: true, taints: [{key: k, effect: NoSchedule}]}"}}, []step{
			{apply: by("takes-anything", "p", "") + "- {kind: Pod, name: q}", check: func(on map[string]string) string {
				// Without filters it may be any node of the cluster.
				if on["p"] == "" {
					return "p is not bound"
				}
				return ""
			}, want: map[string]string{"q": "!1 node(s) were unschedulable"}},
		}},
		// One node is preferred, the other is emptier.
		{"arg-score-weights", [][2]string{{"a", "{labels: {shape: a}}"}, {"b", "{labels: {shape: b}}"}}, []step{
			{apply: pinned("filler", "a-0000", "requests: {cpu: '2', memory: 4Gi}"), want: map[string]string{"filler": "a-0"}},
			{apply: likesShapeA("affinity-heavy", "heavy") + likesShapeA("affinity-light", "light"), want: map[string]string{"heavy": "a-0", "light": "b-0"}},
		}},
	}
}

func likesShapeA(profile, pod string) string {
	return "- {kind: Pod, name: " + pod + ", spec: {schedulerName: " + profile + ", affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: shape, operator: In, values: [a]}]}}]}}}}\n"
}

// searchProfiles look for the node that pods like best among all nodes, or among a part of them.
var searchProfiles = likesBest("window", "", "") +
	likesBest("whole-window", "percentageOfNodesToScore: 100", "") +
	likesBest("every-node", "", "strategy: all") +
	likesBest("half", "", fmt.Sprintf("strategy: randomSubset, subset: %d", bigScenario/2)) +
	likesBest("all-of-subset", "", fmt.Sprintf("strategy: randomSubset, subset: %d", 100*bigScenario)) +
	likesBest("two-of-all", "", "strategy: powerOfTwo")

// bigScenario is a number of nodes of which 40 percent are more than the 100 that a window has at least.
const bigScenario = 270

func likesBest(profile, percentage, settings string) string {
	out := onlyScore(profile, "{name: NodeAffinity}")
	if percentage != "" {
		out += "  " + percentage + "\n"
	}
	if settings != "" {
		out += "  pluginConfig:\n" + with("Kumiki", settings)
	}
	return out
}

// searchArgumentScenarios: many pods like one node of many best. Who looks at all nodes puts them all there, who
// looks at a part puts there those whose part had it.
func searchArgumentScenarios() []scenario {
	const pods = 20
	profiles := []string{"window", "whole-window", "every-node", "half", "all-of-subset", "two-of-all"}
	var all string
	for _, p := range profiles {
		all += repeated(pods, "{kind: Pod, name: "+p+"-%d, spec: {schedulerName: "+p+", affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "+
			"[{weight: 1, preference: {matchFields: [{key: metadata.name, operator: In, values: [SCENARIO-a-0200]}]}}]}}}}")
	}
	return []scenario{{"arg-search", [][2]string{{"a", fmt.Sprintf("{count: %d, capacity: {pods: '200'}}", bigScenario)}}, []step{
		{apply: all, check: func(on map[string]string) string {
			best := map[string]int{} // profile -> its pods on the best node
			for name, node := range on {
				if node == "" {
					return name + " is not bound"
				}
				if node == "a-200" {
					best[name[:strings.LastIndexByte(name, '-')]]++
				}
			}
			some := func(p string) bool { return best[p] > 0 && best[p] < pods }
			if !some("window") || !some("half") || best["two-of-all"] >= pods/2 ||
				best["whole-window"] != pods || best["every-node"] != pods || best["all-of-subset"] != pods {
				return fmt.Sprintf("of %d pods of each profile on the best node: %v", pods, best)
			}
			return ""
		}},
	}}}
}

// processScenarios are about settings of a whole process.
func processScenarios(x *extenders) []scenario {
	failing := func(name, profile string) string { return via(name, "fails", ", spec: {schedulerName: "+profile+"}") }
	tries := func(s *stage, pod string) int { return len(x.about("/fails/filter", s.scenario+"/"+pod)) }
	return []scenario{
		// A pod whose attempts fail comes back after a backoff and for no other reason. By the time that the longest
		// backoff of one second has let it come back often, one that doubles has let it less often.
		{"arg-backoff", extended(1, "fails"), []step{
			{apply: failing("later", "late"), want: map[string]string{"later": "!SchedulerError"}},
			{apply: failing("hasty", "hasty") + failing("patient", "patient"), want: map[string]string{"hasty": "!SchedulerError", "patient": "!SchedulerError"}},
			{do: func(ctx context.Context, s *stage) error {
				err := until(ctx, func() string {
					if n := tries(s, "hasty"); n < 6 {
						return fmt.Sprintf("%d tries for the pod with short backoffs", n)
					}
					return ""
				})
				if h, p := tries(s, "hasty"), tries(s, "patient"); err == nil && (p >= h || p < 2) {
					return fmt.Errorf("%d tries with backoffs up to 1s, %d with those that double", h, p)
				}
				return err
			}},
			{do: x.relent("later", "hasty", "patient"), want: map[string]string{"hasty": "a-0", "patient": "a-0"}},
			{apply: "- {kind: Pod, name: next, spec: {schedulerName: late}}", want: map[string]string{"next": "a-0", "later": "!SchedulerError"}, do: func(_ context.Context, s *stage) error {
				if n := tries(s, "later"); n != 1 {
					return fmt.Errorf("%d tries for a pod with a backoff of an hour", n)
				}
				return nil
			}},
		}},
		seedScenario(),
	}
}

// seedScenario: nodes that are all as good as each other are drawn, by the seed and the number of the decision.
func seedScenario() scenario {
	const pods = 8
	profiles := []string{"seed-7", "seed-7-too", "seed-8"}
	st := scenario{"arg-seed", [][2]string{{"a", "{count: 6}"}}, nil}
	for i := range pods {
		one := step{want: map[string]string{}}
		for _, p := range profiles {
			name := fmt.Sprintf("%s-%d", p, i)
			one.apply += by(p, name, "")
			one.want[name] = "*"
		}
		st.steps = append(st.steps, one)
	}
	st.steps[pods-1].check = func(on map[string]string) string {
		drawn := map[string]string{} // profile -> its nodes in order
		for i := range pods {
			for _, p := range profiles {
				drawn[p] += " " + on[fmt.Sprintf("%s-%d", p, i)]
			}
		}
		if drawn["seed-7"] != drawn["seed-7-too"] || drawn["seed-7"] == drawn["seed-8"] {
			return fmt.Sprintf("drawn by seed: %v", drawn)
		}
		return ""
	}
	return st
}
