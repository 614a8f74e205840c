// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// everything has each operation with each of its fields.
const everything = `- name: All
  featureGates: {A: true, B: true}
  labels: [performance]
  schedulerConfigPath: scheduler.yaml
  defaultPodTemplatePath: templates/pod.yaml
  defaultThresholdMetricSelector: {name: scheduler_scheduling_attempt_duration_seconds, labels: {result: scheduled}, dataBucket: Perc99, expectLower: true}
  metricsCollectorConfig:
    metrics:
      scheduler_scheduling_attempt_duration_seconds:
      - label: result
        values: [scheduled, error]
  workloadTemplate:
  - opcode: createNodes
    count: 3
    nodeTemplatePath: templates/node.yaml
    nodeAllocatableStrategy:
      nodeAllocatable: {attachable: "39"}
      csiNodeAllocatable:
        csi.example.com: {count: 39}
      migratedPlugins: [kubernetes.io/aws-ebs]
  - opcode: createNodes
    count: 0
    labelNodePrepareStrategy: {labelKey: zone, labelValues: [a, b]}
  - {opcode: createNodes, count: 1, uniqueNodeLabelStrategy: {labelKey: unique}}
  - {opcode: createNamespaces, prefix: ns, count: 2}
  - opcode: createPods
    countParam: $groups
    countMultiplierParam: $each
    steadyStateParam: $steady
    durationParam: $long
    podTemplatePath: templates/gang.yaml
    templateParams: {each: $each, cpu: 100m, rules: $rules, tries: $tries|5, none: $none|, "on": "$on|[a, b: 1]"}
    signatureBatchSize: 4
    namespace: here
    collectMetrics: true
  - opcode: createPodSets
    count: 4
    namespacePrefix: ns
    createPodsOp: {opcode: createPods, countParam: $each, skipWaitToCompletion: true}
  - {opcode: deletePods, namespace: ns-1, labelSelector: {app: x}, deletePodsPerSecond: 50, skipWaitToCompletion: true}
  - {opcode: churn, mode: recreate, number: 2, intervalMilliseconds: 100, templatePaths: [templates/pod.yaml, templates/node.yaml]}
  - {opcode: churn, mode: create, templatePaths: [templates/pod.yaml]}
  - {opcode: createAny, templatePath: templates/pod.yaml, namespace: here}
  - {opcode: updateAny, templatePath: templates/pod.yaml, count: 7, namespace: here, updatePerSecond: 9, subresources: [resize]}
  - {opcode: barrier, labelSelector: {app: x}, namespaces: [ns-0]}
  - {opcode: barrier, stageRequirement: Attempted}
  - {opcode: sleep, durationParam: $long}
  - {opcode: startCollectingMetrics, name: second, namespaces: [here], labelSelector: {app: x}}
  - {opcode: stopCollectingMetrics}
  - {opcode: startCollectingProfile, type: CPU, filePath: cpu.pprof}
  - {opcode: stopCollectingProfile, type: CPU}
  - {opcode: createResourceClaims, count: 2, namespace: here, templatePath: templates/claim.yaml}
  - {opcode: createResourceDriver, driverName: driver.example.com, nodes: "node-*", maxClaimsPerNode: 8}
  - {opcode: allocResourceClaims, namespace: here}
  - {opcode: createPodGroups, countParam: $groups, namespace: here, templatePath: templates/group.yaml, templateParams: {each: $each}}
  - {opcode: waitForPodGroups, namespaces: [here]}
  workloads:
  - name: one
    labels: [short]
    featureGates: {B: false}
    threshold: {dra: 40}
    params: {groups: 5, each: 3, steady: true, long: 10s, tries: 6, rules: [{key: a < b}, null]}
`

var everyTemplate = map[string]string{
	"family/scheduler.yaml":       "kind: KubeSchedulerConfiguration\n",
	"family/templates/node.yaml":  "apiVersion: v1\nkind: Node\nmetadata:\n  name: n-{{.Index}}\n",
	"family/templates/gang.yaml":  "kind: Pod\nmetadata:\n  name: p-{{.Index}}\nspec:\n  schedulingGroup:\n    podGroupName: g-{{DivideInt .Index .each}}\n",
	"family/templates/claim.yaml": "kind: ResourceClaim\nmetadata:\n  generateName: c-\n",
	"family/templates/group.yaml": "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata:\n  name: g-{{.Index}}\nspec:\n  schedulingPolicy:\n    gang:\n      minCount: {{.each}}\n",
}

// Catches: any field that is dropped, swapped, read from another one, or given the wrong default.
func TestAPlanHasEveryFieldOfEveryOperation(t *testing.T) {
	plans, err := planned(everything, everyTemplate)
	if err != nil {
		t.Fatal(err)
	}
	p := plans[0]
	file := func(name string, params map[string]any) Template {
		name = "family/templates/" + name + ".yaml"
		text, ok := everyTemplate[name]
		if !ok {
			text = podYAML
		}
		return Template{Path: name, Text: text, Params: params}
	}
	node, pod, claim := file("node", nil), file("pod", nil), file("claim", nil)
	gang := file("gang", map[string]any{"each": 3, "cpu": "100m", "rules": []any{map[string]any{"key": "a < b"}, nil},
		"tries": 6, "none": nil, "on": []any{"a", map[string]any{"b": 1}}})
	group := file("group", map[string]any{"each": 3})
	want := []Op{
		&CreateNodes{Count: 3, Template: &node, Allocatable: &NodeAllocatable{
			Allocatable:    map[string]string{"attachable": "39"},
			CSIAllocatable: map[string]int32{"csi.example.com": 39},
			Migrated:       map[string]map[string]bool{"csi.example.com": {"kubernetes.io/aws-ebs": true}},
		}},
		&CreateNodes{Label: &NodeLabel{Key: "zone", Values: []string{"a", "b"}}},
		&CreateNodes{Count: 1, UniqueLabel: &NodeUniqueLabel{Key: "unique"}},
		&CreateNamespaces{Prefix: "ns", Count: 2},
		&CreatePods{Count: 15, Steady: 10 * time.Second, CollectMetrics: true, Namespace: "here", Template: &gang, SignatureBatch: 4},
		&CreatePodSets{Count: 4, NamespacePrefix: "ns", Pods: CreatePods{Count: 3, SkipWait: true}},
		&DeletePods{Namespace: "ns-1", Labels: map[string]string{"app": "x"}, PerSecond: 50, SkipWait: true},
		&Churn{Recreate: true, Number: 2, Interval: 100 * time.Millisecond, Templates: []Template{pod, node}},
		&Churn{Interval: 500 * time.Millisecond, Templates: []Template{pod}},
		&CreateAny{Namespace: "here", Template: pod, Count: 1},
		&UpdateAny{Namespace: "here", Template: pod, Count: 7, PerSecond: 9, Subresources: []string{"resize"}},
		&Barrier{Namespaces: []string{"ns-0"}, Labels: map[string]string{"app": "x"}, Stage: Scheduled},
		&Barrier{Stage: Attempted},
		&Sleep{Duration: 10 * time.Second},
		&StartCollectingMetrics{Name: "second", Namespaces: []string{"here"}, Labels: map[string]string{"app": "x"}},
		&StopCollectingMetrics{},
		&StartCollectingProfile{Path: "cpu.pprof"},
		&StopCollectingProfile{},
		&CreateResourceClaims{Count: 2, Namespace: "here", Template: claim},
		&CreateResourceDriver{Driver: "driver.example.com", ClaimsPerNode: 8, Nodes: "node-*"},
		&AllocResourceClaims{Namespace: "here"},
		&CreatePodGroups{Count: 5, Namespace: "here", Template: group},
		&WaitForPodGroups{Namespaces: []string{"here"}},
	}
	if len(p.Ops) != len(want) {
		t.Fatalf("%d operations, want %d", len(p.Ops), len(want))
	}
	covered := map[string]bool{}
	for i := range want {
		covered[want[i].Opcode()] = true
		if !reflect.DeepEqual(p.Ops[i], want[i]) {
			t.Errorf("operation %d:\ngot  %+v\nwant %+v", i, p.Ops[i], want[i])
		}
	}
	for code := range opReaders {
		if !covered[code] && code != "createPodMix" { // never in a plan: see mix_test.go
			t.Errorf("no %s in this test", code)
		}
	}
	if p.Name != "All/one" || !reflect.DeepEqual(p.Labels, []string{"performance", "short"}) || p.SchedulerConfig != everyTemplate["family/scheduler.yaml"] {
		t.Errorf("plan %q, labels %q, configuration %q", p.Name, p.Labels, p.SchedulerConfig)
	}
	if !reflect.DeepEqual(p.DefaultPod, &pod) {
		t.Errorf("default pod %+v", p.DefaultPod)
	}
	if !reflect.DeepEqual(p.Gates, map[string]bool{"A": true, "B": false}) {
		t.Errorf("gates %v: those of the workload go before those of the case", p.Gates)
	}
	if p.ThresholdFor("dra") != 40 || p.ThresholdFor("misc") != 0 {
		t.Errorf("thresholds %v, %v", p.ThresholdFor("dra"), p.ThresholdFor("misc"))
	}
	selector := MetricSelector{Name: "scheduler_scheduling_attempt_duration_seconds", Labels: map[string]string{"result": "scheduled"}, Bucket: "Perc99", ExpectLower: true}
	if !reflect.DeepEqual(p.Selector, selector) {
		t.Errorf("selector %+v", p.Selector)
	}
	metrics := []Metric{{Name: "scheduler_scheduling_attempt_duration_seconds", Labels: []MetricLabel{{Label: "result", Values: []string{"scheduled", "error"}}}}}
	if !reflect.DeepEqual(p.Metrics, metrics) {
		t.Errorf("metrics %+v", p.Metrics)
	}
}

// Catches: a plan that shares maps or operations with the next one, so that one run changes another.
func TestPlansShareNothing(t *testing.T) {
	f, err := LoadFS(folder(everything, everyTemplate), "family/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	first, err := f.Plans(nil, "")
	if err != nil {
		t.Fatal(err)
	}
	first[0].Gates["A"] = false
	first[0].Ops[0].(*CreateNodes).Allocatable.Allocatable["attachable"] = "0"
	second, err := f.Plans(nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if !second[0].Gates["A"] || second[0].Ops[0].(*CreateNodes).Allocatable.Allocatable["attachable"] != "39" {
		t.Error("the second plan has what was written into the first")
	}
}

// Catches: templates that are read for the first time when the cluster is there already.
func TestATemplateThatDoesNotReadIsReportedWithItsLine(t *testing.T) {
	for _, c := range []struct{ name, template, text, want string }{
		{"field that pods lack", "pod", podYAML + "    imagee: x\n", "pod.yaml:9: unknown field \"spec.containers[0].imagee\" (named in family/config.yaml:5)"},
		{"action that is cut off", "gang", "kind: Pod\nmetadata:\n  name: p-{{.Index\n", "gang.yaml:4: unclosed action"},
		{"name without a value", "gang", "kind: Pod\nmetadata:\n  name: p-{{.Indx}}\n", "gang.yaml:3: a parameter has no value: name: p-<no value>"},
		{"object without end", "gang", "kind: Pod\n{{range 100000000}}\n# more and more{{end}}\n", "gang.yaml: the object is larger than 4 MiB"},
		{"division by zero", "gang", "kind: Pod\nmetadata:\n  name: p-{{DivideInt 1 0}}\n", "gang.yaml:3: executing"},
		{"bad only for the last object", "gang", "kind: Pod\n{{if eq .Index 14}}spce: {}{{end}}\n", "gang.yaml:2: unknown field \"spce\""},
		{"other kind", "gang", "kind: Node\n", "gang.yaml: a Node stands where a Pod must"},
		{"no YAML", "gang", "kind: Pod\n  x: y\n", "gang.yaml:2: mapping values are not allowed"},
		{"object without a kind", "group", "metadata: {}\n", "group.yaml: apiVersion and kind must both be there"},
		{"field that groups lack", "group", "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nspec:\n  minMember: 3\n", "group.yaml:4: unknown field \"spec.minMember\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			templates := map[string]string{}
			for name, text := range everyTemplate {
				templates[name] = text
			}
			templates["family/templates/"+c.template+".yaml"] = c.text
			_, err := planned(everything, templates)
			if err == nil || !strings.Contains(err.Error(), "family/templates/"+c.want) {
				t.Errorf("want %s, got:\n%v", c.want, err)
			}
		})
	}
}

// Catches: numbers that a template writes in another form than upstream's do, so that names no longer fit each other.
func TestArithmeticOfTemplates(t *testing.T) {
	for action, want := range map[string]string{
		"{{.Index}}/{{.Count}}":              "7/10",
		"{{DivideInt .Index 5}}":             "1",
		"{{DivideFloat .Index 2}}":           "3.5",
		"{{Mod .Index 4}}":                   "3",
		"{{AddInt .Index 1 2}}":              "10",
		"{{AddFloat 0.5 1}}":                 "1.5",
		"{{SubtractInt .Count .Index}}":      "3",
		"{{SubtractFloat 1 0.5}}":            "0.5",
		"{{MultiplyInt .Index .Count}}":      "70",
		"{{MultiplyFloat 0.5 \"3\"}}":        "1.5",
		"{{DivideInt 30000 .Count}}Mi":       "3000Mi",
		"{{.cpu}} {{AddInt .priority 0}}":    "100m 9999999",
		"{{.priority}} <{{.Index}}> & \"x\"": "9999999 <7> & \"x\"",
		"{{or .missing 3}}":                  "3",
		"{{if .missing}}a{{else}}b{{end}}":   "b",
		"{{range Int \"3\"}}{{.}}{{end}}":    "012",
		"{{Int 2.9}}":                        "2",
		"{{.rules | JSON}}":                  `[{"key":"a < b"},null]`,
		"{{or .missing nil | JSON}}":         "null",
	} {
		m, err := (&Template{Path: "t", Text: action, Params: map[string]any{
			"cpu": "100m", "priority": 9999999, "rules": []any{map[string]any{"key": "a < b"}, nil}}}).Parse()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := m.Render(7, 10); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", action, got, err, want)
		}
	}
}

// Catches: upstream's file of declared features, which cannot be measured for a parameter that only a hook in Go reads; features
// where the gate is off, in an order that the API server refuses, or of a parameter that is no number.
func TestNodesDeclareWhatAHookOfUpstreamLetsThem(t *testing.T) {
	const with = "    threshold: 270\n    featureGates: {NodeDeclaredFeatures: GATE}\n"
	of := func(gate, value string) ([]Plan, error) {
		text := strings.Replace(small, "    threshold: 270\n", strings.Replace(with, "GATE", gate, 1), 1)
		return planned(strings.Replace(text, "pods: 10", "pods: 10\n      numNodeDeclaredFeatures: "+value, 1), nil)
	}
	on, err := of("true", "11")
	if err != nil {
		t.Fatal(err)
	}
	features := on[0].Ops[0].(*CreateNodes).Features
	if len(features) != 11 || features[0] != "Feature1" || features[1] != "Feature10" || features[3] != "Feature2" {
		t.Errorf("nodes declare %q", features)
	}
	if off, err := of("false", "11"); err != nil || off[0].Ops[0].(*CreateNodes).Features != nil {
		t.Errorf("without the gate: %v", err)
	}
	if _, err := of("true", "many"); err == nil || !strings.Contains(err.Error(), "whole number") {
		t.Errorf("many features: %v", err)
	}
	if _, err := planned(strings.Replace(small, "pods: 10", "pods: 10\n      numNodeDeclaredFeatures: 1", 1), nil); err == nil {
		t.Error("an unused parameter is not reported")
	}
}
