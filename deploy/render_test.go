// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// objects are what an overlay comes to.
type objects []*unstructured.Unstructured

// overlay returns the objects of an overlay of this directory.
func overlay(t *testing.T, name string) objects {
	t.Helper()
	return kustomized(t, "kustomize/"+name)
}

// kustomized runs kustomize as `kubectl apply -k` does.
func kustomized(t *testing.T, dir string) objects {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var all objects
	for _, r := range made.Resources() {
		o, err := r.Map()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &unstructured.Unstructured{Object: o})
	}
	return all
}

// only reads the one object of a kind.
func only[T any](t *testing.T, all objects, kind string) T {
	t.Helper()
	var out T
	n := 0
	for _, o := range all {
		if o.GetKind() != kind {
			continue
		}
		n++
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &out, true); err != nil {
			t.Fatalf("%s %s: %v", kind, o.GetName(), err)
		}
	}
	if n != 1 {
		t.Fatalf("%d objects of kind %s, want one", n, kind)
	}
	return out
}

// scheduling is the configuration that the pods of a deployment read: the ConfigMap that they mount, whatever its name.
func scheduling(t *testing.T, all objects) (text string, resolved config.Resolved) {
	t.Helper()
	pod := only[appsv1.Deployment](t, all, "Deployment").Spec.Template.Spec
	if len(pod.Volumes) != 1 || pod.Volumes[0].ConfigMap == nil {
		t.Fatalf("the pod's volumes are %+v, want one ConfigMap", pod.Volumes)
	}
	m := only[corev1.ConfigMap](t, all, "ConfigMap")
	if m.Name != pod.Volumes[0].ConfigMap.Name {
		t.Fatalf("the pod mounts ConfigMap %s, and %s is there", pod.Volumes[0].ConfigMap.Name, m.Name)
	}
	text = m.Data["config.yaml"]
	resolved, err := config.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(resolved.Warnings) > 0 {
		t.Errorf("warnings about the configuration: %q", resolved.Warnings)
	}
	return text, resolved
}

// rights are the roles that the overlay gives, as kind/name.
func rights(t *testing.T, all objects) []string {
	t.Helper()
	var out []string
	for _, o := range all {
		if !strings.HasSuffix(o.GetKind(), "Binding") {
			continue
		}
		var b rbacv1.RoleBinding // a ClusterRoleBinding has the same fields
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &b); err != nil {
			t.Fatal(err)
		}
		who := rbacv1.Subject{Kind: "ServiceAccount", Name: "kumiki", Namespace: "kube-system"}
		if !slices.Equal(b.Subjects, []rbacv1.Subject{who}) {
			t.Errorf("%s %s binds %+v", o.GetKind(), o.GetName(), b.Subjects)
		}
		if o.GetKind() == "RoleBinding" && o.GetNamespace() != "kube-system" {
			t.Errorf("%s %s is in namespace %q", o.GetKind(), o.GetName(), o.GetNamespace())
		}
		out = append(out, b.RoleRef.Kind+"/"+b.RoleRef.Name)
	}
	slices.Sort(out)
	return out
}

// likeKubeScheduler are the roles that kube-scheduler has, so all that kumiki may need.
var likeKubeScheduler = []string{"ClusterRole/system:kube-scheduler", "ClusterRole/system:volume-scheduler", "Role/extension-apiserver-authentication-reader"}

// TestCanaryStandsBeside: other pods, another lease, and the one right more that this lease takes.
func TestCanaryStandsBeside(t *testing.T) {
	all := overlay(t, "canary")
	_, c := scheduling(t, all)
	if l := c.LeaderElection; !l.Enabled || l.Namespace != "kube-system" || l.Name != "kumiki" {
		t.Errorf("leader election is %+v", l)
	}
	if names := profiles(c); !slices.Equal(names, []string{"kumiki"}) {
		t.Errorf("profiles are %v", names)
	}
	if got, want := rights(t, all), append(slices.Clone(likeKubeScheduler), "Role/kumiki:lease"); !slices.Equal(got, want) {
		t.Errorf("rights are %v, want %v", got, want)
	}
	lease := only[rbacv1.Role](t, all, "Role").Rules
	if len(lease) != 1 || !slices.Equal(lease[0].ResourceNames, []string{c.LeaderElection.Name}) {
		t.Errorf("the role for the lease has the rules %+v, want them to be about lease %s alone", lease, c.LeaderElection.Name)
	}
}

// TestReplaceStandsInTheSamePlace: same lease, same pods and those of the canary, same rights.
func TestReplaceStandsInTheSamePlace(t *testing.T) {
	all := overlay(t, "replace")
	_, c := scheduling(t, all)
	if l := c.LeaderElection; !l.Enabled || l.Namespace != "kube-system" || l.Name != "kube-scheduler" {
		t.Errorf("leader election is %+v", l)
	}
	if names := profiles(c); !slices.Equal(names, []string{"default-scheduler", "kumiki"}) {
		t.Errorf("profiles are %v", names)
	}
	if got := rights(t, all); !slices.Equal(got, likeKubeScheduler) {
		t.Errorf("rights are %v, want %v", got, likeKubeScheduler)
	}
}

func profiles(c config.Resolved) []string {
	var names []string
	for _, p := range c.Profiles {
		names = append(names, p.SchedulerName)
	}
	return names
}

// TestNamespacesAreWhereTheyBelong: kustomize puts one on kinds that it does not know to have none, and the API server
// then refuses the object.
func TestNamespacesAreWhereTheyBelong(t *testing.T) {
	without := []string{"ClusterRole", "ClusterRoleBinding", "PriorityLevelConfiguration", "FlowSchema"}
	for _, name := range []string{"canary", "replace", "shadow"} {
		for _, o := range overlay(t, name) {
			want := "kube-system"
			if slices.Contains(without, o.GetKind()) {
				want = ""
			}
			if o.GetNamespace() != want {
				t.Errorf("%s: %s %s is in namespace %q, want %q", name, o.GetKind(), o.GetName(), o.GetNamespace(), want)
			}
		}
	}
}

// TestDeploymentsSetTheUser: the image sets none, so that a static pod of kubeadm can run it as root. A Deployment that
// says runAsNonRoot without a number is refused by the kubelet; one that says neither runs as root. It catches a
// Deployment that relies on the image.
func TestDeploymentsSetTheUser(t *testing.T) {
	for _, name := range []string{"canary", "replace", "shadow"} {
		s := only[appsv1.Deployment](t, overlay(t, name), "Deployment").Spec.Template.Spec.SecurityContext
		if s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.RunAsUser == nil || *s.RunAsUser == 0 {
			t.Errorf("%s: the pod's security context is %+v", name, s)
		}
	}
}

// TestGangsTakeRightsOfTheirOwn: each component adds one role to what kube-scheduler has, for the account, and lets it do no
// more than read what declares gangs and show how they stand. The roles of the local cluster are the same.
func TestGangsTakeRightsOfTheirOwn(t *testing.T) {
	all := testcluster.GangRoles
	for source, want := range map[string]string{
		"podgroup": `[{["get","list","watch"] ["scheduling.k8s.io"] ["podgroups"]} {["patch"] ["scheduling.k8s.io"] ["podgroups/status"]}]`,
		"sigs":     `[{["get","list","watch"] ["scheduling.x-k8s.io"] ["podgroups"]} {["patch"] ["scheduling.x-k8s.io"] ["podgroups/status"]}]`,
		"volcano":  `[{["get","list","watch","patch"] ["scheduling.volcano.sh"] ["podgroups","podgroups/status"]}]`,
	} {
		raw, err := os.ReadFile("kustomize/gangs/" + source + "/rbac.yaml")
		if err != nil {
			t.Fatal(err)
		}
		var added objects
		for part := range strings.SplitSeq(string(raw), "\n---\n") {
			o := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict([]byte(part), &o.Object); err != nil {
				t.Fatal(err)
			}
			added = append(added, o)
		}
		name := "kumiki:gangs-" + source
		if got := rights(t, added); !slices.Equal(got, []string{"ClusterRole/" + name}) {
			t.Errorf("%s: rights are %v", source, got)
		}
		role := only[rbacv1.ClusterRole](t, added, "ClusterRole")
		var said []string
		for _, r := range role.Rules {
			said = append(said, fmt.Sprintf("{%s %s %s}", list(r.Verbs), list(r.APIGroups), list(r.Resources)))
			text := fmt.Sprintf("- apiGroups: [%q]\n  resources: %s\n  verbs: %s\n", r.APIGroups[0], spaced(r.Resources), spaced(r.Verbs))
			if source != "podgroup" && !strings.Contains(string(all), text) {
				t.Errorf("the local cluster's roles lack\n%s", text)
			}
		}
		if got := "[" + strings.Join(said, " ") + "]"; role.Name != name || got != want {
			t.Errorf("%s: role %s has %s, want %s", source, role.Name, got, want)
		}
	}
}

func list(words []string) string { return strings.ReplaceAll(spaced(words), `", "`, `","`) }

func spaced(words []string) string { return `["` + strings.Join(words, `", "`) + `"]` }
