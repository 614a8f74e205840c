// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"reflect"
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// shown are the objects that plugins see with their client and their informers.
type shown struct {
	t         testing.TB
	client    *fake.Clientset
	informers informers.SharedInformerFactory
	started   map[reflect.Type]bool // type -> its informer has its first list
	version   int                   // of the newest object
}

// show lets the informers see an event, and returns it with complete objects.
func (o *shown) show(ev engine.Event) engine.Event {
	switch ev := ev.(type) {
	case engine.PodSet:
		rec := *ev.Pod
		rec.Full = podOf(ev.Pod)
		o.set(rec.Full.DeepCopy())
		return engine.PodSet{Pod: &rec}
	case engine.PodGone:
		o.drop(&v1.Pod{}, ev.Pod.Namespace, ev.Pod.Name)
	case engine.NodeSet:
		rec := *ev.Node
		rec.Full = nodeOf(ev.Node)
		o.set(rec.Full.DeepCopy())
		return engine.NodeSet{Node: &rec}
	case engine.NodeGone:
		o.drop(&v1.Node{}, "", ev.Name)
	case engine.ObjectSet:
		if obj, is := ev.Object.(runtime.Object); is {
			o.set(obj.DeepCopyObject())
		}
	case engine.ObjectGone:
		if obj, is := cluster.EmptyObject(ev.Kind).(runtime.Object); is {
			o.drop(obj, ev.Key.Namespace, ev.Key.Name)
		}
	}
	return ev
}

// podOf returns the object of a version of a pod.
func podOf(rec *cluster.Pod) *v1.Pod {
	p := &v1.Pod{}
	if rec.Full != nil {
		p = rec.Full.DeepCopy()
	}
	p.Namespace, p.Name, p.UID, p.ResourceVersion = rec.Namespace, rec.Name, types.UID(rec.UID), rec.ResourceVersion
	p.CreationTimestamp = at(rec.Created)
	p.Spec.NodeName, p.Status.NominatedNodeName = rec.NodeName, rec.Nominated
	p.Status.Phase, p.Status.StartTime, p.Status.Conditions = v1.PodPending, nil, nil
	if rec.Start != 0 {
		start := at(rec.Start)
		p.Status.Phase, p.Status.StartTime = v1.PodRunning, &start
	}
	if rec.Terminating {
		gone := at(rec.GoneBy)
		p.DeletionTimestamp = &gone
	}
	if rec.Condition.Reason != "" {
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse,
			Reason: rec.Condition.Reason, Message: rec.Condition.Message}}
	}
	return p
}

func at(t record.Time) metav1.Time { return metav1.NewTime(time.Unix(0, int64(t)).UTC()) }

// nodeOf returns the object of a version of a node.
func nodeOf(rec *cluster.Node) *v1.Node {
	n := &v1.Node{}
	if rec.Full != nil {
		n = rec.Full.DeepCopy()
	}
	n.Name, n.Labels, n.Spec.Taints, n.Spec.Unschedulable = rec.Name, rec.Labels, rec.Taints, rec.Unschedulable
	return n
}

// set creates or replaces an object, and waits until the informer of its type has it.
func (o *shown) set(obj runtime.Object) {
	m, gvr := o.identify(obj)
	o.version++
	m.SetResourceVersion(strconv.Itoa(o.version))
	tracker := o.client.Tracker()
	var err error
	if _, absent := tracker.Get(gvr, m.GetNamespace(), m.GetName()); absent != nil {
		err = tracker.Create(gvr, obj, m.GetNamespace())
	} else {
		err = tracker.Update(gvr, obj, m.GetNamespace())
	}
	if err != nil {
		o.t.Fatalf("showing %s %s to plugins: %v", gvr.Resource, m.GetName(), err)
	}
	o.follow(obj, m, true)
}

// drop deletes an object. One that was never shown is none.
func (o *shown) drop(obj runtime.Object, namespace, name string) {
	m, gvr := o.identify(obj)
	m.SetNamespace(namespace)
	m.SetName(name)
	if o.client.Tracker().Delete(gvr, namespace, name) == nil {
		o.follow(obj, m, false)
	}
}

func (o *shown) identify(obj runtime.Object) (metav1.Object, schema.GroupVersionResource) {
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		o.t.Fatalf("showing %T to plugins: %v", obj, err)
	}
	gvr, _ := meta.UnsafeGuessKindToResource(kinds[0])
	return obj.(metav1.Object), gvr
}

// followFor bounds the wait for an informer.
const followFor = 10 * time.Second

// follow waits until the informer of an object's type, if a plugin has requested one, has the object or has lost it.
func (o *shown) follow(obj runtime.Object, m metav1.Object, there bool) {
	if !o.started[reflect.TypeOf(obj)] {
		return
	}
	store := o.informers.InformerFor(obj, nil).GetStore()
	key, _ := cache.MetaNamespaceKeyFunc(m)
	for deadline := time.Now().Add(followFor); ; time.Sleep(20 * time.Microsecond) {
		got, found, _ := store.GetByKey(key)
		if found == there && (!there || got.(metav1.Object).GetResourceVersion() == m.GetResourceVersion()) {
			return
		}
		if time.Now().After(deadline) {
			o.t.Fatalf("the informer of %T does not show %s within %s", obj, key, followFor)
		}
	}
}
