// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// objects: kind/namespace/name -> object. The hash at the end of a ConfigMap's name is cut off, wherever it stands, and
// files in it are objects too: two ways to write the same YAML are the same.
type objects map[string]map[string]any

var hashed = regexp.MustCompile(`\b(kumiki-config|other-config)-[0-9a-z]{10}\b`)

func read(t *testing.T, text string) objects {
	t.Helper()
	all := objects{}
	for part := range strings.SplitSeq(hashed.ReplaceAllString(text, "$1"), "\n---") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(part), &o); err != nil {
			t.Fatalf("%v in\n%s", err, part)
		}
		if len(o) == 0 {
			continue
		}
		data, _ := o["data"].(map[string]any)
		for file := range data { // order: each for itself
			var c map[string]any
			if err := yaml.Unmarshal([]byte(data[file].(string)), &c); err != nil {
				t.Fatal(err)
			}
			data[file] = c
		}
		meta := o["metadata"].(map[string]any)
		namespace, _ := meta["namespace"].(string)
		key := path.Join(o["kind"].(string), namespace, meta["name"].(string))
		if all[key] != nil {
			t.Errorf("%s is there twice", key)
		}
		all[key] = o
	}
	return all
}

// render renders the chart with Helm's own engine, after Helm has judged the values by their schema: file -> text.
func render(release, values string) (map[string]string, error) {
	c, err := loader.LoadDir("../helm/kumiki")
	if err != nil {
		return nil, err
	}
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		return nil, err
	}
	all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: release, Namespace: "kube-system", IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.Render(c, all)
}

// install is what would be applied.
func install(release, values string) (string, error) {
	files, err := render(release, values)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".yaml") {
			text.WriteString("\n---\n" + files[name])
		}
	}
	return text.String(), nil
}

// monitored makes an overlay as docs/deploy.md tells: the canary with the component on top.
func monitored(t *testing.T) string { return canaryWith(t, "monitoring") }

// canaryWith is the canary with components of this directory on top.
func canaryWith(t *testing.T, components ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	up, err := filepath.Rel(dir, here)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("resources: [%s/kustomize/canary]\ncomponents:\n", filepath.ToSlash(up))
	for _, c := range components {
		text += fmt.Sprintf("- %s/%s\n", filepath.ToSlash(up), c)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestTheChartSaysWhatKustomizeSays: object by object, so that what the root module's tests show of the overlays on a
// cluster holds for the chart.
func TestTheChartSaysWhatKustomizeSays(t *testing.T) {
	for overlay, values := range map[string]string{
		"../kustomize/canary": "mode: canary", "../kustomize/replace": "mode: replace", monitored(t): "{mode: canary, monitoring: {enabled: true}}",
		canaryWith(t, "kustomize/gangs/podgroup", "kustomize/gangs/sigs", "kustomize/gangs/volcano"): "{mode: canary, gangs: {podgroup: true, sigs: true, volcano: true}}",
		canaryWith(t, "kustomize/gangs/sigs"):                                                        "{mode: canary, gangs: {sigs: true}}",
	} {
		made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), overlay)
		if err != nil {
			t.Fatal(err)
		}
		text, err := made.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		chart, err := install("kumiki", values)
		if err != nil {
			t.Fatal(err)
		}
		got, want := read(t, chart), read(t, string(text))
		if a, b := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(a, b) {
			t.Errorf("%s: the chart makes\n%v, the overlay\n%v", values, a, b)
			continue
		}
		if len(got) < 10 {
			t.Fatalf("%s: only %d objects were compared", values, len(got))
		}
		for name := range got {
			if !reflect.DeepEqual(got[name], want[name]) {
				a, _ := yaml.Marshal(got[name])
				b, _ := yaml.Marshal(want[name])
				t.Errorf("%s: %s differs. The chart makes\n%s\nand the overlay\n%s", values, name, a, b)
			}
		}
	}
}

// TestValuesReachTheObjects: a release of another name shares nothing with the first, and what is set is there.
func TestValuesReachTheObjects(t *testing.T) {
	text, err := install("other", `
image: {repository: registry.example/kumiki, tag: "sha256:0123"}
replicas: 2
extraArgs: ["--v=4"]
env: [{name: GOMEMLIMIT, value: 900MiB}]
flowControl: {enabled: false}
profiles: [{schedulerName: batch, percentageOfNodesToScore: 50}]
configuration: {podMaxBackoffSeconds: 20}
resources: {limits: {memory: 4Gi}}
monitoring: {enabled: true, board: false, labels: {release: prometheus}, prometheus: {namespace: seen, serviceAccount: by}}
`)
	if err != nil {
		t.Fatal(err)
	}
	all := read(t, text)
	for name := range all {
		if strings.Contains(name, "/kumiki") || strings.HasPrefix(name, "FlowSchema") {
			t.Errorf("%s is there", name)
		}
	}
	for _, want := range []string{
		"image: \"registry.example/kumiki@sha256:0123\"", "replicas: 2", `- "--v=4"`, "- name: GOMEMLIMIT\n          value: 900MiB", "memory: 4Gi", "percentageOfNodesToScore: 50",
		"podMaxBackoffSeconds: 20", "resourceName: other", "release: prometheus", "name: by\n  namespace: seen", `resourceNames: ["other"]`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// TestWhoeverInstallsIsToldWhatToDo: the notes name the lease and the profiles that were set. It catches notes that go on to
// tell what the defaults are.
func TestWhoeverInstallsIsToldWhatToDo(t *testing.T) {
	for values, want := range map[string][]string{
		"mode: canary":  {"get lease other", "schedulerName is one of its profiles: kumiki."},
		"mode: replace": {"get lease kube-scheduler", "kumiki stands by"},
		"{leaseName: mine, profiles: [{schedulerName: batch}, {schedulerName: web}]}": {"--scheduler-lease kube-system/mine", "profiles: batch web."},
	} {
		files, err := render("other", values)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if notes := files["kumiki/templates/NOTES.txt"]; !strings.Contains(notes, w) {
				t.Errorf("%s: no %q in\n%s", values, w, notes)
			}
		}
	}
}

// TestANewConfigurationRollsThePods: by the name of the ConfigMap.
func TestANewConfigurationRollsThePods(t *testing.T) {
	names := map[string]bool{} // name of a ConfigMap -> seen
	for _, values := range []string{"mode: canary", "mode: replace", "configuration: {podMaxBackoffSeconds: 20}", "leaseName: mine"} {
		text, err := install("kumiki", values)
		if err != nil {
			t.Fatal(err)
		}
		name := hashed.FindString(text)
		if names[name] || name == "" {
			t.Errorf("with %s the ConfigMap is %q again", values, name)
		}
		names[name] = true
	}
}

// TestWrongValuesAreRefused, by the schema, before anything is rendered.
func TestWrongValuesAreRefused(t *testing.T) {
	for values, field := range map[string]string{
		"mode: shadow": "mode", "replicas: 0": "replicas", "replica: 3": "replica", "image: {tag: 1}": "tag",
		"profiles: [{}]": "schedulerName", "configuration: {leaderElection: {}}": "leaderElection", "extraArgs: [v=4]": "extraArgs", "env: [{value: x}]": "name",
		"flowControl: {matchingPrecedence: 0}": "matchingPrecedence", "resources: {cpu: 1}": "cpu",
		"monitoring: {enable: true}": "enable", "monitoring: {interval: often}": "interval",
	} {
		if _, err := install("kumiki", values); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v, want an error about %s", values, err, field)
		}
	}
}
