// SPDX-License-Identifier: Apache-2.0

package up

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/kumiki-scheduler/kumiki/examples/demo"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// demoObjects returns the embedded manifests, with replicas for n nodes.
func demoObjects(n int) ([]*unstructured.Unstructured, error) {
	all, err := embedded(demo.Files)
	for _, o := range all {
		scale(o, n)
	}
	return all, err
}

// embedded reads manifests of this program, in the order of their names.
func embedded(files embed.FS) ([]*unstructured.Unstructured, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("examples: %w", err)
	}
	var all []*unstructured.Unstructured
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("examples: %w", err)
		}
		objects, err := decode(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("example %s: %w", name, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

// defineGangs creates the kinds of objects that declare gangs, and the scheduler's rights to them.
func (a *applier) defineGangs(ctx context.Context) error {
	for _, text := range [][]byte{testcluster.GangDefinitions, testcluster.GangRoles} {
		objects, err := decode(bytes.NewReader(text))
		if err != nil {
			return fmt.Errorf("kinds of gangs: %w", err)
		}
		if err := a.apply(ctx, objects); err != nil {
			return err
		}
	}
	return nil
}

// scale sets the replicas of an object that is written for 100 nodes.
func scale(o *unstructured.Unstructured, n int) {
	for _, field := range []string{"replicas", "parallelism", "completions"} {
		if count, found, _ := unstructured.NestedInt64(o.Object, "spec", field); found {
			// Setting a number that was just read cannot fail.
			_ = unstructured.SetNestedField(o.Object, max(count*int64(n)/100, 1), "spec", field)
		}
	}
}

// fileObjects returns the manifests of the user.
func fileObjects(path string) ([]*unstructured.Unstructured, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("manifests: %w", err)
	}
	defer file.Close()
	objects, err := decode(file)
	if err != nil {
		return nil, fmt.Errorf("manifests %s: %w", path, err)
	}
	return objects, nil
}

// decode reads YAML or JSON documents; lists are taken apart.
func decode(in io.Reader) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	documents := yaml.NewYAMLOrJSONDecoder(in, 4096)
	for n := 1; ; n++ {
		var raw runtime.RawExtension
		err := documents.Decode(&raw)
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		if text := string(bytes.TrimSpace(raw.Raw)); text == "" || text == "null" {
			continue
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(raw.Raw); err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		switch {
		case o.GetAPIVersion() == "":
			return nil, fmt.Errorf("document %d has no apiVersion", n)
		case o.IsList():
			if err := o.EachListItem(func(item runtime.Object) error {
				out = append(out, item.(*unstructured.Unstructured))
				return nil
			}); err != nil {
				return nil, fmt.Errorf("document %d: %w", n, err)
			}
		default:
			out = append(out, o)
		}
	}
}

// applier creates objects of any kind.
type applier struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newApplier(cfg *rest.Config) (*applier, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return &applier{client, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))}, nil
}

// apply creates the objects in order. It fills in the namespace default, as kubectl does.
func (a *applier) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		name := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
		kind := o.GroupVersionKind()
		mapping, err := a.mapping(ctx, kind.GroupKind(), kind.Version)
		if err != nil {
			return fmt.Errorf("applying %s: %w", name, err)
		}
		var resource dynamic.ResourceInterface = a.client.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			if o.GetNamespace() == "" {
				o.SetNamespace(metav1.NamespaceDefault)
			}
			resource = a.client.Resource(mapping.Resource).Namespace(o.GetNamespace())
		}
		if err := create(ctx, resource, o); err != nil {
			return fmt.Errorf("applying %s: %w", name, err)
		}
	}
	return nil
}

// definedWithin is how long a kind may take to be served after an object has defined it.
const definedWithin = 5 * time.Second

// mapping returns the resource for objects of a kind. An earlier object may just have defined the kind.
func (a *applier) mapping(ctx context.Context, kind schema.GroupKind, version string) (*meta.RESTMapping, error) {
	for limit := time.Now().Add(definedWithin); ; {
		mapping, err := a.mapper.RESTMapping(kind, version)
		if !meta.IsNoMatchError(err) || time.Now().After(limit) {
			return mapping, err
		}
		a.mapper.Reset()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}

// create retries while the namespace's service account does not exist yet, which admission requires for pods.
func create(ctx context.Context, resource dynamic.ResourceInterface, o *unstructured.Unstructured) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true,
		func(ctx context.Context) (bool, error) {
			_, last = resource.Create(ctx, o, metav1.CreateOptions{FieldManager: "kumiki-up"})
			switch {
			case last == nil, apierrors.IsAlreadyExists(last):
				return true, nil
			case apierrors.IsForbidden(last), apierrors.IsServerTimeout(last), apierrors.IsTooManyRequests(last):
				return false, nil
			}
			return false, last
		})
	if err != nil && last != nil {
		return last
	}
	return err
}
