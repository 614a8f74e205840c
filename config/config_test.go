// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

const head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

func parse(t *testing.T, body string) Resolved {
	t.Helper()
	r, err := Parse([]byte(head + body))
	if err != nil {
		t.Fatalf("parsing:\n%s\n%v", body, err)
	}
	return r
}

// TestDefaultProfile catches a default profile that lost a plugin or a weight against upstream's.
func TestDefaultProfile(t *testing.T) {
	c := Default()
	if len(c.Profiles) != 1 || c.Profiles[0].SchedulerName != "default-scheduler" {
		t.Fatalf("profiles: %+v", c.Profiles)
	}
	p := c.Profiles[0]
	want := map[Point]string{
		PreEnqueue: "SchedulingGates",
		QueueSort:  "PrioritySort",
		PreFilter:  "NodeAffinity NodePorts NodeResourcesFit",
		Filter:     "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit",
		PreScore:   "TaintToleration NodeAffinity NodeResourcesFit NodeResourcesBalancedAllocation",
		Score:      "TaintToleration NodeAffinity NodeResourcesFit NodeResourcesBalancedAllocation ImageLocality",
		Bind:       "DefaultBinder",
	}
	for _, at := range points {
		if got := strings.Join(p.Enabled[at], " "); got != want[at] {
			t.Errorf("%s: got %q, want %q", at, got, want[at])
		}
	}
	weights := map[string]int64{TaintToleration: 3, NodeAffinity: 2, NodeResourcesFit: 1, NodeResourcesBalancedAllocation: 1, ImageLocality: 1}
	if !reflect.DeepEqual(p.Weights, weights) {
		t.Errorf("weights: got %v, want %v", p.Weights, weights)
	}
	if c.PodInitialBackoff != time.Second || c.PodMaxBackoff != 10*time.Second || !c.LeaderElection.Enabled ||
		c.LeaderElection.Namespace != "kube-system" || c.LeaderElection.Name != "kube-scheduler" ||
		c.LeaderElection.LeaseDuration != 15*time.Second || c.ClientConnection.QPS != 0 || len(c.Warnings) != 0 {
		t.Errorf("defaults: %+v", c)
	}
}

// TestPluginSets walks through upstream's rules of enabling and disabling.
func TestPluginSets(t *testing.T) {
	for _, tt := range []struct {
		name, plugins string
		at            Point
		want          string
	}{
		{"star at one point keeps multiPoint out", "score: {disabled: [{name: '*'}], enabled: [{name: ImageLocality}]}", Score, "ImageLocality"},
		{"star at multiPoint drops every default", "multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: NodeName}]}", Filter, "NodeName"},
		{"disabling at one point leaves the others", "score: {disabled: [{name: NodeAffinity}]}\n      preScore: {disabled: [{name: NodeAffinity}]}", Filter,
			"NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit"},
		{"a point's own comes first when it overrides", "score: {enabled: [{name: ImageLocality, weight: 5}]}", Score,
			"ImageLocality TaintToleration NodeAffinity NodeResourcesFit NodeResourcesBalancedAllocation"},
		{"a default enabled again keeps its place", "multiPoint: {enabled: [{name: NodeName}]}", Filter,
			"NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit"},
		{"disabled and enabled goes to the end", "multiPoint: {disabled: [{name: NodeName}], enabled: [{name: NodeName}]}", Filter,
			"NodeUnschedulable TaintToleration NodeAffinity NodePorts NodeResourcesFit NodeName"},
		{"a point may add what multiPoint lost", "multiPoint: {disabled: [{name: NodeName}]}\n      filter: {enabled: [{name: NodeName}]}", Filter,
			"NodeUnschedulable TaintToleration NodeAffinity NodePorts NodeResourcesFit NodeName"},
		{"plugins of upstream that are not here may be off", "multiPoint: {disabled: [{name: PodTopologySpread}]}", Bind, "DefaultBinder"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := parse(t, "profiles:\n  - plugins:\n      "+tt.plugins+"\n")
			if got := strings.Join(c.Profiles[0].Enabled[tt.at], " "); got != tt.want {
				t.Errorf("%s: got %q, want %q", tt.at, got, tt.want)
			}
		})
	}
}

// TestWeights: the score set wins over multiPoint, and no weight at all is 1.
func TestWeights(t *testing.T) {
	for _, tt := range []struct {
		plugins string
		want    int64
	}{
		{"score: {enabled: [{name: TaintToleration, weight: 7}]}", 7},
		{"score: {enabled: [{name: TaintToleration}]}", 1},
		{"multiPoint: {enabled: [{name: TaintToleration, weight: 9}]}", 9},
		{"multiPoint: {enabled: [{name: TaintToleration}]}", 1},
		{"multiPoint: {enabled: [{name: TaintToleration, weight: 9}]}\n      score: {enabled: [{name: TaintToleration, weight: 4}]}", 4},
		{"filter: {enabled: [{name: TaintToleration, weight: 50}]}", 3},
	} {
		c := parse(t, "profiles:\n  - plugins:\n      "+tt.plugins+"\n")
		if got := c.Profiles[0].Weights[TaintToleration]; got != tt.want {
			t.Errorf("%s: weight %d, want %d", tt.plugins, got, tt.want)
		}
	}
}

// TestProblems: every kind of mistake gives a line, a path and a sentence.
func TestProblems(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       []string // one per problem, in order
	}{
		{"unknown field", "paralelism: 3\n", []string{"line 3: paralelism: unknown field"}},
		{"unknown field deep", "profiles:\n- plugins:\n    score:\n      enabled:\n      - name: ImageLocality\n        wait: 3\n",
			[]string{"line 8: profiles[0].plugins.score.enabled[0].wait: unknown field"}},
		{"two unknown fields", "foo: 1\nbar: 2\n", []string{"line 4: bar: unknown field", "line 3: foo: unknown field"}},
		{"field twice", "parallelism: 1\nparallelism: 2\n", []string{`line 4: key "parallelism" already set in map`}},
		{"wrong type", "parallelism: many\n", []string{"line 3: parallelism: want a whole number, got string"}},
		{"wrong type deep", "profiles:\n- schedulerName: a\n- schedulerName: [b]\n",
			[]string{"line 5: profiles[1].schedulerName: want a string, got array"}},
		{"weight no number", "profiles:\n- plugins:\n    score:\n      enabled:\n      - name: ImageLocality\n        weight: heavy\n",
			[]string{"line 8: profiles[0].plugins.score.enabled[0].weight: want a whole number, got string"}},
		{"weight too large", "profiles:\n- plugins:\n    score:\n      enabled:\n      - name: ImageLocality\n        weight: 99999999999\n",
			[]string{"line 8: profiles[0].plugins.score.enabled[0].weight: want a whole number, got number 99999999999"}},
		{"weight negative", "profiles:\n- plugins: {score: {enabled: [{name: ImageLocality, weight: -1}]}}\n",
			[]string{"line 4: profiles[0].plugins.score.enabled[0].weight: must not be negative, got -1"}},
		{"bad duration", "leaderElection:\n  leaseDuration: soon\n", []string{`line 4: leaderElection.leaseDuration: time: invalid duration "soon"`}},
		{"bad yaml", "profiles: [\n", []string{"line 3: did not find expected node content"}},
		{"two documents", "---\nkind: Other\n", []string{"line 3: a second document begins; the file must hold one"}},
		{"unknown plugin", "profiles:\n- plugins: {filter: {enabled: [{name: nodename}]}}\n",
			[]string{`line 4: profiles[0].plugins.filter.enabled[0].name: unknown plugin "nodename", did you mean "NodeName"?; available: SchedulingGates, PrioritySort,`}},
		{"not built yet", "profiles:\n- plugins: {score: {enabled: [{name: PodTopologySpread, weight: 5}]}}\n",
			[]string{`profiles[0].plugins.score.enabled[0].name: plugin "PodTopologySpread" is not available in this version; available: `}},
		{"removed", "profiles:\n- plugins: {filter: {enabled: [{name: EBSLimits}]}}\n",
			[]string{`profiles[0].plugins.filter.enabled[0].name: plugin "EBSLimits" was removed from Kubernetes`}},
		{"wrong point", "profiles:\n- plugins: {score: {enabled: [{name: NodeName}]}}\n",
			[]string{`plugin "NodeName" does not extend score; it extends filter`}},
		{"enabled twice", "profiles:\n- plugins: {multiPoint: {enabled: [{name: NodeName}, {name: NodeName}]}}\n",
			[]string{`profiles[0].plugins.multiPoint.enabled[1].name: plugin "NodeName" is enabled twice`}},
		{"no queue sort", "profiles:\n- plugins: {queueSort: {disabled: [{name: '*'}]}}\n",
			[]string{"profiles[0].plugins.queueSort: exactly one plugin must sort the queue, got 0"}},
		{"no bind", "profiles:\n- plugins: {bind: {disabled: [{name: DefaultBinder}]}}\n",
			[]string{"profiles[0].plugins.bind: at least one plugin must bind"}},
		{"same name twice", "profiles:\n- schedulerName: a\n- schedulerName: a\n",
			[]string{`line 5: profiles[1].schedulerName: "a" is already the name of profiles[0]`}},
		{"no name among several", "profiles:\n- schedulerName: a\n- {}\n", []string{"profiles[1].schedulerName: a name is required"}},
		{"backoff", "podInitialBackoffSeconds: 0\n", []string{"line 3: podInitialBackoffSeconds: must be above 0"}},
		{"backoff order", "podInitialBackoffSeconds: 20\n", []string{"podMaxBackoffSeconds: must be at least podInitialBackoffSeconds (20)"}},
		{"percentage", "percentageOfNodesToScore: 101\n", []string{"line 3: percentageOfNodesToScore: must be between 0 and 100, got 101"}},
		{"parallelism", "parallelism: 0\n", []string{"parallelism: must be above 0, got 0"}},
		{"lease order", "leaderElection:\n  leaseDuration: 5s\n", []string{"line 4: leaderElection.leaseDuration: must be longer than renewDeadline (10s), got 5s"}},
		{"lease lock", "leaderElection:\n  resourceLock: endpoints\n", []string{`line 4: leaderElection.resourceLock: must be "leases", got "endpoints"`}},
		{"extenders", "extenders:\n- urlPrefix: http://x\n", []string{"line 3: extenders: HTTP extenders are not available in this version"}},
		{"args of unknown", "profiles:\n- pluginConfig:\n  - name: NodeResourceFit\n    args: {}\n",
			[]string{`line 5: profiles[0].pluginConfig[0].name: unknown plugin "NodeResourceFit", did you mean`}},
		{"args twice", "profiles:\n- pluginConfig:\n  - name: NodeAffinity\n  - name: NodeAffinity\n",
			[]string{`line 6: profiles[0].pluginConfig[1].name: the arguments of "NodeAffinity" are given twice`}},
		{"args unknown field", "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args:\n      scoringStrategy:\n        typ: x\n        type: LeastAllocated\n",
			[]string{"line 8: profiles[0].pluginConfig[0].args.scoringStrategy.typ: unknown field"}},
		{"args kind", "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args:\n      kind: NodeAffinityArgs\n",
			[]string{`line 7: profiles[0].pluginConfig[0].args.kind: must be NodeResourcesFitArgs or absent, got "NodeAffinityArgs"`}},
		{"strategy", "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args:\n      scoringStrategy:\n        type: Best\n",
			[]string{`line 8: profiles[0].pluginConfig[0].args.scoringStrategy.type: Unsupported value: "Best"`}},
		{"strategy weight", "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args:\n      scoringStrategy:\n        type: MostAllocated\n        resources: [{name: cpu, weight: 101}]\n",
			[]string{"line 9: profiles[0].pluginConfig[0].args.scoringStrategy.resources[0].weight: the weight of cpu must be between 1 and 100, got 101"}},
		{"shape missing", "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args: {scoringStrategy: {type: RequestedToCapacityRatio}}\n",
			[]string{"requestedToCapacityRatio: required when type is RequestedToCapacityRatio"}},
		{"shape order", "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args: {scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 5, score: 1}, {utilization: 5, score: 11}]}}}\n",
			[]string{"shape[1].utilization: must be above the point before (5), got 5", "shape[1].score: must be between 0 and 10, got 11"}},
		{"balanced weight", "profiles:\n- pluginConfig:\n  - name: NodeResourcesBalancedAllocation\n    args: {resources: [{name: cpu, weight: 2}, {name: cpu}]}\n",
			[]string{"resources[0].weight: must be 1, got 2", `resources[1].name: resource "cpu" is given twice`}},
		{"affinity operator", "profiles:\n- pluginConfig:\n  - name: NodeAffinity\n    args:\n      addedAffinity:\n        requiredDuringSchedulingIgnoredDuringExecution:\n          nodeSelectorTerms:\n          - matchExpressions: [{key: a, operator: Like}]\n",
			[]string{`line 10: profiles[0].pluginConfig[0].args.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Like"`}},
		{"own setting", "profiles:\n- pluginConfig:\n  - name: Kumiki\n    args: {inFlightBinds: 0, speed: 1}\n",
			[]string{"profiles[0].pluginConfig[0].args.speed: unknown field", "args.inFlightBinds: must be above 0, got 0"}},
		{"own settings differ", "profiles:\n- schedulerName: a\n  pluginConfig: [{name: Kumiki, args: {seed: 1}}]\n- schedulerName: b\n  pluginConfig: [{name: Kumiki, args: {seed: 2}}]\n",
			[]string{"must be the same as in profiles[0].pluginConfig[0]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(head + tt.body))
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("want problems, got %v", err)
			}
			if len(e.Problems) != len(tt.want) {
				t.Fatalf("want %d problems, got %v", len(tt.want), err)
			}
			for i, want := range tt.want {
				if got := e.Problems[i].String(); !strings.Contains(got, want) {
					t.Errorf("problem %d:\n got %s\nwant %s", i, got, want)
				}
			}
		})
	}
}

// TestWrongKind: a file of another kind is told so, whatever else it holds.
func TestWrongKind(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "- a\n", "kind: Pod\n", "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%q was read without an error", text)
		}
	}
}

// TestWarnings: what works but may not be meant is said and does not stop the start.
func TestWarnings(t *testing.T) {
	for body, want := range map[string]string{
		"percentageOfNodesToScore: 30\n":                                             "line 3: percentageOfNodesToScore: 30 has no effect in this version",
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
		"leaderElection: {leaderElect: false}\nclientConnection: {qps: 5, burst: 7, kubeconfig: /k}\npodMaxBackoffSeconds: 60\nenableProfiling: false\n",
		"profiles:\n- schedulerName: a\n  plugins: {score: {enabled: [{name: ImageLocality, weight: 9}]}, filter: {disabled: [{name: NodeName}]}}\n" +
			"  pluginConfig:\n  - name: Kumiki\n    args: {seed: 77, inFlightBinds: 3}\n  - name: NodeResourcesFit\n    args: {ignoredResourceGroups: [example.com], scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 3}]}}\n" +
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
