// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/config"
)

// ofReleases are the labels that only objects of a chart have.
var ofReleases = []string{"app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart"}

// comparable returns objects without what chart and overlay write differently: labels of releases, the hash at the end of a
// ConfigMap's name, and the text of a file, of which the content counts.
func comparable(t *testing.T, all objects) objects {
	t.Helper()
	hash := regexp.MustCompile(`(-config)-[0-9a-z]{10}\b`)
	out := objects{}
	for key, o := range all {
		raw, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		var copied map[string]any
		if err := yaml.Unmarshal([]byte(hash.ReplaceAllString(string(raw), "$1")), &copied); err != nil {
			t.Fatal(err)
		}
		withoutLabels(copied)
		data, _ := copied["data"].(map[string]any)
		for file, text := range data { // order: each for itself
			var content any
			if err := yaml.Unmarshal([]byte(text.(string)), &content); err != nil {
				t.Fatal(err)
			}
			data[file] = content
		}
		out[hash.ReplaceAllString(key, "$1")] = copied
	}
	return out
}

func withoutLabels(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, label := range ofReleases {
			delete(value, label)
		}
		for _, child := range value { // order: each for itself
			withoutLabels(child)
		}
	case []any:
		for _, child := range value {
			withoutLabels(child)
		}
	}
}

// TestChartEqualsKustomize compares object by object, so that what the tests show of the overlays on a cluster holds for the
// chart. Roles for users are files of their own for kustomize, see TestRolesNameTheLease.
func TestChartEqualsKustomize(t *testing.T) {
	for _, tt := range []struct {
		release, values, overlay string
		components               []string
	}{
		{"kumiki", "mode: canary", "canary", nil},
		{"kumiki", "mode: replace", "replace", nil},
		{"kumiki-shadow", "{mode: shadow, nameOverride: kumiki-shadow}", "shadow", nil},
		{"kumiki", "{mode: canary, monitoring: {enabled: true}}", "canary", []string{"monitoring"}},
		{"kumiki", "{mode: canary, clusterSize: 5k}", "canary", []string{"kustomize/sizes/5k"}},
		{"kumiki", "{mode: replace, clusterSize: 150k}", "replace", []string{"kustomize/sizes/150k"}},
		{"kumiki", "{gangs: {podgroup: true, sigs: true, volcano: true}}", "canary",
			[]string{"kustomize/gangs/podgroup", "kustomize/gangs/sigs", "kustomize/gangs/volcano"}},
	} {
		all, _ := rendered(t, tt.release, tt.values+"\n")
		for key, o := range all {
			_, isRole := o["rules"]
			for _, user := range []string{"-viewer", "-operator", "-incident-reader"} {
				if isRole && strings.HasSuffix(key, user) {
					delete(all, key)
				}
			}
		}
		got, want := comparable(t, all), comparable(t, kustomized(t, tt.overlay, tt.components...))
		if a, b := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(a, b) {
			t.Errorf("%s: the chart creates\n%v, the overlay\n%v", tt.values, a, b)
			continue
		}
		if len(got) < 6 {
			t.Fatalf("%s: only %d objects were compared", tt.values, len(got))
		}
		for name := range got {
			if strings.HasPrefix(name, "ConfigMap") && strings.Contains(tt.values, "gangs") {
				continue // the components grant rights and leave the configuration to the user
			}
			if !reflect.DeepEqual(got[name], want[name]) {
				a, _ := yaml.Marshal(got[name])
				b, _ := yaml.Marshal(want[name])
				t.Errorf("%s: %s differs. The chart creates\n%s\nand the overlay\n%s", tt.values, name, a, b)
			}
		}
	}
}

// configured is what the release's pods read as their configuration.
func configured(t *testing.T, all objects) config.Resolved {
	t.Helper()
	for key, o := range all {
		if strings.HasPrefix(key, "ConfigMap/") && strings.Contains(key, "-config-") {
			c, err := config.Parse([]byte(o["data"].(map[string]any)["config.yaml"].(string)))
			if err != nil || len(c.Warnings) > 0 {
				t.Fatalf("%v %q", err, c.Warnings)
			}
			return c
		}
	}
	t.Fatal("there is no configuration")
	panic("unreachable")
}

// TestGangsAreEnabledByOneValue: in the configuration of each profile and as a right to the objects, but none for annotations.
// It catches a declaration that is enabled and that kumiki may not read, and a role without effect. A shadow may only read.
func TestGangsAreEnabledByOneValue(t *testing.T) {
	for _, mode := range []string{"canary", "replace", "shadow"} {
		for _, source := range []string{"podgroup", "annotation", "sigs", "volcano", "pfnet"} {
			all, _ := rendered(t, "kumiki", "{mode: "+mode+", gangs: {"+source+": true, hold: {after: 30s}}}")
			on, want := configured(t, all).Kumiki.Gangs, config.DefaultGangs()
			want.Hold.After = 30 * time.Second
			switch source {
			case "podgroup":
				want.PodGroup = config.On
			case "annotation":
				want.Annotation = config.On
			case "sigs":
				want.Sigs = config.On
			case "volcano":
				want.Volcano = config.On
			case "pfnet":
				want.Pfnet = config.DefaultPfnetPrefix
			}
			if !reflect.DeepEqual(on, want) {
				t.Errorf("%s, gangs.%s: the configuration has %+v, want %+v", mode, source, on, want)
			}
			key := "ClusterRole/kumiki:gangs-" + source
			if _, found := all[key]; found != !slices.Contains([]string{"annotation", "pfnet"}, source) {
				t.Errorf("%s, gangs.%s: role %v", mode, source, found)
			} else if found {
				writes := strings.Contains(asText(t, all[key]), "patch")
				if writes == (mode == "shadow") {
					t.Errorf("%s, gangs.%s: the role may write: %v", mode, source, writes)
				}
			}
		}
	}
	all, _ := rendered(t, "kumiki", `{gangs: {sigs: true, pfnet: true, pfnetPrefix: example.org/gang}, profiles: [
		{schedulerName: a, pluginConfig: [{name: Kumiki, args: {seed: 7}}]}, {schedulerName: b}]}`)
	if c := configured(t, all).Kumiki; c.Gangs.Sigs != config.On || c.Gangs.Pfnet != "example.org/gang" || c.Seed != 7 {
		t.Errorf("beside settings of a profile, the configuration has %+v", c)
	}
}

func asText(t *testing.T, o any) string {
	t.Helper()
	raw, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestRolesNameTheLease: the chart's roles for users are those of viewer.yaml, operator.yaml and incident-reader.yaml with the lease of the release.
// It catches a role that still names the lease of another release: `kumiki pause` would be rejected.
func TestRolesNameTheLease(t *testing.T) {
	const values = "{mode: %, roles: {viewers: [{kind: Group, name: engineers}], operators: [{kind: ServiceAccount, name: bot, namespace: ops}], incidentReaders: [{kind: User, name: oncall}]}}"
	for mode, lease := range map[string]string{"canary": "trial-kumiki", "replace": "kube-scheduler"} {
		all, _ := rendered(t, "trial", strings.Replace(values, "%", mode, 1))
		roles := 0
		for user, subject := range map[string]string{"viewer": "engineers", "operator": "bot", "incident-reader": "oncall"} {
			raw, err := os.ReadFile("../" + user + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			for key, plain := range read(t, string(raw)) {
				key = strings.Replace(key, "kumiki", "trial-kumiki", 1)
				role, want := into[rbacv1.Role](t, all, key), into[rbacv1.Role](t, objects{"o": plain}, "o")
				for i, rule := range want.Rules {
					if slices.Contains(rule.Resources, "leases") {
						want.Rules[i].ResourceNames = []string{lease}
					}
				}
				if !reflect.DeepEqual(role.Rules, want.Rules) {
					t.Errorf("%s: %s has %+v, want %+v", mode, key, role.Rules, want.Rules)
				}
				roles++
				if strings.HasSuffix(key, "-namespace-viewer") {
					continue // its users bind it in their namespaces
				}
				bound := into[rbacv1.RoleBinding](t, all, strings.Replace(key, "Role", "RoleBinding", 1))
				if bound.RoleRef.Name != role.Name || len(bound.Subjects) != 1 || bound.Subjects[0].Name != subject {
					t.Errorf("%s: %s is bound as %+v", mode, key, bound)
				}
			}
		}
		if roles < 5 {
			t.Errorf("only %d roles were compared", roles)
		}
	}
}

// TestObjectsHaveStandardLabels: those that the Kubernetes documentation recommends, and the chart; none of those that change
// with a version are in a selector, which cannot be changed.
func TestObjectsHaveStandardLabels(t *testing.T) {
	all, r := rendered(t, "trial", "{monitoring: {enabled: true}, networkPolicy: {enabled: true}, nameOverride: sched, commonLabels: {team: a}, commonAnnotations: {b: c}}")
	for _, hook := range r.Hooks {
		maps.Copy(all, read(t, hook.Manifest))
	}
	want := map[string]string{
		"app.kubernetes.io/name": "sched", "app.kubernetes.io/instance": "trial", "app.kubernetes.io/version": r.Chart.AppVersion(),
		"app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": "kumiki-" + r.Chart.Metadata.Version, "team": "a",
	}
	for key, o := range all {
		meta := o["metadata"].(map[string]any)
		for label, value := range want {
			if labels, _ := meta["labels"].(map[string]any); labels[label] != value {
				t.Errorf("%s has label %s=%v, want %s", key, label, labels[label], value)
			}
		}
		if annotations, _ := meta["annotations"].(map[string]any); annotations["b"] != "c" {
			t.Errorf("%s has annotations %v", key, annotations)
		}
	}
	selector := into[appsv1.Deployment](t, all, "Deployment/kube-system/trial-sched").Spec.Selector.MatchLabels
	if !maps.Equal(selector, map[string]string{"app.kubernetes.io/name": "sched", "app.kubernetes.io/instance": "trial"}) {
		t.Errorf("the selector is %v", selector)
	}
}

// TestConfigurationRollsPods: by the name of the ConfigMap.
func TestConfigurationRollsPods(t *testing.T) {
	names := map[string]bool{} // name of a ConfigMap -> seen
	for _, values := range []string{"mode: canary", "mode: replace", "configuration: {podMaxBackoffSeconds: 20}", "leaseName: mine", "gangs: {sigs: true}"} {
		all, _ := rendered(t, "kumiki", values)
		name := into[appsv1.Deployment](t, all, "Deployment/kube-system/kumiki").Spec.Template.Spec.Volumes[0].ConfigMap.Name
		if names[name] || all["ConfigMap/kube-system/"+name] == nil {
			t.Errorf("with %s the ConfigMap is %q again, or missing", values, name)
		}
		names[name] = true
	}
}
