// SPDX-License-Identifier: Apache-2.0

package ecosystem

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// shipped are manifests as a project ships them: with a Deployment, and with webhooks behind a service.
const shipped = `
kind: ValidatingWebhookConfiguration
apiVersion: admissionregistration.k8s.io/v1
metadata: {name: check}
webhooks:
- {name: check.example.com, clientConfig: {service: {name: webhook, namespace: system, path: /check}}}
---
kind: Deployment
apiVersion: apps/v1
metadata: {name: manager, namespace: system}
---
kind: ServiceAccount
apiVersion: v1
metadata: {name: manager, namespace: system}
---
kind: CustomResourceDefinition
apiVersion: apiextensions.k8s.io/v1
metadata: {name: things.example.com}
spec:
  versions: [{name: v1}, {name: v2}]
  conversion:
    webhook: {clientConfig: {service: {name: webhook, namespace: system, path: /convert}}}
---
kind: CustomResourceDefinition
apiVersion: apiextensions.k8s.io/v1
metadata: {name: parts.example.com}
spec:
  versions: [{name: v1}]
  conversion:
    webhook: {clientConfig: {service: {name: webhook, namespace: system, path: /not-served}}}
`

// What runs in the cluster is left out, definitions come before accounts and webhooks, webhooks are rewritten to the
// process, and kustomizations get the namespace. A definition of one version needs no conversion.
func TestManifestsAreInstalledForAProcessOutsideOfTheCluster(t *testing.T) {
	module := t.TempDir()
	for name, text := range map[string]string{"all.yaml": shipped, "base/kustomization.yaml": "resources: [role.yaml]",
		"base/role.yaml": "{kind: Role, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: edit}}"} {
		file := filepath.Join(module, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := Component{Name: "c", Manifests: []string{"*.yaml"}, Kustomizations: []string{"base"}, Namespace: "place",
		Objects: "{kind: ClusterRole, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: more}}",
		Edit:    func(o *unstructured.Unstructured) bool { return o.GetName() != "never" }}
	objects, paths, err := c.objects(&Values{Dir: t.TempDir(), ModuleDir: module, WebhookPort: 1234}, []byte("bundle"))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, o := range objects {
		kinds = append(kinds, o.GetKind())
		for _, client := range webhookClients(o) {
			if url, _ := client["url"].(string); !strings.HasPrefix(url, "https://127.0.0.1:1234/") ||
				client["service"] != nil || client["caBundle"] != "YnVuZGxl" {
				t.Errorf("%s: %v", o.GetKind(), client)
			}
		}
		if o.GetKind() == "Role" && o.GetNamespace() != "place" {
			t.Errorf("the role is in namespace %q", o.GetNamespace())
		}
	}
	want := []string{"Namespace", definitionKind, definitionKind, "ServiceAccount", "ClusterRole", "Role",
		validatingKind}
	if !slices.Equal(kinds, want) {
		t.Errorf("installed: %v, want %v", kinds, want)
	}
	if want := []string{"/convert", "/check"}; !slices.Equal(paths, want) {
		t.Errorf("webhooks: %v, want %v", paths, want)
	}
}

// A component without a module cannot be built, and a module without a component is run by no test.
func TestEveryComponentHasAModule(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Glob(filepath.Join(root, "ecosystem", "*", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	var found, named []string
	for _, file := range modules {
		found = append(found, filepath.Base(filepath.Dir(file)))
	}
	for _, c := range All() {
		named = append(named, c.Name)
	}
	slices.Sort(named)
	if !slices.Equal(found, named) {
		t.Errorf("modules in ecosystem/: %v, components: %v", found, named)
	}
}
