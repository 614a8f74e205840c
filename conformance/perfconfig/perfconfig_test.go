// SPDX-License-Identifier: Apache-2.0

package perfconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
	"github.com/kumiki-scheduler/kumiki/bench/workloads"
)

// upstreamFiles are all files of the pinned release, loaded. path below Dir -> file
func upstreamFiles(t *testing.T) (dir string, names []string, files map[string]*workload.File) {
	t.Helper()
	dir, err := Dir()
	if err != nil {
		t.Fatal(err)
	}
	paths, err := Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]*workload.File{}
	for _, path := range paths {
		name, err := filepath.Rel(dir, path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := workload.Load(path)
		if err != nil {
			t.Errorf("%s does not load:\n%v", name, err)
			continue
		}
		names, files[name] = append(names, name), f
	}
	return dir, names, files
}

// incomplete are workloads that upstream cannot run either: they give measurePods no value.
var incomplete = []string{
	"SchedulingWithResourceClaimTemplate/empty_100nodes",
	"SchedulingWithResourceClaimTemplate/empty_200nodes",
}

// isIncomplete reports whether a plan failed for the value that upstream left out, and for nothing else.
func isIncomplete(name string, err error) bool {
	var found workload.Mistakes
	return slices.Contains(incomplete, name) && errors.As(err, &found) && len(found) == 1 &&
		strings.HasPrefix(found[0].What, "parameter measurePods has no value in workload ")
}

// Catches: anything that is stricter than upstream, or a construct of its files that is not read: 23 files with 267
// workloads must load and plan, each template tried.
func TestEveryFileOfUpstreamLoadsAndEveryWorkloadPlans(t *testing.T) {
	_, names, files := upstreamFiles(t)
	workloads, declaring := 0, 0
	for _, name := range names {
		for _, c := range files[name].Cases {
			for _, w := range c.Workloads {
				workloads++
				p, err := c.Plan(w)
				name := c.Name + "/" + w.Name
				if slices.Contains(incomplete, name) != (err != nil) || err != nil && !isIncomplete(name, err) {
					t.Errorf("%s does not plan:\n%v", name, err)
				}
				for _, op := range p.Ops {
					if nodes, is := op.(*workload.CreateNodes); is && len(nodes.Features) > 0 {
						declaring++
					}
				}
			}
		}
	}
	if declaring != 4 {
		t.Errorf("%d workloads have nodes that declare features, as a hook in Go makes them do; the release has 4", declaring)
	}
	if len(names) != 23 || workloads != 267 {
		t.Errorf("%d files with %d workloads; the release has 23 with 267", len(names), workloads)
	}
}

// raw is a case as a naive reader sees it.
type raw struct {
	Name             string
	WorkloadTemplate []map[string]any
	Workloads        []struct {
		Name      string
		Params    map[string]any
		Threshold any
	}
}

// Catches: an operation that is dropped or out of order, and a count, a rate, a namespace, labels or a template that is
// that of another one: each value of each plan is found a second time by looking its parameter up in the plain YAML.
func TestValuesInPlansAreThoseOfThePlainFile(t *testing.T) {
	dir, names, files := upstreamFiles(t)
	compared := 0
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var plain []raw
		if err := yaml.Unmarshal(text, &plain); err != nil {
			t.Fatal(err)
		}
		if len(plain) != len(files[name].Cases) {
			t.Fatalf("%s: %d cases, plainly %d", name, len(files[name].Cases), len(plain))
		}
		for i, c := range files[name].Cases {
			for j, w := range c.Workloads {
				p, err := c.Plan(w)
				if isIncomplete(c.Name+"/"+w.Name, err) {
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				where := name + ", " + p.Name
				if want := plain[i].Name + "/" + plain[i].Workloads[j].Name; p.Name != want || len(p.Ops) != len(plain[i].WorkloadTemplate) {
					t.Errorf("%s: %d operations; plainly %s with %d", where, len(p.Ops), want, len(plain[i].WorkloadTemplate))
					continue
				}
				compareThreshold(t, where, &p, plain[i].Workloads[j].Threshold)
				for k, op := range p.Ops {
					compared += compare(t, fmt.Sprintf("%s, operation %d", where, k), op, plain[i].WorkloadTemplate[k], plain[i].Workloads[j].Params)
				}
			}
		}
	}
	if compared < 2900 {
		t.Errorf("only %d values compared: the test has lost its sight", compared)
	}
}

// compareThreshold compares the threshold of a workload, which is one number or one for each topic.
func compareThreshold(t *testing.T, where string, p *workload.Plan, plain any) {
	t.Helper()
	switch plain := plain.(type) {
	case nil:
		if p.Threshold != 0 || len(p.TopicThresholds) > 0 {
			t.Errorf("%s: threshold %g, %v; plainly none", where, p.Threshold, p.TopicThresholds)
		}
	case map[string]any:
		for topic, want := range plain {
			if p.ThresholdFor(topic) != want || p.ThresholdFor("") != 0 {
				t.Errorf("%s: threshold %g for %s, plainly %v", where, p.ThresholdFor(topic), topic, want)
			}
		}
	default:
		if p.ThresholdFor("") != plain || p.ThresholdFor("dra") != plain {
			t.Errorf("%s: threshold %g, plainly %v", where, p.Threshold, plain)
		}
	}
}

// inPlan: field in the file -> field in the operation, where the two differ in more than the first letter.
var inPlan = map[string]string{
	"driverName": "Driver", "maxClaimsPerNode": "ClaimsPerNode", "labelSelector": "Labels", "deletePodsPerSecond": "PerSecond",
	"updatePerSecond": "PerSecond", "skipWaitToCompletion": "SkipWait", "stageRequirement": "Stage", "mode": "Recreate",
	"intervalMilliseconds": "Interval", "nodeTemplatePath": "Template", "podTemplatePath": "Template", "templatePath": "Template",
	"namespaceTemplatePath": "Template", "persistentVolumeTemplatePath": "Volume", "persistentVolumeClaimTemplatePath": "Claim",
	"labelNodePrepareStrategy": "Label", "createPodsOp": "Pods", "nodeAllocatableStrategy": "Allocatable",
	"steadyState": "Steady", "duration": "Steady", "templatePaths": "Templates", "signatureBatchSize": "SignatureBatch",
}

// compare tells how many values of an operation it compared.
func compare(t *testing.T, where string, op workload.Op, plain map[string]any, params map[string]any) int {
	t.Helper()
	n := 0
	steady := true // a duration counts only in a steady state
	if v, ok := lookup(plain, "steadyState", params); ok {
		steady = v == true
	}
	for key := range plain {
		name := strings.TrimSuffix(key, "Param")
		want, _ := lookup(plain, name, params)
		if key == "opcode" {
			if op.Opcode() != want {
				t.Errorf("%s: %s, plainly %v", where, op.Opcode(), want)
			}
			continue
		}
		if name == "countMultiplier" {
			continue // seen through the count
		}
		if name == "templateParams" {
			compareParams(t, where, op, plain[key].(map[string]any), params)
			n += len(plain[key].(map[string]any))
			continue
		}
		if factor, has := lookup(plain, "countMultiplier", params); has && name == "count" {
			want = want.(float64) * factor.(float64)
		}
		field := inPlan[name]
		if field == "" {
			field = strings.ToUpper(name[:1]) + name[1:]
		}
		v := reflect.ValueOf(op).Elem().FieldByName(field)
		if !v.IsValid() {
			t.Errorf("%s: %s is nowhere in the plan", where, key)
			continue
		}
		var got any = v.Interface()
		switch {
		case name == "steadyState":
			continue // seen through the duration
		case name == "duration":
			if !steady {
				want = "0s"
			}
			got = fmt.Sprint(got)
		case name == "mode":
			got = map[bool]any{true: "recreate", false: "create"}[got.(bool)]
		case name == "intervalMilliseconds":
			got = v.Int() / 1e6
		case strings.HasSuffix(name, "emplatePath"):
			got = filepath.Base(reflect.Indirect(v).FieldByName("Path").String())
			want = filepath.Base(want.(string))
		case name == "templatePaths":
			paths := want.([]any)
			for i := range paths {
				if base := filepath.Base(v.Index(i).FieldByName("Path").String()); base != filepath.Base(paths[i].(string)) {
					t.Errorf("%s: template %d is %s, plainly %v", where, i, base, paths[i])
				}
			}
			got, want = v.Len(), len(paths)
		case name == "createPodsOp":
			pods := got.(workload.CreatePods)
			n += compare(t, where+", its pods", &pods, want.(map[string]any), params)
			continue
		case name == "labelNodePrepareStrategy":
			label := got.(*workload.NodeLabel)
			got = map[string]any{"labelKey": label.Key, "labelValues": label.Values}
		case name == "nodeAllocatableStrategy":
			got = allocatable(got.(*workload.NodeAllocatable))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %s is %v, plainly %v", where, key, got, want)
		}
		n++
	}
	return n
}

// compareParams compares what an operation hands to its template.
func compareParams(t *testing.T, where string, op workload.Op, plain, params map[string]any) {
	t.Helper()
	template := reflect.Indirect(reflect.Indirect(reflect.ValueOf(op)).FieldByName("Template"))
	got := template.FieldByName("Params").Interface().(map[string]any)
	if len(got) != len(plain) {
		t.Errorf("%s: %d parameters of the template, plainly %d", where, len(got), len(plain))
	}
	for name, want := range plain {
		if text, _ := want.(string); strings.HasPrefix(text, "$") {
			reference, missing, _ := strings.Cut(text[1:], "|")
			var given bool
			if want, given = params[reference]; !given {
				if err := yaml.Unmarshal([]byte(missing), &want); err != nil {
					t.Fatal(err)
				}
			}
		}
		if asJSON(t, got[name]) != asJSON(t, want) {
			t.Errorf("%s: parameter %s of the template is %v, plainly %v", where, name, got[name], want)
		}
	}
}

// asJSON is a value as JSON, which has one kind of number.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// lookup is a field or the parameter that stands for it.
func lookup(plain map[string]any, name string, params map[string]any) (any, bool) {
	if v, ok := plain[name]; ok {
		return v, true
	}
	reference, ok := plain[name+"Param"].(string)
	if !ok {
		return nil, false
	}
	v, ok := params[strings.TrimPrefix(reference, "$")]
	return v, ok
}

// allocatable is the strategy as the file writes it.
func allocatable(a *workload.NodeAllocatable) map[string]any {
	out := map[string]any{"nodeAllocatable": a.Allocatable}
	drivers, plugins := map[string]any{}, []string(nil)
	for driver, volumes := range a.CSIAllocatable {
		drivers[driver] = map[string]any{"count": volumes}
		for plugin := range a.Migrated[driver] {
			plugins = append(plugins, plugin)
		}
	}
	out["csiNodeAllocatable"] = drivers
	if plugins != nil {
		out["migratedPlugins"] = plugins
	}
	return out
}

// Catches: a field of upstream's that no file of its own uses, and that is therefore refused when a user's file
// does; and an operation that a later release adds.
func TestEveryFieldOfUpstreamIsKnown(t *testing.T) {
	dir, err := Dir()
	if err != nil {
		t.Fatal(err)
	}
	structs, err := Structs(dir)
	if err != nil {
		t.Fatal(err)
	}
	operations := 0
	for name, fields := range structs {
		if !slices.Contains(fields, "opcode") {
			continue
		}
		operations++
		opcode := strings.TrimSuffix(name, "Op")
		var text strings.Builder
		fmt.Fprintf(&text, "- workloadTemplate:\n  - opcode: %s\n", opcode)
		for _, field := range fields {
			if field != "opcode" {
				fmt.Fprintf(&text, "    %s: null\n", field)
			}
		}
		refused(t, opcode, text.String())
	}
	if operations != 17 {
		t.Errorf("upstream has %d operations; the release had 17", operations)
	}
	for name, text := range map[string]string{
		"testCase":                "- %s: null\n",
		"Workload":                "- workloads:\n  - %s: null\n",
		"thresholdMetricSelector": "- workloads:\n  - thresholdMetricSelector: {%s: null}\n",
		"metricsCollectorConfig":  "- metricsCollectorConfig: {%s: null}\n",
		"labelValues":             "- metricsCollectorConfig: {metrics: {m: [{%s: null}]}}\n",
	} {
		if len(structs[name]) == 0 {
			t.Errorf("upstream has no struct %s any more", name)
		}
		for _, field := range structs[name] {
			refused(t, name, fmt.Sprintf(text, field))
		}
	}
}

// notOurs: family of upstream -> its feature gate, which kumiki does not support, so there is nothing to compare.
var notOurs = map[string]string{
	"CompatibilityGroups":                               "DRADeviceCompatibilityGroups",
	"SchedulingWithResourceClaimTemplateListAttributes": "DRAListTypeAttributes",
	"SharedPodGroupResourceClaim":                       "DRAWorkloadResourceClaims",
	"SharedPodGroupResourceClaimTemplate":               "DRAWorkloadResourceClaims",
}

// Catches: a family of upstream's that our own files lack, and a label that names one that upstream does not have.
func TestOurOwnFilesHaveEveryFamilyOfUpstream(t *testing.T) {
	_, names, files := upstreamFiles(t)
	families := map[string]bool{} // case of upstream -> one of ours is labelled with it
	for _, name := range names {
		for _, c := range files[name].Cases {
			families[c.Name] = false
		}
	}
	ours, err := workloads.Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range ours {
		for _, c := range f.Cases {
			labels := slices.Clone(c.Labels)
			for _, w := range c.Workloads {
				labels = append(labels, w.Labels...)
			}
			for _, label := range labels {
				if family, ok := strings.CutPrefix(label, "upstream="); ok {
					if _, known := families[family]; !known {
						t.Errorf("%s: %s is labelled with %s, which upstream does not have", f.Path, c.Name, family)
					}
					families[family] = true
				}
			}
		}
	}
	for family, has := range families {
		if gate := notOurs[family]; has == (gate != "") {
			t.Errorf("upstream=%s: one of our cases is labelled so: %v, gate that kumiki does not support: %q", family, has, gate)
		}
	}
}

// refused reports fields that the loader does not know.
func refused(t *testing.T, what, text string) {
	t.Helper()
	_, err := workload.LoadFS(fstest.MapFS{"f.yaml": {Data: []byte(text)}}, "f.yaml")
	if err == nil {
		t.Errorf("%s: a case without a name loads", what)
		return
	}
	for _, line := range strings.Split(err.Error(), "\n") {
		if strings.Contains(line, "has no field") || strings.Contains(line, "there is no operation") {
			t.Errorf("%s: %s", what, line)
		}
	}
}
