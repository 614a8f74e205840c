// SPDX-License-Identifier: Apache-2.0

package ecosystem

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// The kinds with webhooks.
const (
	definitionKind = "CustomResourceDefinition"
	validatingKind = "ValidatingWebhookConfiguration"
	mutatingKind   = "MutatingWebhookConfiguration"
)

// installed are the kinds of manifests that apply to a process outside of the cluster, in the order of installation.
var installed = []string{"Namespace", definitionKind, "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role",
	"RoleBinding", validatingKind, mutatingKind}

// Objects reads manifests: YAML or JSON documents.
func Objects(text []byte) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	documents := yamlutil.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		if err := documents.Decode(&o.Object); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
}

// objects returns what the component installs, in order, and the paths of its webhooks.
func (c *Component) objects(v *Values, bundle []byte) ([]*unstructured.Unstructured, []string, error) {
	text, err := c.manifests(v)
	if err != nil {
		return nil, nil, fmt.Errorf("read manifests of %s: %w", c.Name, err)
	}
	all, err := Objects(text)
	if err != nil {
		return nil, nil, fmt.Errorf("read manifests of %s: %w", c.Name, err)
	}
	if c.Namespace != "" {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("v1")
		o.SetKind("Namespace")
		o.SetName(c.Namespace)
		all = append(all, o)
	}
	kinds := slices.Concat(installed, c.Kinds)
	all = slices.DeleteFunc(all, func(o *unstructured.Unstructured) bool {
		return !slices.Contains(kinds, o.GetKind()) || c.Edit != nil && !c.Edit(o)
	})
	if len(all) == 0 {
		return nil, nil, fmt.Errorf("the manifests of %s hold nothing to install", c.Name)
	}
	slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int {
		return cmp.Compare(slices.Index(kinds, a.GetKind()), slices.Index(kinds, b.GetKind()))
	})
	var paths []string
	for _, o := range all {
		versions, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "versions")
		if list, ok := versions.([]any); ok && o.GetKind() == definitionKind && len(list) == 1 {
			// With one version, a webhook that converts is never called, and often not served.
			unstructured.RemoveNestedField(o.Object, "spec", "conversion")
		}
		for _, client := range webhookClients(o) {
			path, _, err := unstructured.NestedString(client, "service", "path")
			if err != nil {
				return nil, nil, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
			}
			delete(client, "service")
			client["url"] = fmt.Sprintf("https://127.0.0.1:%d%s", v.WebhookPort, path)
			client["caBundle"] = base64.StdEncoding.EncodeToString(bundle)
			paths = append(paths, path)
		}
	}
	return all, paths, nil
}

// manifests joins the text of all manifests.
func (c *Component) manifests(v *Values) ([]byte, error) {
	text := []byte(c.Objects)
	for _, pattern := range c.Manifests {
		files, err := filepath.Glob(filepath.Join(v.ModuleDir, pattern))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("no file is %s: %w", pattern, err)
		}
		for _, file := range files {
			part, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			text = append(append(text, "\n---\n"...), part...)
		}
	}
	if len(c.Kustomizations) == 0 {
		return text, nil
	}
	part, err := c.kustomized(v)
	return append(append(text, "\n---\n"...), part...), err
}

// kustomized builds the kustomizations as the bases of one that sets the namespace.
func (c *Component) kustomized(v *Values) ([]byte, error) {
	top := types.Kustomization{Namespace: c.Namespace}
	for _, dir := range c.Kustomizations {
		// An absolute path is not accepted.
		relative, err := filepath.Rel(v.Dir, filepath.Join(v.ModuleDir, dir))
		if err != nil {
			return nil, err
		}
		top.Resources = append(top.Resources, relative)
	}
	text, err := yaml.Marshal(top)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(v.Dir, "kustomization.yaml"), text, 0o600); err != nil {
		return nil, err
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), v.Dir)
	if err != nil {
		return nil, err
	}
	return built.AsYaml()
}

// webhookClients returns the parts of an object that say where a webhook is.
func webhookClients(o *unstructured.Unstructured) []map[string]any {
	var clients []map[string]any
	switch o.GetKind() {
	case validatingKind, mutatingKind:
		hooks, _, _ := unstructured.NestedFieldNoCopy(o.Object, "webhooks")
		list, _ := hooks.([]any)
		for _, hook := range list {
			if client, ok := hook.(map[string]any)["clientConfig"].(map[string]any); ok {
				clients = append(clients, client)
			}
		}
	case definitionKind:
		conversion, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "conversion", "webhook", "clientConfig")
		if client, ok := conversion.(map[string]any); ok {
			clients = append(clients, client)
		}
	}
	return clients
}
