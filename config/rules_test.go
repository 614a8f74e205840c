// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	configv1 "k8s.io/kube-scheduler/config/v1"
)

// with is a file with the arguments of one plugin; they begin on line 6.
func with(plugin, args string) string {
	return "profiles:\n- pluginConfig:\n  - name: " + plugin + "\n    args: " + args + "\n"
}

const first = "line 6: profiles[0].pluginConfig[0].args."

// TestArguments: what each plugin's arguments may be, and what they are without a word. It catches zeroIsAbsent,
// weightStaysZero, defaultsFirst, listDefaulting, systemWithList, oneConstraintPerKey, noCandidates,
// sampledCandidates, anyBindingTimeout, groupWithSlash and flatShape.
func TestArguments(t *testing.T) { arguments(t) }

func arguments(t tb) {
	a := Default().Profiles[0].Args
	if *a.DefaultPreemption.MinCandidateNodesPercentage != 100 ||
		*a.DefaultPreemption.MinCandidateNodesAbsolute != 100 ||
		a.DynamicResources.FilterTimeout.Duration != 10*time.Second ||
		a.DynamicResources.BindingTimeout.Duration != 10*time.Minute ||
		*a.InterPodAffinity.HardPodAffinityWeight != 1 || *a.VolumeBinding.BindTimeoutSeconds != 600 ||
		!reflect.DeepEqual(a.VolumeBinding.Shape, defaultCapacityShape()) ||
		a.PodTopologySpread.DefaultingType != configv1.SystemDefaulting ||
		a.NodeResourcesFit.ScoringStrategy.Type != configv1.LeastAllocated ||
		!reflect.DeepEqual(a.NodeResourcesBalancedAllocation.Resources, defaultResources()) {
		t.Errorf("default arguments: %+v", a)
	}
	for args, want := range map[string][2]int32{
		"{}": {100, 100}, "{minCandidateNodesPercentage: 20}": {20, 100}, "{minCandidateNodesAbsolute: 7}": {10, 7},
		"{minCandidateNodesPercentage: 0}": {0, 100},
	} {
		got := parse(t, with(DefaultPreemption, args)).Profiles[0].Args.DefaultPreemption
		if *got.MinCandidateNodesPercentage != want[0] || *got.MinCandidateNodesAbsolute != want[1] {
			t.Errorf("%s: %d%%, at least %d, want %v", args, *got.MinCandidateNodesPercentage,
				*got.MinCandidateNodesAbsolute, want)
		}
	}
	zero := parse(t, with(InterPodAffinity, "{hardPodAffinityWeight: 0}")).Profiles[0].Args
	if *zero.InterPodAffinity.HardPodAffinityWeight != 0 {
		t.Errorf("a weight of 0 that the file says became %d", *zero.InterPodAffinity.HardPodAffinityWeight)
	}
	light := parse(t, with(NodeResourcesFit,
		"{scoringStrategy: {type: MostAllocated, resources: [{name: cpu}]}}")).Profiles[0].Args
	if got := light.NodeResourcesFit.ScoringStrategy.Resources[0].Weight; got != 1 {
		t.Errorf("a resource without a weight weighs %d", got)
	}
	nameless := parse(t, with(NodeResourcesBalancedAllocation, "{resources: [{name: memory}, null]}")).Profiles[0].Args
	if got := nameless.NodeResourcesBalancedAllocation.Resources; got[1].Name != "" {
		t.Errorf("a resource without a name got the name of a default: %+v", got)
	}
	const zone = "maxSkew: 1, topologyKey: zone, whenUnsatisfiable"
	parse(t, with(PodTopologySpread, "{defaultingType: List, defaultConstraints: [{"+zone+": DoNotSchedule}, {"+zone+": ScheduleAnyway}]}"))

	for _, tt := range []struct {
		plugin, args string
		want         []string // after first
	}{
		{DefaultPreemption, "{minCandidateNodesPercentage: 101}",
			[]string{"minCandidateNodesPercentage: must be between 0 and 100, got 101"}},
		{DefaultPreemption, "{minCandidateNodesAbsolute: -1}",
			[]string{"minCandidateNodesAbsolute: must not be negative, got -1"}},
		{DefaultPreemption, "{minCandidateNodesAbsolute: 0, minCandidateNodesPercentage: 0}", []string{
			"minCandidateNodesPercentage: must not be 0 while minCandidateNodesAbsolute is 0 too",
			"minCandidateNodesAbsolute: must not be 0 while minCandidateNodesPercentage is 0 too"}},
		{DynamicResources, "{filterTimeout: -1s}", []string{"filterTimeout: must not be negative, got -1s"}},
		{DynamicResources, "{bindingTimeout: 999ms}", []string{"bindingTimeout: must be at least 1s, got 999ms"}},
		{InterPodAffinity, "{hardPodAffinityWeight: 101}",
			[]string{"hardPodAffinityWeight: must be between 0 and 100, got 101"}},
		{NodeResourcesFit, "{ignoredResources: [a b]}", []string{`ignoredResources[0]: Invalid value: "a b"`}},
		{NodeResourcesFit, "{ignoredResourceGroups: [a/b]}",
			[]string{"ignoredResourceGroups[0]: Invalid value: \"a/b\": a resource group is the part before the slash"}},
		{NodeResourcesFit, "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: " +
			"[{utilization: 5, score: 1}, {utilization: 5, score: 2}]}}}",
			[]string{"scoringStrategy.requestedToCapacityRatio.shape[1].utilization: must be above the point " +
				"before (5), got 5"}},
		{PodTopologySpread, "{defaultingType: Maybe}", []string{`defaultingType: Unsupported value: "Maybe"`}},
		{PodTopologySpread, "{defaultConstraints: [{" + zone + ": DoNotSchedule}]}",
			[]string{"defaultingType: must be List where defaultConstraints are given"}},
		{PodTopologySpread, "{defaultingType: List, defaultConstraints: [{" + zone + ": DoNotSchedule}, {" + zone +
			": DoNotSchedule}]}",
			[]string{"defaultConstraints[1]: repeats topologyKey and whenUnsatisfiable of defaultConstraints[0]"}},
		{PodTopologySpread, "{defaultingType: List, defaultConstraints: [{labelSelector: {}}]}", []string{
			"defaultConstraints[0].maxSkew: must be above 0, got 0",
			"defaultConstraints[0].topologyKey: a topology key is required",
			"defaultConstraints[0].whenUnsatisfiable: required",
			"defaultConstraints[0].labelSelector: must be absent"}},
		{VolumeBinding, "{bindTimeoutSeconds: -1}", []string{"bindTimeoutSeconds: must not be negative, got -1"}},
		{VolumeBinding, "{shape: [{utilization: 0, score: 11}]}",
			[]string{"shape[0].score: must be between 0 and 10, got 11"}},
		{VolumeBinding, "{bindTimeoutSecond: 1}", []string{"bindTimeoutSecond: unknown field"}},
		{VolumeBinding, "{kind: FitArgs}", []string{"kind: must be VolumeBindingArgs or absent"}},
	} {
		want := make([]string, len(tt.want))
		for i, w := range tt.want {
			want[i] = first + w
		}
		expect(t, with(tt.plugin, tt.args), want...)
	}
}

// TestSearch: which strategy a profile gets. It catches profileShareIgnored, shareIsNoWindow, subsetUnbounded and
// seedPerProfile.
func TestSearch(t *testing.T) { search(t) }

func search(t tb) {
	for _, tt := range []struct {
		body string
		want Search
	}{
		{"", Search{Strategy: All}},
		{"percentageOfNodesToScore: 0\n", Search{Strategy: All}},
		{"percentageOfNodesToScore: 30\n", Search{Strategy: Window, Percentage: 30}},
		{"percentageOfNodesToScore: 100\n", Search{Strategy: Window, Percentage: 100}},
		{"percentageOfNodesToScore: 30\nprofiles: [{percentageOfNodesToScore: 5}]\n",
			Search{Strategy: Window, Percentage: 5}},
		{"percentageOfNodesToScore: 30\nprofiles: [{percentageOfNodesToScore: 0}]\n", Search{Strategy: All}},
		{own("{strategy: window}"), Search{Strategy: Window}},
		{"percentageOfNodesToScore: 30\n" + own("{strategy: all}"), Search{Strategy: All}},
		{own("{strategy: powerOfTwo}"), Search{Strategy: PowerOfTwo}},
		{own("{strategy: randomSubset, subset: 64}"), Search{Strategy: RandomSubset, Subset: 64}},
	} {
		if got := parse(t, tt.body).Profiles[0].Search; got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.body, got, tt.want)
		}
	}
	expect(t, own("{strategy: randomSubset}"),
		"args.subset: strategy randomSubset needs a number of nodes above 0, got 0")
	expect(t, own("{subset: 4}"), "args.subset: only allowed with strategy randomSubset, it is all")
	expect(t, own("{subset: many}"), "line 6: profiles[0].pluginConfig[0].args.subset: want a whole number, got string")

	two := func(a, b string) string {
		entry := "- schedulerName: %s\n  pluginConfig: [{name: Kumiki, args: %s}]\n"
		return "profiles:\n" + fmt.Sprintf(entry, "a", a) + fmt.Sprintf(entry, "b", b)
	}
	c := parse(t, two("{seed: 5, strategy: powerOfTwo, syncPreemption: true}",
		"{inFlightBinds: 3, fitScoresReal: true}"))
	if !reflect.DeepEqual(c.Kumiki, Settings{Seed: 5, InFlightBinds: 3, Gangs: DefaultGangs(), Cycle: Continuous,
		Hosted:    DefaultHosted(),
		Instances: DefaultInstances(), Wire: Prepared}) ||
		c.Profiles[0].Search.Strategy != PowerOfTwo || c.Profiles[0].FitScoresReal || !c.Profiles[0].SyncPreemption ||
		c.Profiles[1].SyncPreemption ||
		c.Profiles[1].Search.Strategy != All || !c.Profiles[1].FitScoresReal {
		t.Errorf("got %+v and %+v", c.Kumiki, c.Profiles)
	}
	parse(t, two("{seed: 5}", "{seed: 5}"))
	expect(t, two("{seed: 5}", "{seed: 6}"),
		"profiles[1].pluginConfig[0].args.seed: must be the same as in profiles[0]")
	expect(t, two("{inFlightBinds: 5}", "{inFlightBinds: 6}"),
		"profiles[1].pluginConfig[0].args.inFlightBinds: must be the same as in profiles[0]")
}

// TestWire: binds and events are sent one way by the whole process.
func TestWire(t *testing.T) {
	own := func(args string) string {
		return "profiles:\n- schedulerName: a\n  pluginConfig: [{name: Kumiki, args: {" + args + "}}]\n- schedulerName: b\n"
	}
	if got := parse(t, own("")).Kumiki.Wire; got != Prepared {
		t.Errorf("without the setting: %q", got)
	}
	if got := parse(t, own("wire: TypedClients")).Kumiki.Wire; got != TypedClients {
		t.Errorf("with wire: TypedClients: %q", got)
	}
	expect(t, own("wire: prepared"),
		`profiles[0].pluginConfig[0].args.wire: must be one of [Prepared TypedClients], got "prepared"`)
	expect(t, own("wire: Prepared")+"  pluginConfig: [{name: Kumiki, args: {wire: TypedClients}}]\n",
		"profiles[1].pluginConfig[0].args.wire: must be the same as in profiles[0]")
}

// TestHostedSettings: limits of calls of plugins, the same in all profiles.
func TestHostedSettings(t *testing.T) {
	own := func(args string) string {
		return "profiles:\n- pluginConfig:\n  - name: Kumiki\n    args: {hosted: " + args + "}\n"
	}
	for text, want := range map[string]Hosted{
		"":                                       {SlowCall: time.Second, Reuse: ReuseNone},
		own("{pluginTimeout: 3s}"):               {PluginTimeout: 3 * time.Second, SlowCall: time.Second, Reuse: ReuseNone},
		own("{pluginTimeout: 1h, slowCall: 0s}"): {PluginTimeout: time.Hour, Reuse: ReuseNone},
		own("{check: true}"):                     {SlowCall: time.Second, Check: true, Reuse: ReuseNone},
		own("{reuse: Signed}"):                   {SlowCall: time.Second, Reuse: ReuseSigned},
		own("{reuse: None}"):                     {SlowCall: time.Second, Reuse: ReuseNone},
	} {
		c := parse(t, text)
		if c.Kumiki.Hosted != want {
			t.Errorf("%s: %v, want %v", text, c.Kumiki.Hosted, want)
		}
	}
	first := "profiles[0].pluginConfig[0].args.hosted."
	expect(t, own("{pluginTimeout: -1s}"), first+"pluginTimeout: must be at least 0s and at most 1h0m0s, got -1s")
	expect(t, own("{reuse: signed}"), first+`reuse: must be None or Signed, got "signed"`)
	expect(t, own("{slowCall: 61m}"), first+"slowCall: must be at least 0s and at most 1h0m0s, got 1h1m0s")
	expect(t, "profiles:\n- schedulerName: a\n  pluginConfig: [{name: Kumiki, args: {hosted: {slowCall: 1s}}}]\n"+
		"- schedulerName: b\n  pluginConfig: [{name: Kumiki, args: {hosted: {slowCall: 2s}}}]\n",
		"profiles[1].pluginConfig[0].args.hosted: must be the same as in profiles[0].pluginConfig[0].args.hosted")
}

// TestSessions: when units are tried, and what makes a node full. It catches anySessionPeriod and
// slotsNowhere.
func TestSessions(t *testing.T) { sessionRules(t) }

func sessionRules(t tb) {
	for body, want := range map[string]turn{
		"": {Cycle: Continuous}, own("{cycle: continuous}"): {Cycle: Continuous},
		own("{cycle: sessions}"):                       {InSessions, 5 * time.Second},
		own("{cycle: sessions, sessionPeriod: 1m30s}"): {InSessions, 90 * time.Second},
		own("{cycle: sessions, sessionPeriod: 100ms}"): {InSessions, 100 * time.Millisecond},
		"profiles:\n- schedulerName: a\n- schedulerName: b\n  pluginConfig: [{name: Kumiki, args: {cycle: " +
			"sessions}}]\n": {InSessions, 5 * time.Second},
	} {
		if got := parse(t, body).Kumiki; got.Cycle != want.Cycle || got.SessionPeriod != want.period {
			t.Errorf("%s: %s every %s, want %s", body, got.Cycle, got.SessionPeriod, want)
		}
	}
	expect(t, own("{cycle: rounds}"), first+`cycle: must be one of [continuous sessions], got "rounds"`)
	expect(t, own("{cycle: sessions, sessionPeriod: 99ms}"),
		first+"sessionPeriod: must be at least 100ms and at most 1h0m0s, got 99ms")
	expect(t, own("{cycle: sessions, sessionPeriod: 61m}"),
		first+"sessionPeriod: must be at least 100ms and at most 1h0m0s, got 1h1m0s")
	expect(t, own("{cycle: sessions, sessionPeriod: soon}"), first+"sessionPeriod: ")
	expect(t, own("{sessionPeriod: 5s}"), first+"sessionPeriod: only allowed with cycle sessions, it is continuous")
	two := "profiles:\n- schedulerName: a\n  pluginConfig: [{name: Kumiki, args: {cycle: sessions}}]\n- " +
		"schedulerName: b\n  pluginConfig: [{name: Kumiki, args: %s}]\n"
	expect(t, fmt.Sprintf(two, "{cycle: continuous}"),
		"profiles[1].pluginConfig[0].args.cycle: must be the same as in profiles[0].pluginConfig[0].args.cycle "+
			"(sessions with sessionPeriod 5s), "+
			"because it holds for the whole process; got continuous")
	expect(t, fmt.Sprintf(two, "{cycle: sessions, sessionPeriod: 6s}"),
		"profiles[1].pluginConfig[0].args.cycle: must be the same as in profiles[0]")

	for body, want := range map[string]Preemption{
		"":                                     {BestEffort, 5 * time.Minute, 0},
		own("{preemption: {}}"):                {BestEffort, 5 * time.Minute, 0},
		own("{preemption: {budgets: Strict}}"): {Strict, 5 * time.Minute, 0},
		own("{preemption: {budgets: BestEffort, victimTimeout: 0s}}"): {BestEffort, 0, 0},
		own("{preemption: {after: 30s}}"):                             {BestEffort, 5 * time.Minute, 30 * time.Second},
		own("{preemption: {after: 24h}}"):                             {BestEffort, 5 * time.Minute, 24 * time.Hour},
	} {
		if got := parse(t, body).Profiles[0].Preemption; got != want {
			t.Errorf("%s: %v, want %v", body, got, want)
		}
	}
	expect(t, own("{preemption: {budgets: Never}}"),
		first+`preemption.budgets: must be one of [BestEffort Strict], got "Never"`)
	expect(t, own("{preemption: {victimTimeout: 25h}}"),
		first+"preemption.victimTimeout: must be at least 0s and at most 24h0m0s, got 25h0m0s")
	expect(t, own("{preemption: {victimTimeout: -1s}}"), first+"preemption.victimTimeout: must be at least 0s")
	expect(t, own("{preemption: {after: 24h1s}}"),
		first+"preemption.after: must be at least 0s and at most 24h0m0s, got 24h0m1s")
	expect(t, own("{preemption: {after: -1s}}"), first+"preemption.after: must be at least 0s")

	c := parse(t, "profiles:\n- schedulerName: a\n- schedulerName: b\n  pluginConfig: [{name: Kumiki, args: {fit: "+
		"slots}}]\n")
	if c.Profiles[0].Fit != Resources || c.Profiles[1].Fit != Slots {
		t.Errorf("fits: %s, %s", c.Profiles[0].Fit, c.Profiles[1].Fit)
	}
	expect(t, own("{fit: tight}"), first+`fit: must be one of [resources slots], got "tight"`)
	expect(t, own("{fit: slots}")+"  plugins: {filter: {disabled: [{name: NodeResourcesFit}]}}\n",
		first+"fit: slots stands where NodeResourcesFit filters, and this profile has switched that off")
}

// TestExtenders: what an extender may be. It catches twoBinders, weightlessExtender, resourceTwice, nativeManaged and
// ignoredAreChecked.
func TestExtenders(t *testing.T) { extenderRules(t) }

func extenderRules(t tb) {
	c := parse(t, `extenders:
- {urlPrefix: "http://one", filterVerb: filter, prioritizeVerb: prioritize, weight: 2, bindVerb: bind, managedResources: [{name: example.com/a, ignoredByScheduler: true}]}
- {urlPrefix: "https://two", preemptVerb: preempt, enableHTTPS: true, httpTimeout: 30s, ignorable: true, nodeCacheCapable: true, managedResources: [{name: example.com/b}]}
profiles:
- pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [example.com/c]}}]
`)
	if len(c.Extenders) != 2 || c.Extenders[0].HTTPTimeout.Duration != 5*time.Second ||
		c.Extenders[1].HTTPTimeout.Duration != 30*time.Second {
		t.Errorf("extenders: %+v", c.Extenders)
	}
	if got := strings.Join(c.Profiles[0].Args.NodeResourcesFit.IgnoredResources, " "); got != "example.com/a" {
		t.Errorf("NodeResourcesFit ignores %q", got)
	}
	expect(t, "extenders:\n- urlPrefix: http://e\n  prioritizeVerb: p\n",
		"line 4: extenders[0].weight: must be above 0 for an extender that prioritizes, got 0")
	expect(t, "extenders: [{urlPrefix: http://e, bindVerb: b}, {urlPrefix: http://f, bindVerb: b}]\n",
		"line 3: extenders: only one extender can bind, got 2")
	expect(t, "extenders: [{urlPrefix: http://e, filterVerb: f, managedResources: [{name: cpu}]}]\n",
		`extenders[0].managedResources[0].name: "cpu" is no extended resource`)
	expect(t, "extenders: [{urlPrefix: http://e, filterVerb: f, managedResources: [{name: a.b/c}]}, {urlPrefix: "+
		"http://f, filterVerb: f, managedResources: [{name: a.b/c}]}]\n",
		`extenders[1].managedResources[0].name: "a.b/c" is managed twice`)
	expect(t, "extenders: [{urlPrefix: http://e, filterVerb: f, managedResources: [{name: a b}]}]\n",
		`extenders[0].managedResources[0].name: "a b" is no resource name`)
	expect(t, "extenders: [{urlPrefix: http://e, filterVerb: f, httpTimeout: -1s}]\n",
		"extenders[0].httpTimeout: must not be negative, got -1s")
	expect(t, "extenders: [{urlPrefix: https://e, filterVerb: f, tlsConfig: {insecure: true, caFile: /ca}}]\n",
		"extenders[0].tlsConfig.insecure: must not be true where root certificates are given")
	expect(t, "extenders: [{urlPrefix: https://e, filterVerb: f, tlsConfig: {caData: aGVsbG8=}}]\n",
		"extenders[0].tlsConfig.caData: holds no certificate in PEM")
	expect(t, "extenders: [{urlPrefix: https://e, filterVerb: f, tlsConfig: {certData: aGVsbG8=, keyData: "+
		"aGVsbG8=}}]\n", "extenders[0].tlsConfig.certData: certificate and key do not work together")
	expect(t, "extenders: [{urlPrefix: http://e, filter: f}]\n", "line 3: extenders[0].filter: unknown field")
}

// TestTheProcess: what holds for all profiles. It catches leaseAnyOrder.
func TestTheProcess(t *testing.T) { process(t) }

func process(t tb) {
	expect(t, "leaderElection: {leaseDuration: 5s}\n",
		"line 3: leaderElection.leaseDuration: must be longer than renewDeadline (10s), got 5s")
	expect(t, "profiles:\n- {schedulerName: a, plugins: {queueSort: {enabled: [{name: PrioritySort}]}}}\n- "+
		"{schedulerName: b}\n",
		"line 5: profiles[1].plugins.queueSort: must be the same in all profiles")
}
