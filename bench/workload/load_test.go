// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

const podYAML = "apiVersion: v1\nkind: Pod\nmetadata:\n  generateName: pod-\nspec:\n  containers:\n  - name: pause\n    image: pause\n"

// small is a file without a mistake; tests change one line of it.
const small = `- name: Small
  defaultPodTemplatePath: templates/pod.yaml
  workloadTemplate:
  - opcode: createNodes
    countParam: $nodes
  - opcode: createPods
    countParam: $pods
    collectMetrics: true
  workloads:
  - name: 5Nodes
    threshold: 270
    labels: [performance]
    params:
      nodes: 5
      pods: 10
`

// folder is a file system with the file and the templates that tests name.
func folder(file string, templates map[string]string) fstest.MapFS {
	files := fstest.MapFS{
		"family/config.yaml":        {Data: []byte(file)},
		"family/templates/pod.yaml": {Data: []byte(podYAML)},
	}
	for name, text := range templates {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

// planned loads the file and plans all its workloads.
func planned(file string, templates map[string]string) ([]Plan, error) {
	f, err := LoadFS(folder(file, templates), "family/config.yaml")
	if err != nil {
		return nil, err
	}
	return f.Plans(nil, "")
}

// Catches: a check that rejects what is right, without which the tests below would prove nothing.
func TestAFileWithoutAMistakeLoadsAndPlans(t *testing.T) {
	plans, err := planned(small, nil)
	if err != nil || len(plans) != 1 {
		t.Fatalf("%d plans, error %v", len(plans), err)
	}
}

// Each row changes one place of a good file. Catches: any check that is left out, and any line that is off by one or
// that of another entry.
func TestEachMistakeIsReportedWithItsLine(t *testing.T) {
	cases := []struct {
		name     string
		old, new string // what is replaced in small
		want     string // after the path: line and message, or how it begins
	}{
		{"unknown field of a case", "defaultPodTemplatePath", "defaultPodTemplate", "2: case has no field defaultPodTemplate"},
		{"unknown field of a workload", "threshold: 270", "treshold: 270", "11: workload has no field treshold"},
		{"unknown field of an operation", "collectMetrics: true", "collectMetric: true", "8: createPods has no field collectMetric"},
		{"unknown operation", "opcode: createNodes", "opcode: makeNodes", "4: there is no operation makeNodes; there are allocResourceClaims"},
		{"operation without a name", "- opcode: createNodes\n    countParam", "- countParam", "4: operation needs opcode"},
		{"field twice", "collectMetrics: true", "collectMetrics: true\n    countParam: $nodes", "9: operation: countParam stands there twice (line 7)"},
		{"count and parameter", "countParam: $nodes", "countParam: $nodes\n    count: 3", "5: createNodes: count and countParam"},
		{"reference without a dollar", "countParam: $nodes", "countParam: nodes", `5: "nodes" is no parameter`},
		{"count that is text", "countParam: $nodes", "count: many", "5: createNodes: count must be a whole number, 0 or more, not many"},
		{"negative count", "countParam: $nodes", "count: -1", "5: createNodes: count must be a whole number, 0 or more, not -1"},
		{"no count", "    countParam: $nodes\n", "", "4: createNodes needs count or countParam"},
		{"missing parameter", "nodes: 5", "nodez: 5", "5: parameter nodes has no value in workload 5Nodes (line 10)"},
		{"unused parameter", "pods: 10", "pods: 10\n      spare: 1", "16: workload 5Nodes: no operation uses parameter spare"},
		{"parameter of the wrong type", "nodes: 5", "nodes: 5s", "5: createNodes: count must be a whole number, 0 or more, not 5s"},
		{"parameter that is a list", "nodes: 5", "nodes: [5]", "5: createNodes: count must be a whole number, 0 or more, not [5]"},
		{"parameter that is a time", "nodes: 5", "nodes: 2026-01-01", "14: only numbers, strings, true, false, null, and lists"},
		{"more than fits", "countParam: $nodes", "count: 10000001", "5: createNodes: count must be at most 10000000, not 10000001"},
		{"more than fits in all", "countParam: $nodes", "count: 4000\n    countMultiplier: 4000", "4: createNodes: 16000000 objects are more than 10000000"},
		{"case that merges itself", "- name: Small", "- &case\n  <<: *case\n  name: Small", "1: case merges more than 1000 mappings, or itself"},
		{"sets of sets", "opcode: createNodes\n    countParam: $nodes",
			"&set\n    opcode: createPodSets\n    countParam: $nodes\n    namespacePrefix: a\n    createPodsOp: *set",
			"8: createPodSets: createPodsOp must be a createPods"},
		{"batch below one", "collectMetrics: true", "collectMetrics: true\n    signatureBatchSize: -1", "9: createPods: signatureBatchSize must be a whole number"},
		{"no group", "opcode: createNodes", "opcode: createPodGroups\n    namespace: a\n    templatePath: templates/pod.yaml\n    countMultiplier: 0",
			"4: createPodGroups needs a count above 0"},
		{"default that does not read", "countParam: $nodes", "countParam: $nodes\n    nodeTemplatePath: templates/pod.yaml\n    templateParams: {a: '$b|[1'}",
			"7: the default of parameter b: did not find expected"},
		{"waits and does not", "collectMetrics: true", "collectMetrics: true\n    skipWaitToCompletion: true", "6: createPods: skipWaitToCompletion goes with neither"},
		{"steady for no time", "collectMetrics: true", "collectMetrics: true\n    steadyState: true", "6: createPods: a steady state needs a duration above 0"},
		{"volume without claim", "collectMetrics: true", "collectMetrics: true\n    persistentVolumeTemplatePath: templates/pv.yaml", "6: createPods: persistentVolumeTemplatePath and"},
		{"no metrics", "    collectMetrics: true\n", "", "1: case Small: no operation collects metrics"},
		{"template that is missing", "templates/pod.yaml", "templates/pods.yaml", "2: open family/templates/pods.yaml: file does not exist"},
		{"negative threshold", "270", "-1", "11: workload: threshold must be a number, 0 or more, or a mapping"},
		{"gate that is no switch", "threshold: 270", "featureGates: {A: on time}", "11: workload: featureGates: A must be true or false"},
		{"bucket that no metric has", "threshold: 270", "thresholdMetricSelector: {name: SchedulingThroughput, dataBucket: Perc42}", "11: thresholdMetricSelector: dataBucket is one of"},
		{"metric that is not collected", "threshold: 270", "thresholdMetricSelector: {name: luck, dataBucket: Average}", "11: thresholdMetricSelector: luck with these labels is not collected"},
		{"no workloads", "  workloads:", "  workloads: []\n  other:", "9: case: workloads must be a list that is not empty"},
		{"two strategies", "countParam: $nodes", "countParam: $nodes\n    uniqueNodeLabelStrategy: {labelKey: a}\n    labelNodePrepareStrategy: {labelKey: a, labelValues: [b]}", "4: createNodes: labelNodePrepareStrategy, uniqueNodeLabelStrategy: at most one"},
		{"no YAML", "  workloads:", "   workloads:", "8: did not find expected"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(small, c.old) {
				t.Fatalf("the good file has no %q", c.old)
			}
			_, err := planned(strings.Replace(small, c.old, c.new, 1), nil)
			var found Mistakes
			if !errors.As(err, &found) {
				t.Fatalf("no mistakes but %v", err)
			}
			for _, m := range found {
				if strings.HasPrefix(m.Error(), "family/config.yaml:"+c.want) {
					return
				}
			}
			t.Errorf("want %s, found:\n%v", c.want, err)
		})
	}
}

// Catches: stopping at the first mistake, which makes repairing a file a game of rounds.
func TestAllMistakesAreReportedAtOnce(t *testing.T) {
	text := strings.Replace(small, "countParam: $nodes", "countparams: $nodes", 1)
	text = strings.Replace(text, "threshold:", "limit:", 1)
	_, err := planned(text, nil)
	var found Mistakes
	if !errors.As(err, &found) || len(found) != 3 {
		t.Errorf("want three (no count, two unknown fields), got: %v", err)
	}
}

// Catches: names that shadow each other, so that one of two workloads is never run.
func TestNamesStandThereOnce(t *testing.T) {
	_, err := planned(small+small, nil)
	if err == nil || !strings.Contains(err.Error(), "config.yaml:16: case Small stands there twice (line 1)") {
		t.Errorf("two cases: %v", err)
	}
	_, err = planned(small+"  - name: 5Nodes\n", nil)
	if err == nil || !strings.Contains(err.Error(), "config.yaml:16: workload 5Nodes of case Small stands there twice (line 10)") {
		t.Errorf("two workloads: %v", err)
	}
}

// Catches: collectors that would overlap, or never stop, found only after minutes of running.
func TestCollectingMetricsBeginsAndEnds(t *testing.T) {
	const start = "  - opcode: startCollectingMetrics\n    namespaces: [a]\n"
	const stop = "  - opcode: stopCollectingMetrics\n"
	for _, c := range []struct{ name, ops, want string }{
		{"stopped only", stop, "4: stopCollectingMetrics: nothing is collected here"},
		{"started only", start, "4: startCollectingMetrics: no stopCollectingMetrics comes after it"},
		{"started twice", start + start + stop, "6: startCollectingMetrics: metrics are collected already (line 4)"},
		{"pods with metrics of their own", start + "  - {opcode: createPods, count: 1, collectMetrics: true}\n" + stop, "6: createPods: metrics are collected already (line 4)"},
	} {
		text := strings.Replace(small, "  workloads:", "  unused:", 1)
		head, _, _ := strings.Cut(text, "  - opcode")
		_, err := planned(head+c.ops+"  workloads:\n  - name: one\n", nil)
		if err == nil || !strings.Contains(err.Error(), "family/config.yaml:"+c.want) {
			t.Errorf("%s: want %s, got %v", c.name, c.want, err)
		}
	}
}

// Catches: a profile that would never be written, or that is written outside of the directory of profiles; a type of
// profile that is silently left out.
func TestCollectingAProfileBeginsAndEnds(t *testing.T) {
	const start = "  - {opcode: startCollectingProfile, type: cpu, filePath: out/cpu.pprof}\n"
	const stop = "  - {opcode: stopCollectingProfile, type: CPU}\n"
	for _, c := range []struct{ name, ops, want string }{
		{"both", start + stop, ""},
		{"stopped only", stop, "4: stopCollectingProfile: no profile is collected here"},
		{"started only", start, "4: startCollectingProfile: no stopCollectingProfile comes after it"},
		{"started twice", start + start + stop, "5: startCollectingProfile: a profile is collected already (line 4)"},
		{"no type", strings.Replace(start, "type: cpu, ", "", 1) + stop, "4: startCollectingProfile needs type"},
		{"other type", strings.Replace(start, "cpu", "heap", 1) + stop, "4: startCollectingProfile: type must be CPU, not heap"},
		{"no file", strings.Replace(start, ", filePath: out/cpu.pprof", "", 1) + stop, "4: startCollectingProfile needs filePath"},
		{"file elsewhere", strings.Replace(start, "out/", "../", 1) + stop, "4: startCollectingProfile: filePath must be relative"},
	} {
		text := strings.Replace(small, "  - opcode: createNodes\n", c.ops+"  - opcode: createNodes\n", 1)
		_, err := planned(text, nil)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), "family/config.yaml:"+c.want)) {
			t.Errorf("%s: want %q, got %v", c.name, c.want, err)
		}
	}
}

// Catches: pods of a user's file that are equal where scheduler_perf makes them different, so that a scheduler that
// batches equal pods looks faster than there; and pods of the built-in files that differ.
func TestPodsOfFilesAreSignedAsUpstreamDoes(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, folder(small, nil)); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "family", "config.yaml")
	for _, c := range []struct {
		text         string
		user, within int
	}{
		{small, 1, 0},
		{strings.Replace(small, "collectMetrics", "signatureBatchSizeParam: $nodes\n    collectMetrics", 1), 5, 5},
	} {
		if err := os.WriteFile(name, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		user, err := f.Plans(nil, "")
		if err != nil {
			t.Fatal(err)
		}
		within, err := planned(c.text, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range []Plan{user[0], within[0]} {
			if got, want := p.Ops[1].(*CreatePods).SignatureBatch, []int{c.user, c.within}[i]; got != want {
				t.Errorf("file %d: batches of %d, want %d", i, got, want)
			}
		}
	}
}

// Catches: a file that fills the memory of the machine.
func TestAFileIsNotReadWithoutEnd(t *testing.T) {
	if _, err := Load("/dev/zero"); err == nil || !strings.Contains(err.Error(), "/dev/zero is larger than 16 MiB") {
		t.Errorf("a file without end: %v", err)
	}
}

// Catches: a decoder that minds upper and lower case, or that does not know anchors: upstream's reads both.
func TestSpellingsThatUpstreamReads(t *testing.T) {
	text := strings.Replace(small, "countParam: $nodes", "CountParam: $nodes", 1)
	text = strings.Replace(text, "params:\n", "params: &sizes\n", 1)
	text += "  - name: more\n    params:\n      <<: *sizes\n      pods: 20\n"
	plans, err := planned(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := plans[0].Ops[0].(*CreateNodes).Count; n != 5 {
		t.Errorf("CountParam: %d nodes", n)
	}
	if pods := plans[1].Ops[1].(*CreatePods).Count; pods != 20 || plans[1].Ops[0].(*CreateNodes).Count != 5 {
		t.Errorf("merged parameters: %+v", plans[1].Ops)
	}
}

// Catches: a filter that takes - for a part of the name, or any label for all.
func TestLabelsAreFilteredAsUpstreamDoes(t *testing.T) {
	for filter, want := range map[string]bool{
		"": true, "performance": true, "+performance": true, "-performance": false, "short": false,
		"performance,-short": true, "performance,short": false, "-short,-slow": true,
	} {
		if got := Enabled(filter, "performance", "integration-test"); got != want {
			t.Errorf("%q: %v", filter, got)
		}
	}
}
