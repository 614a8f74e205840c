// SPDX-License-Identifier: Apache-2.0

package config

import (
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// own is a file with our settings.
func own(args string) string {
	return "profiles:\n- pluginConfig:\n  - name: Kumiki\n    args: " + args + "\n"
}

// TestProblems: every kind of mistake gives a line, a path and a sentence.
func TestProblems(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       []string // one per problem, in order
	}{
		{"unknown field", "paralelism: 3\n", []string{"line 3: paralelism: unknown field"}},
		{"unknown field deep", "profiles:\n- plugins:\n    score:\n      enabled:\n      - name: ImageLocality\n  " +
			"      wait: 3\n",
			[]string{"line 8: profiles[0].plugins.score.enabled[0].wait: unknown field"}},
		{"two unknown fields", "foo: 1\nbar: 2\n", []string{"line 4: bar: unknown field",
			"line 3: foo: unknown field"}},
		{"field twice", "parallelism: 1\nparallelism: 2\n", []string{`line 4: key "parallelism" already set in map`}},
		{"wrong type", "parallelism: many\n", []string{"line 3: parallelism: want a whole number, got string"}},
		{"wrong type deep", "profiles:\n- schedulerName: a\n- schedulerName: [b]\n",
			[]string{"line 5: profiles[1].schedulerName: want a string, got array"}},
		{"weight no number", "profiles:\n- plugins:\n    score:\n      enabled:\n      - name: ImageLocality\n    " +
			"    weight: heavy\n",
			[]string{"line 8: profiles[0].plugins.score.enabled[0].weight: want a whole number, got string"}},
		{"weight too large", "profiles:\n- plugins:\n    score:\n      enabled:\n      - name: ImageLocality\n    " +
			"    weight: 99999999999\n",
			[]string{"line 8: profiles[0].plugins.score.enabled[0].weight: want a whole number, got number " +
				"99999999999"}},
		{"weight negative", "profiles:\n- plugins: {score: {enabled: [{name: ImageLocality, weight: -1}]}}\n",
			[]string{"line 4: profiles[0].plugins.score.enabled[0].weight: must not be negative, got -1"}},
		{"bad duration", "leaderElection:\n  leaseDuration: soon\n",
			[]string{`line 4: leaderElection.leaseDuration: time: invalid duration "soon"`}},
		{"bad yaml", "profiles: [\n", []string{"line 3: did not find expected node content"}},
		{"two documents", "---\nkind: Other\n", []string{"line 3: a second document begins; the file must hold one"}},
		{"unknown plugin", "profiles:\n- plugins: {filter: {enabled: [{name: nodename}]}}\n",
			[]string{`line 4: profiles[0].plugins.filter.enabled[0].name: unknown plugin "nodename", did you mean "NodeName"?; available: SchedulingGates, PrioritySort,`}},
		{"behind a gate, twice", "profiles:\n- plugins: {permit: {enabled: [{name: GangScheduling}, {name: GangScheduling}]}}\n",
			[]string{`profiles[0].plugins.permit.enabled[1].name: plugin "GangScheduling" is enabled twice`}},
		{"twice for groups", "profiles:\n- plugins: {podGroupPostFilter: {enabled: [{name: DefaultPreemption}, {name: DefaultPreemption}]}}\n",
			[]string{`profiles[0].plugins.podGroupPostFilter.enabled[1].name: plugin "DefaultPreemption" is enabled twice`}},
		{"removed", "profiles:\n- plugins: {filter: {enabled: [{name: EBSLimits}]}}\n",
			[]string{`profiles[0].plugins.filter.enabled[0].name: plugin "EBSLimits" was removed from Kubernetes`}},
		{"wrong point", "profiles:\n- plugins: {score: {enabled: [{name: NodeName}]}}\n",
			[]string{`plugin "NodeName" does not extend score; it extends preFilter, filter`}},
		{"enabled twice", "profiles:\n- plugins: {multiPoint: {enabled: [{name: NodeName}, {name: NodeName}]}}\n",
			[]string{`profiles[0].plugins.multiPoint.enabled[1].name: plugin "NodeName" is enabled twice`}},
		{"no queue sort", "profiles:\n- plugins: {queueSort: {disabled: [{name: '*'}]}}\n",
			[]string{"profiles[0].plugins.queueSort: exactly one plugin must sort the queue, got 0"}},
		{"no bind", "profiles:\n- plugins: {bind: {disabled: [{name: DefaultBinder}]}}\n",
			[]string{"profiles[0].plugins.bind: at least one plugin must bind"}},
		{"same name twice", "profiles:\n- schedulerName: a\n- schedulerName: a\n",
			[]string{`line 5: profiles[1].schedulerName: "a" is already the name of profiles[0]`}},
		{"no name among several", "profiles:\n- schedulerName: a\n- {}\n",
			[]string{"profiles[1].schedulerName: a name is required"}},
		{"backoff", "podInitialBackoffSeconds: 0\n", []string{"line 3: podInitialBackoffSeconds: must be above 0"}},
		{"backoff order", "podInitialBackoffSeconds: 20\n",
			[]string{"podMaxBackoffSeconds: must be at least podInitialBackoffSeconds (20)"}},
		{"percentage", "percentageOfNodesToScore: 101\n",
			[]string{"line 3: percentageOfNodesToScore: must be between 0 and 100, got 101"}},
		{"parallelism", "parallelism: 0\n", []string{"parallelism: must be above 0, got 0"}},
		{"lease order", "leaderElection:\n  leaseDuration: 5s\n",
			[]string{"line 4: leaderElection.leaseDuration: must be longer than renewDeadline (10s), got 5s"}},
		{"lease lock", "leaderElection:\n  resourceLock: endpoints\n",
			[]string{`line 4: leaderElection.resourceLock: must be "leases", got "endpoints"`}},
		{"args of unknown", "profiles:\n- pluginConfig:\n  - name: NodeResourceFit\n    args: {}\n",
			[]string{`line 5: profiles[0].pluginConfig[0].name: unknown plugin "NodeResourceFit", did you mean`}},
		{"plugin of scheduler-plugins", "profiles:\n- plugins: {multiPoint: {enabled: [{name: Coscheduling}]}}\n",
			[]string{`multiPoint.enabled[0].name: unknown plugin "Coscheduling": set gangs: {sigs: "On"} in`}},
		{"args of a plugin of scheduler-plugins", "profiles:\n- pluginConfig:\n  - name: Coscheduling\n" +
			"    args: {permitWaitingTimeSeconds: 9}\n",
			[]string{`line 5: profiles[0].pluginConfig[0].name: unknown plugin "Coscheduling": set gangs: {sigs: "On"} in`}},
		{"args twice", "profiles:\n- pluginConfig:\n  - name: NodeAffinity\n  - name: NodeAffinity\n",
			[]string{`line 6: profiles[0].pluginConfig[1].name: the arguments of "NodeAffinity" are given twice`}},
		{"args unknown field", "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args:\n      " +
			"scoringStrategy:\n        typ: x\n        type: LeastAllocated\n",
			[]string{"line 8: profiles[0].pluginConfig[0].args.scoringStrategy.typ: unknown field"}},
		{"args kind", "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args:\n      kind: " +
			"NodeAffinityArgs\n",
			[]string{`line 7: profiles[0].pluginConfig[0].args.kind: must be NodeResourcesFitArgs or absent, got "NodeAffinityArgs"`}},
		{"strategy", "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args:\n      scoringStrategy:\n " +
			"       type: Best\n",
			[]string{`line 8: profiles[0].pluginConfig[0].args.scoringStrategy.type: Unsupported value: "Best"`}},
		{"strategy weight", "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args:\n      " +
			"scoringStrategy:\n        type: MostAllocated\n        resources: [{name: cpu, weight: 101}]\n",
			[]string{"line 9: profiles[0].pluginConfig[0].args.scoringStrategy.resources[0].weight: the weight of " +
				"cpu must be between 1 and 100, got 101"}},
		{"shape missing", "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args: {scoringStrategy: " +
			"{type: RequestedToCapacityRatio}}\n",
			[]string{"requestedToCapacityRatio: required when type is RequestedToCapacityRatio"}},
		{"shape order", "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args: {scoringStrategy: " +
			"{type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 5, score: 1}, " +
			"{utilization: 5, score: 11}]}}}\n",
			[]string{"shape[1].utilization: must be above the point before (5), got 5",
				"shape[1].score: must be between 0 and 10, got 11"}},
		{"balanced weight", "profiles:\n- pluginConfig:\n  - name: NodeResourcesBalancedAllocation\n    args: " +
			"{resources: [{name: cpu, weight: 2}, {name: cpu}]}\n",
			[]string{"resources[0].weight: must be 1, got 2", `resources[1].name: resource "cpu" is given twice`}},
		{"affinity operator", "profiles:\n- pluginConfig:\n  - name: NodeAffinity\n    args:\n      " +
			"addedAffinity:\n        requiredDuringSchedulingIgnoredDuringExecution:\n          " +
			"nodeSelectorTerms:\n          - matchExpressions: [{key: a, operator: Like}]\n",
			[]string{`line 10: profiles[0].pluginConfig[0].args.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Like"`}},
		{"own setting", "profiles:\n- pluginConfig:\n  - name: Kumiki\n    args: {inFlightBinds: 0, speed: 1}\n",
			[]string{"profiles[0].pluginConfig[0].args.speed: unknown field",
				"args.inFlightBinds: must be above 0, got 0"}},
		{"own strategy", own("{strategy: best}"),
			[]string{`line 6: profiles[0].pluginConfig[0].args.strategy: must be one of [all window randomSubset powerOfTwo], got "best"`}},
		{"own settings differ", "profiles:\n- schedulerName: a\n  pluginConfig: [{name: Kumiki, args: {seed: " +
			"1}}]\n- schedulerName: b\n  pluginConfig: [{name: Kumiki, args: {seed: 2}}]\n",
			[]string{"profiles[1].pluginConfig[0].args.seed: must be the same as in " +
				"profiles[0].pluginConfig[0].args.seed (1), because it holds for the whole process; got 2"}},
	} {
		t.Run(tt.name, func(t *testing.T) { expect(t, tt.body, tt.want...) })
	}
}

// expect wants these problems of a file, each by a part of its line, in order.
func expect(t tb, body string, want ...string) {
	t.Helper()
	got := problemsOf(t, body)
	if len(got) != len(want) {
		t.Errorf("%s\nwant %d problems, got %d:\n%s", body, len(want), len(got), strings.Join(got, "\n"))
		return
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("problem %d:\n got %s\nwant %s", i, got[i], want[i])
		}
	}
}

// TestWrongKind: a file of another kind is reported as such, whatever else it holds.
func TestWrongKind(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "- a\n", "kind: Pod\n",
		"apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%q was read without an error", text)
		}
	}
}

// TestWarnings: what works but may not be meant is said and does not stop the start.
func TestWarnings(t *testing.T) {
	for body, want := range map[string]string{
		"percentageOfNodesToScore: 30\n" +
			own("{strategy: all}"): "line 7: profiles[0].pluginConfig[0].args.strategy: strategy all wins over " +
			"percentageOfNodesToScore: 30",
		"profiles:\n- plugins: {preBind: {disabled: [{name: VolumeBinding}]}}\n": `plugin "VolumeBinding" reserves, so it writes what it reserved at preBind too`,
		"profiles:\n- plugins: {reserve: {disabled: [{name: VolumeBinding}]}}\n": "it has nothing to write at " +
			"preBind",
		"extenders: [{urlPrefix: 'localhost:80', filterVerb: f}]\n": "line 3: extenders[0].urlPrefix: \"localhost:80\" is no URL",
		"extenders: [{urlPrefix: 'http://e'}]\n": "an extender without a verb " +
			"is never called",
		"profiles:\n- plugins: {filter: {disabled: [{name: NodeNam}]}}\n":            `there is no plugin "NodeNam" to disable`,
		"profiles:\n- plugins: {preFilter: {disabled: [{name: NodePorts}]}}\n":       `plugin "NodePorts" runs at filter, so it prepares at preFilter too`,
		"profiles:\n- plugins: {filter: {disabled: [{name: NodePorts}]}}\n":          "has no effect",
		"profiles:\n- pluginConfig: [{name: NodeName, args: {a: 1}}]\n":              `plugin "NodeName" takes no arguments`,
		"profiles:\n- plugins: {filter: {enabled: [{name: NodeName, weight: 2}]}}\n": "does not score",
	} {
		c := parse(t, body)
		if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], want) {
			t.Errorf("%s: warnings %q, want %q", body, c.Warnings, want)
		}
	}
}

// TestShowReadsBack: what Wire writes means what was read.
func TestShowReadsBack(t *testing.T) {
	for _, body := range []string{
		"",
		"percentageOfNodesToScore: 30\nextenders: [{urlPrefix: 'http://e', filterVerb: f, managedResources: " +
			"[{name: a.b/c, ignoredByScheduler: true}]}]\n",
		own("{strategy: randomSubset, subset: 7, fitScoresReal: true, syncPreemption: true, cycle: sessions, "+
			"sessionPeriod: 7s, fit: slots, wire: TypedClients}") + "  percentageOfNodesToScore: 0\n",
		"leaderElection: {leaderElect: false}\nclientConnection: {qps: 5, burst: 7, kubeconfig: " +
			"/k}\npodMaxBackoffSeconds: 60\nenableProfiling: false\n",
		"profiles:\n- schedulerName: a\n  plugins: {score: {enabled: [{name: ImageLocality, weight: 9}]}, filter: " +
			"{disabled: [{name: NodeName}]}}\n" +
			"  pluginConfig:\n  - name: Kumiki\n    args: {seed: 77, inFlightBinds: 3, gangs: {podgroup: 'Off', " +
			"annotation: On, pfnet: {prefix: a.b/c}}}\n  - name: NodeResourcesFit\n    args: " +
			"{ignoredResourceGroups: [example.com], scoringStrategy: {type: MostAllocated, resources: " +
			"[{name: cpu, weight: 3}]}}\n" +
			"- schedulerName: b\n",
	} {
		first := parse(t, body)
		wire, err := first.Wire()
		if err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(wire)
		if err != nil {
			t.Fatal(err)
		}
		second, err := Parse(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if !reflect.DeepEqual(first, second) {
			t.Errorf("read back:\n got %+v\nwant %+v\n%s", second, first, text)
		}
	}
}

// FuzzParse: whatever the text, there is an answer, and a file that was read can be shown and read again.
func FuzzParse(f *testing.F) {
	f.Add(head)
	f.Add(head + "profiles: [{plugins: {score: {enabled: [{name: ImageLocality, weight: 2}]}}}]\n")
	f.Add(head + "a: &x [*x]\n")
	f.Add(head + "profiles: [{pluginConfig: [{name: Kumiki, args: {seed: 3}}]}]\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse([]byte(text))
		if err != nil {
			return
		}
		wire, err := c.Wire()
		if err != nil {
			t.Fatal(err)
		}
		again, err := yaml.Marshal(wire)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(again); err != nil {
			t.Fatalf("%v\n%s", err, again)
		}
	})
}

// TestKeysStayHere: what is recorded holds no key of an extender, and the original keeps it.
func TestKeysStayHere(t *testing.T) {
	c := parse(t, "extenders: [{urlPrefix: https://e, filterVerb: f, enableHTTPS: true, tlsConfig: {serverName: "+
		"hidden, keyFile: hidden}}]\n")
	wire, err := c.WithoutSecrets().Wire()
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(wire)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "hidden") || c.Extenders[0].TLSConfig == nil {
		t.Errorf("%+v\n%s", c.Extenders[0], text)
	}
}

// TestKeysAreNotShown: a private key in the file does not come out of config show; the rest of the TLS settings does.
// Mutant: WithoutKeys that keeps keyData.
func TestKeysAreNotShown(t *testing.T) {
	c := parse(t, "extenders: [{urlPrefix: https://e, filterVerb: f, enableHTTPS: true, tlsConfig: {serverName: "+
		"seen, keyFile: /key}}]\n")
	c.Extenders[0].TLSConfig.KeyData = []byte("private")
	shown, hidden := c.WithoutKeys()
	if tls := shown.Extenders[0].TLSConfig; !hidden || len(tls.KeyData) != 0 || tls.ServerName != "seen" {
		t.Errorf("hidden %v, shown %+v", hidden, tls)
	}
	if string(c.Extenders[0].TLSConfig.KeyData) != "private" {
		t.Error("the configuration itself lost its key")
	}
}
