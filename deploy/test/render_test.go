// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/release"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const (
	chartDir  = "../helm/kumiki"
	namespace = "kube-system"
	// image is that of all tests; repository and tag are its parts.
	repository, tag = "registry.example/kumiki", "v1"
	image           = repository + ":" + tag
)

// objects: kind/namespace/name -> object.
type objects map[string]map[string]any

// read parses a manifest.
func read(t *testing.T, text string) objects {
	t.Helper()
	all := objects{}
	for part := range strings.SplitSeq("\n"+text, "\n---") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(part), &o); err != nil {
			t.Fatalf("%v in\n%s", err, part)
		}
		if len(o) == 0 {
			continue
		}
		meta := o["metadata"].(map[string]any)
		space, _ := meta["namespace"].(string)
		key := path.Join(o["kind"].(string), space, meta["name"].(string))
		if all[key] != nil {
			t.Errorf("%s is there twice", key)
		}
		all[key] = o
	}
	return all
}

// into converts the one object with the key into a type of its API.
func into[T any](t *testing.T, all objects, key string) T {
	t.Helper()
	var out T
	raw, err := yaml.Marshal(all[key])
	if err == nil {
		err = yaml.UnmarshalStrict(raw, &out)
	}
	if err != nil || all[key] == nil {
		t.Fatalf("%s: %v", key, err)
	}
	return out
}

// loadChart reads the chart and values given in YAML, beside which the image is set.
func loadChart(t *testing.T, values string) (*chart.Chart, chartutil.Values) {
	t.Helper()
	c, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	return c, chartutil.CoalesceTables(given, map[string]any{"image": map[string]any{"repository": repository, "tag": tag}})
}

// renderChart does what `helm template` does.
func renderChart(t *testing.T, name, values string) (*release.Release, error) {
	t.Helper()
	c, given := loadChart(t, values)
	install := action.NewInstall(&action.Configuration{})
	install.ReleaseName, install.Namespace = name, namespace
	install.DryRun, install.ClientOnly, install.Replace = true, true, true
	install.KubeVersion = &chartutil.KubeVersion{Version: "v1.37.1", Major: "1", Minor: "37"} // there is no cluster to ask
	return install.RunWithContext(t.Context(), c, given)
}

// rendered is what the chart creates with valid values.
func rendered(t *testing.T, name, values string) (objects, *release.Release) {
	t.Helper()
	r, err := renderChart(t, name, values)
	if err != nil {
		t.Fatalf("%s: %v", values, err)
	}
	return read(t, r.Manifest), r
}

// kustomized is what `kubectl apply -k` sends for a kustomization with an overlay, components and the image.
func kustomized(t *testing.T, overlay string, components ...string) objects {
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
	up = filepath.ToSlash(up)
	text := fmt.Sprintf("resources: [%s/kustomize/%s]\nimages: [{name: KUMIKI_IMAGE, newName: %s, newTag: %s}]\ncomponents:\n", up, overlay, repository, tag)
	for _, c := range components {
		text += fmt.Sprintf("- %s/%s\n", up, c)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	out, err := made.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return read(t, string(out))
}

// with merges two texts of values.
func with(t *testing.T, values, more string) string {
	t.Helper()
	a, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	b, err := chartutil.ReadValues([]byte(more))
	if err != nil {
		t.Fatal(err)
	}
	return asText(t, chartutil.CoalesceTables(a, b))
}
