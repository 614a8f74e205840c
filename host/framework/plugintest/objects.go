// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/intake"
	"github.com/kumiki-scheduler/kumiki/record"
)

var (
	podResource  = v1.SchemeGroupVersion.WithResource("pods")
	nodeResource = v1.SchemeGroupVersion.WithResource("nodes")
)

// newClient returns a client over objects in memory, which binds pods.
func newClient() *fake.Clientset {
	client := fake.NewClientset()
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		create := action.(clienttesting.CreateAction)
		binding, binds := create.GetObject().(*v1.Binding)
		if !binds || action.GetSubresource() != "binding" {
			return false, nil, nil
		}
		return true, binding, bindIn(client, types.NamespacedName{Namespace: action.GetNamespace(), Name: binding.Name},
			binding.Target.Name)
	})
	return client
}

// bindIn binds a pod in a client's objects.
func bindIn(client *fake.Clientset, key types.NamespacedName, node string) error {
	return change(client, key, func(p *v1.Pod) error {
		if p.Spec.NodeName != "" {
			return fmt.Errorf("pod %s is bound to %s already", key, p.Spec.NodeName)
		}
		p.Spec.NodeName = node
		p.Status.Conditions = nil
		return nil
	})
}

// change changes a pod in a client's objects.
func change(client *fake.Clientset, key types.NamespacedName, how func(*v1.Pod) error) error {
	obj, err := client.Tracker().Get(podResource, key.Namespace, key.Name)
	if err != nil {
		return err
	}
	p := obj.(*v1.Pod).DeepCopy()
	if err := how(p); err != nil {
		return err
	}
	return client.Tracker().Update(podResource, p, key.Namespace)
}

// Apply creates or replaces the objects of manifests: YAML documents of built-in types. See Set.
func (c *Cluster) Apply(manifests string) {
	c.t.Helper()
	objects, err := parse(manifests)
	if err != nil {
		c.t.Fatalf("manifests: %v", err)
	}
	c.Set(objects...)
}

// parse reads YAML documents.
func parse(manifests string) ([]runtime.Object, error) {
	reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifests)))
	decode := scheme.Codecs.UniversalDeserializer().Decode
	var out []runtime.Object
	for i := 1; ; i++ {
		text, err := reader.Read()
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("document %d: %w", i, err)
		case len(bytes.TrimSpace(text)) == 0:
			continue
		}
		obj, _, err := decode(text, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i, err)
		}
		out = append(out, obj)
	}
}

// Set creates or replaces objects, all of them before the scheduler decides. The scheduler sees pods, nodes, and the
// kinds that its plugins read; plugins see all with their client and their informers. What an object lacks is
// completed: namespace, UID, creation time, the scheduler name of a pod, and the amounts of a node (4 CPUs, 8 GiB and
// 110 pods).
func (c *Cluster) Set(objects ...runtime.Object) {
	c.t.Helper()
	for _, obj := range objects {
		obj = obj.DeepCopyObject()
		gvr, m, err := identify(obj)
		if err != nil {
			c.t.Fatalf("%T: %v", obj, err)
		}
		c.complete(obj, m)
		if _, err := c.client.Tracker().Get(gvr, m.GetNamespace(), m.GetName()); err != nil {
			err = c.client.Tracker().Create(gvr, obj, m.GetNamespace())
			if err != nil {
				c.t.Fatalf("creating %s %s: %v", gvr.Resource, m.GetName(), err)
			}
		} else if err := c.client.Tracker().Update(gvr, obj, m.GetNamespace()); err != nil {
			c.t.Fatalf("replacing %s %s: %v", gvr.Resource, m.GetName(), err)
		}
		c.follow(obj, m, true)
		if other, is := obj.(cluster.Object); is && c.watches(obj) {
			c.step(engine.ObjectSet{Object: intake.Trim(other)})
		}
		c.pull()
	}
	c.Settle()
}

// Delete deletes objects, which may be given by their type and name alone.
func (c *Cluster) Delete(objects ...runtime.Object) {
	c.t.Helper()
	for _, obj := range objects {
		obj = obj.DeepCopyObject()
		gvr, m, err := identify(obj)
		if err == nil {
			if m.GetNamespace() == "" && namespaced(obj) {
				m.SetNamespace(v1.NamespaceDefault)
			}
			err = c.client.Tracker().Delete(gvr, m.GetNamespace(), m.GetName())
		}
		if err != nil {
			c.t.Fatalf("deleting %T: %v", obj, err)
		}
		c.follow(obj, m, false)
		if c.watches(obj) {
			c.step(engine.ObjectGone{Kind: cluster.KindOf(obj.(cluster.Object)), Key: cluster.ObjectKey{
				Namespace: m.GetNamespace(), Name: m.GetName()}})
		}
		c.pull()
	}
	c.Settle()
}

// identify returns the resource and the metadata of an object.
func identify(obj runtime.Object) (schema.GroupVersionResource, metav1.Object, error) {
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		return schema.GroupVersionResource{}, nil, err
	}
	gvr, _ := meta.UnsafeGuessKindToResource(kinds[0])
	m, err := meta.Accessor(obj)
	return gvr, m, err
}

// clusterWide are the built-in kinds without a namespace that tests of plugins use.
var clusterWide = []string{"Node", "Namespace", "PersistentVolume", "StorageClass", "CSINode", "CSIDriver",
	"VolumeAttachment", "PriorityClass", "DeviceClass", "ResourceSlice", "DeviceTaintRule", "RuntimeClass"}

func namespaced(obj runtime.Object) bool {
	return !slices.Contains(clusterWide, reflect.TypeOf(obj).Elem().Name())
}

// watches reports whether the scheduler watches the kind of an object other than pods and nodes.
func (c *Cluster) watches(obj runtime.Object) bool {
	return slices.Contains(c.kinds, cluster.Kind(reflect.TypeOf(obj).Elem().Name()))
}

// complete sets what an object lacks, and a new version.
func (c *Cluster) complete(obj runtime.Object, m metav1.Object) {
	if m.GetNamespace() == "" && namespaced(obj) {
		m.SetNamespace(v1.NamespaceDefault)
	}
	if m.GetUID() == "" {
		m.SetUID(types.UID(types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}.String()))
	}
	if created := m.GetCreationTimestamp(); created.IsZero() {
		m.SetCreationTimestamp(metav1.NewTime(c.Now().Truncate(time.Second)))
	}
	c.version++
	m.SetResourceVersion(strconv.Itoa(c.version))
	switch o := obj.(type) {
	case *v1.Pod:
		if o.Spec.SchedulerName == "" {
			o.Spec.SchedulerName = c.name
		}
	case *v1.Node:
		if len(o.Status.Allocatable) == 0 {
			o.Status.Allocatable = o.Status.Capacity
		}
		if len(o.Status.Allocatable) == 0 {
			o.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse("4"),
				v1.ResourceMemory: resource.MustParse("8Gi"), v1.ResourcePods: resource.MustParse("110")}
		}
	}
}

// followFor bounds the wait for an informer.
const followFor = 10 * time.Second

// follow waits until the informer of an object's type, if a factory requested one, has the object or has lost it.
func (c *Cluster) follow(obj runtime.Object, m metav1.Object, there bool) {
	c.t.Helper()
	started := false
	for kind := range c.objects.WaitForCacheSync(c.t.Context().Done()) { // order: any match suffices
		started = started || kind == reflect.TypeOf(obj)
	}
	if !started {
		return
	}
	store := c.objects.InformerFor(obj, nil).GetStore()
	key, _ := cache.MetaNamespaceKeyFunc(m)
	for deadline := time.Now().Add(followFor); ; time.Sleep(time.Millisecond) {
		got, found, _ := store.GetByKey(key)
		if found == there && (!there || got.(metav1.Object).GetResourceVersion() == m.GetResourceVersion()) {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("the informer of %T does not show %s within %s", obj, key, followFor)
		}
	}
}

// pull gives the engine the pods and nodes that have changed, in the order of their versions; nodes go first.
func (c *Cluster) pull() {
	c.t.Helper()
	nodes, pods := list[v1.NodeList](c, nodeResource, "Node").Items, list[v1.PodList](c, podResource, "Pod").Items
	there := map[string]bool{}
	for i := range nodes {
		n := &nodes[i]
		there[n.Name] = true
		if old := c.nodes[n.Name]; old == nil || !reflect.DeepEqual(old, n) {
			c.nodes[n.Name] = n
			c.step(engine.NodeSet{Node: c.intake.Node(n)})
		}
	}
	for _, name := range gone(c.nodes, func(name string) bool { return there[name] }, cmp.Compare[string]) {
		delete(c.nodes, name)
		c.step(engine.NodeGone{Name: name})
	}
	slices.SortStableFunc(pods, func(a, b v1.Pod) int { return cmp.Compare(version(&a), version(&b)) })
	present := map[types.NamespacedName]bool{}
	for i := range pods {
		p := &pods[i]
		key := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
		present[key] = p.Status.Phase != v1.PodSucceeded && p.Status.Phase != v1.PodFailed
		if old := c.pods[key]; present[key] && (old == nil || !reflect.DeepEqual(old, p)) {
			c.pods[key] = p
			c.step(engine.PodSet{Pod: c.intake.Pod(p)})
		}
	}
	byKey := func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) }
	for _, key := range gone(c.pods, func(key types.NamespacedName) bool { return present[key] }, byKey) {
		p := c.pods[key]
		delete(c.pods, key)
		c.step(engine.PodGone{Pod: record.PodRef{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}})
	}
}

// gone returns the keys of known objects that are not there any more, sorted.
func gone[K comparable, V any](known map[K]V, there func(K) bool, by func(a, b K) int) []K {
	var out []K
	for key := range known { // order: sorted below
		if !there(key) {
			out = append(out, key)
		}
	}
	slices.SortFunc(out, by)
	return out
}

func version(m metav1.Object) int {
	n, _ := strconv.Atoi(m.GetResourceVersion())
	return n
}

// list returns the objects of a kind, copies.
func list[L any](c *Cluster, gvr schema.GroupVersionResource, kind string) *L {
	c.t.Helper()
	got, err := c.client.Tracker().List(gvr, v1.SchemeGroupVersion.WithKind(kind), "")
	if err != nil {
		c.t.Fatalf("listing %s: %v", gvr.Resource, err)
	}
	return any(got.DeepCopyObject()).(*L)
}
