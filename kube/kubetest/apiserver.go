// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/component-base/metrics"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/record"
)

// APIServer is an API server of our own making: it keeps the rules about binds, status patches and versions that the
// fake clientset does not, and it can fail in the ways that matter.
type APIServer struct {
	*fake.Clientset
	mu      sync.Mutex
	pods    map[string]*v1.Pod // namespace/name -> pod
	version int
	binds   int      // that were applied
	deleted []string // UIDs, in the order in which deletes were applied
	lists   int      // of pods
	patches []map[string]any
	watches []podWatch
	// Before is asked before each call of a verb (bind, get, patch); an error is the answer. after is asked when the
	// call has been applied, and its error takes the place of the answer: a lost reply.
	Before, After func(verb, pod string) error
	// Held keeps a bind waiting on its way; its error is the answer.
	Held func(ctx context.Context) error
	// lastBind is the newest bind that arrived.
	lastBind *v1.Binding
}

// podWatch is a watch of the pods that a selector picks.
type podWatch struct {
	*watch.RaceFreeFakeWatcher
	of fields.Selector
}

// picks reports whether a selector picks a pod. It knows the field that schedulers ask about.
func picks(of fields.Selector, p *v1.Pod) bool {
	return of.Matches(fields.Set{"status.phase": string(p.Status.Phase)})
}

var PodResource = schema.GroupResource{Resource: "pods"}

func NewAPIServer(pods ...*v1.Pod) *APIServer {
	a := &APIServer{Clientset: fake.NewClientset(), pods: map[string]*v1.Pod{}}
	for _, p := range pods {
		a.Put(p)
	}
	return a
}

// CoreV1 answers for pods itself: the fake clientset would make calls wait for each other.
func (a *APIServer) CoreV1() typedcorev1.CoreV1Interface { return coreClient{a.Clientset.CoreV1(), a} }

type coreClient struct {
	typedcorev1.CoreV1Interface
	a *APIServer
}

func (c coreClient) Pods(namespace string) typedcorev1.PodInterface {
	return podClient{c.CoreV1Interface.Pods(namespace), c.a, namespace}
}

type podClient struct {
	typedcorev1.PodInterface
	a         *APIServer
	namespace string
}

func (c podClient) Bind(ctx context.Context, b *v1.Binding, _ metav1.CreateOptions) error {
	if c.a.Held != nil {
		if err := c.a.Held(ctx); err != nil {
			return err
		}
	}
	_, err := call(c, "bind", b.Name, func() (*v1.Pod, error) { return nil, c.a.Bind(b) })
	return err
}

func (c podClient) Get(_ context.Context, name string, _ metav1.GetOptions) (*v1.Pod, error) {
	return call(c, "get", name, func() (*v1.Pod, error) { return c.a.Get(c.namespace, name) })
}

func (c podClient) Patch(_ context.Context, name string, _ types.PatchType, body []byte, _ metav1.PatchOptions,
	_ ...string) (*v1.Pod, error) {
	return call(c, "patch", name, func() (*v1.Pod, error) { return c.a.patch(c.namespace, name, body) })
}

func (c podClient) Delete(_ context.Context, name string, o metav1.DeleteOptions) error {
	_, err := call(c, "delete", name, func() (*v1.Pod, error) { return nil, c.a.delete(c.namespace, name, o) })
	return err
}

// List and Watch give the pods that are asked for; who lists and then watches misses nothing that put brings.
func (c podClient) List(_ context.Context, o metav1.ListOptions) (*v1.PodList, error) {
	of, err := fields.ParseSelector(o.FieldSelector)
	if err != nil {
		return nil, err
	}
	c.a.mu.Lock()
	defer c.a.mu.Unlock()
	c.a.lists++
	list := &v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(c.a.version)}}
	for _, p := range c.a.pods {
		if picks(of, p) {
			list.Items = append(list.Items, *p.DeepCopy())
		}
	}
	return list, nil
}

func (c podClient) Watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	of, err := fields.ParseSelector(o.FieldSelector)
	if err != nil {
		return nil, err
	}
	c.a.mu.Lock()
	defer c.a.mu.Unlock()
	w := podWatch{watch.NewRaceFreeFake(), of}
	c.a.watches = append(c.a.watches, w)
	return w, nil
}

func call(c podClient, verb, name string, do func() (*v1.Pod, error)) (*v1.Pod, error) {
	key := c.namespace + "/" + name
	if c.a.Before != nil {
		if err := c.a.Before(verb, key); err != nil {
			return nil, err
		}
	}
	p, err := do()
	if c.a.After != nil && err == nil {
		if lost := c.a.After(verb, key); lost != nil {
			return nil, lost
		}
	}
	return p, err
}

// tell sends a change to all watches. A pod that a watch does not pick any more is gone for it.
func (a *APIServer) tell(kind watch.EventType, p *v1.Pod) {
	for _, w := range a.watches {
		if picks(w.of, p) {
			w.Action(kind, p.DeepCopy())
		} else {
			w.Action(watch.Deleted, p.DeepCopy())
		}
	}
}

func (a *APIServer) Put(p *v1.Pod) *v1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	p.ResourceVersion = strconv.Itoa(a.version)
	a.pods[p.Namespace+"/"+p.Name] = p.DeepCopy()
	a.tell(watch.Modified, p)
	return p
}

func (a *APIServer) Remove(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.pods[key]; p != nil {
		a.tell(watch.Deleted, p)
	}
	delete(a.pods, key)
}

func (a *APIServer) Pod(key string) *v1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pods[key].DeepCopy()
}

// Listed counts the lists of pods.
func (a *APIServer) Listed() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lists
}

// Bound counts the binds that were carried out.
func (a *APIServer) Bound() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.binds
}

func (a *APIServer) Get(namespace, name string) (*v1.Pod, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.pods[namespace+"/"+name]
	if p == nil {
		return nil, apierrors.NewNotFound(PodResource, name)
	}
	return p.DeepCopy(), nil
}

func (a *APIServer) Bind(b *v1.Binding) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lastBind = b
	p := a.pods[b.Namespace+"/"+b.Name]
	switch {
	case p == nil:
		return apierrors.NewNotFound(PodResource, b.Name)
	case b.UID != "" && b.UID != p.UID:
		return Conflict(b.Name, "the UID in the precondition is another")
	case p.DeletionTimestamp != nil:
		return Conflict(b.Name, "the pod is being deleted")
	case p.Spec.NodeName != "":
		return Conflict(b.Name, "the pod is already assigned to node "+p.Spec.NodeName)
	}
	a.version++
	p.ResourceVersion = strconv.Itoa(a.version)
	p.Spec.NodeName = b.Target.Name
	setCondition(p, v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionTrue})
	a.binds++
	a.tell(watch.Modified, p)
	return nil
}

func setCondition(p *v1.Pod, c v1.PodCondition) {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == c.Type {
			p.Status.Conditions[i] = c
			return
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, c)
}

func Conflict(name, why string) error {
	return apierrors.NewConflict(PodResource, name, fmt.Errorf("%s", why))
}

// delete deletes a pod at once, or, if it has a finalizer, marks it.
func (a *APIServer) delete(namespace, name string, o metav1.DeleteOptions) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := namespace + "/" + name
	p := a.pods[key]
	switch {
	case p == nil:
		return apierrors.NewNotFound(PodResource, name)
	case o.Preconditions == nil || o.Preconditions.UID == nil || o.GracePeriodSeconds != nil:
		return apierrors.NewBadRequest("a delete without precondition, or with a grace period of its own")
	case *o.Preconditions.UID != p.UID:
		return Conflict(name, "the UID in the precondition is another")
	}
	a.version++
	p.ResourceVersion = strconv.Itoa(a.version)
	a.deleted = append(a.deleted, string(p.UID))
	if len(p.Finalizers) > 0 {
		p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		a.tell(watch.Modified, p)
		return nil
	}
	delete(a.pods, key)
	a.tell(watch.Deleted, p)
	return nil
}

// patch takes the patches of this package: preconditions, one condition, a cleared nomination.
func (a *APIServer) patch(namespace, name string, raw []byte) (*v1.Pod, error) {
	var body struct {
		Metadata struct {
			UID             types.UID
			ResourceVersion string
		}
		Status struct {
			Conditions        []v1.PodCondition
			NominatedNodeName json.RawMessage
		}
	}
	var plain map[string]any
	if json.Unmarshal(raw, &body) != nil || json.Unmarshal(raw, &plain) != nil {
		return nil, apierrors.NewBadRequest("cannot read the patch")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.pods[namespace+"/"+name]
	switch {
	case p == nil:
		return nil, apierrors.NewNotFound(PodResource, name)
	case body.Metadata.UID != "" && body.Metadata.UID != p.UID,
		body.Metadata.ResourceVersion != "" && body.Metadata.ResourceVersion != p.ResourceVersion:
		return nil, Conflict(name, "a precondition does not hold")
	}
	a.version++
	p.ResourceVersion = strconv.Itoa(a.version)
	if len(body.Status.Conditions) > 0 {
		setCondition(p, body.Status.Conditions[0])
	}
	if raw := body.Status.NominatedNodeName; raw != nil {
		p.Status.NominatedNodeName, _ = strconv.Unquote(string(raw)) // null is empty
	}
	a.patches = append(a.patches, plain)
	a.tell(watch.Modified, p)
	return p.DeepCopy(), nil
}

// Deletes are the UIDs of deleted pods, in the order in which deletes were applied.
func (a *APIServer) Deletes() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.deleted)
}

// LastBinding is the newest binding that arrived, nil before the first.
func (a *APIServer) LastBinding() *v1.Binding {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lastBind
}

// All are the pods: namespace/name -> pod.
func (a *APIServer) All() map[string]*v1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.pods)
}

// Silence ends the sending of changes over the watches that were begun. They stay up.
func (a *APIServer) Silence() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watches = nil
}

// Patched are the patches that were applied.
func (a *APIServer) Patched() []map[string]any {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.patches
}

func PendingPod(name string, uid types.UID) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid, Generation: 1},
		Spec: v1.PodSpec{
			SchedulerName: v1.DefaultSchedulerName,
			Containers: []v1.Container{{Name: "c", Image: "img", Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("1")},
			}}},
		},
	}
}

func BoundPod(name string, uid types.UID, node string) *v1.Pod {
	p := PendingPod(name, uid)
	p.Spec.NodeName = node
	return p
}

func Node(name string) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{
			v1.ResourceCPU: apiresource.MustParse("4"), v1.ResourceMemory: apiresource.MustParse("8Gi"),
			v1.ResourcePods: apiresource.MustParse("110"),
		}},
	}
}

func Ref(p *v1.Pod) record.PodRef {
	return record.PodRef{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}
}

// Value reads one metric: the name and a part of its labels as in label="x". It sums what matches.
func Value(t *testing.T, reg metrics.Gatherer, name string, labels ...string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			matched := 0
			for _, l := range m.GetLabel() {
				for _, want := range labels {
					if want == l.GetName()+"="+l.GetValue() {
						matched++
					}
				}
			}
			if matched == len(labels) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

var recordIntake = convert.NewIntake()

// NewRecord is the compact record of a pod, made in tests that run one after the other.
func NewRecord(p *v1.Pod) *cluster.Pod { return recordIntake.Pod(p) }
