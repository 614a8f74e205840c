// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"

	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// Objects simulates the API server: an informer factory whose informers receive objects
// directly and call their handlers before Set or Delete returns. No goroutine runs, so what
// upstream's caches hold is known at every moment.
type Objects struct {
	Factory informers.SharedInformerFactory
	// byKind: kind -> the informer that the factory gives out.
	byKind map[string]*informer
	// claims and slices are upstream's views of resource claims and slices; nil
	// without devices.
	claims *assumecache.AssumeCache
	slices *tracker.Tracker
}

// kinds are one empty object of each kind that upstream's plugins list.
var kinds = []scenario.APIObject{
	&v1.Pod{}, &v1.Node{}, &v1.Namespace{}, &v1.Service{}, &v1.ReplicationController{}, &appsv1.ReplicaSet{}, &appsv1.StatefulSet{},
	&v1.PersistentVolumeClaim{}, &v1.PersistentVolume{}, &storagev1.StorageClass{}, &storagev1.CSINode{}, &storagev1.CSIDriver{},
	&storagev1.CSIStorageCapacity{}, &storagev1.VolumeAttachment{}, &resourceapi.ResourceClaim{}, &resourceapi.ResourceSlice{},
	&resourceapi.DeviceClass{}, &resourceapi.DeviceTaintRule{}, &schedulingv1beta1.PodGroup{},
	&policyv1.PodDisruptionBudget{},
}

// NewObjects makes an empty API server.
func NewObjects() *Objects {
	o := &Objects{Factory: informers.NewSharedInformerFactory(nil, 0), byKind: make(map[string]*informer, len(kinds))}
	for _, k := range kinds {
		in := &informer{indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
		o.byKind[scenario.KindOf(k)] = in
		o.Factory.InformerFor(k, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return in })
	}
	return o
}

// Set adds or updates an object.
func (o *Objects) Set(obj scenario.APIObject) { o.informer(obj).set(obj) }

// Delete removes an object; one that is not there is ignored.
func (o *Objects) Delete(ref scenario.ObjectRef) {
	in := o.byKind[ref.Kind]
	if in == nil {
		panic(fmt.Sprintf("upstream has no informer of %s", ref.Kind))
	}
	key := ref.Name
	if ref.Namespace != "" {
		key = ref.Namespace + "/" + ref.Name
	}
	in.remove(key)
}

// Get returns an object as last set.
func (o *Objects) Get(ref scenario.ObjectRef) (scenario.APIObject, bool) {
	key := ref.Name
	if ref.Namespace != "" {
		key = ref.Namespace + "/" + ref.Name
	}
	obj, found, err := o.byKind[ref.Kind].indexer.GetByKey(key)
	if err != nil || !found {
		return nil, false
	}
	return obj.(scenario.APIObject), true
}

func (o *Objects) informer(obj runtime.Object) *informer {
	in := o.byKind[scenario.KindOf(obj)]
	if in == nil {
		panic(fmt.Sprintf("upstream has no informer of %T", obj))
	}
	return in
}

// informer is the part of cache.SharedIndexInformer that upstream's scheduler
// uses. What it does not use is absent on purpose and would crash.
type informer struct {
	cache.SharedIndexInformer
	indexer  cache.Indexer
	handlers []cache.ResourceEventHandler
}

func (in *informer) set(obj scenario.APIObject) {
	old, found, err := in.indexer.Get(obj)
	if err == nil {
		err = in.indexer.Update(obj)
	}
	if err != nil {
		panic(fmt.Sprintf("upstream's indexer: %v", err))
	}
	for _, h := range in.handlers {
		if found {
			h.OnUpdate(old, obj)
		} else {
			h.OnAdd(obj, false)
		}
	}
}

func (in *informer) remove(key string) {
	old, found, err := in.indexer.GetByKey(key)
	if err == nil && found {
		err = in.indexer.Delete(old)
	}
	if err != nil {
		panic(fmt.Sprintf("upstream's indexer: %v", err))
	}
	if !found {
		return
	}
	for _, h := range in.handlers {
		h.OnDelete(old)
	}
}

func (in *informer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	in.handlers = append(in.handlers, h)
	for _, obj := range in.indexer.List() {
		h.OnAdd(obj, true)
	}
	return synced{}, nil
}

func (in *informer) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return in.AddEventHandler(h)
}

func (in *informer) AddEventHandlerWithOptions(h cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return in.AddEventHandler(h)
}

func (in *informer) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }
func (in *informer) GetStore() cache.Store                                           { return in.indexer }
func (in *informer) GetIndexer() cache.Indexer                                       { return in.indexer }
func (in *informer) AddIndexers(x cache.Indexers) error                              { return in.indexer.AddIndexers(x) }
func (in *informer) HasSynced() bool                                                 { return true }
func (in *informer) HasSyncedChecker() cache.DoneChecker                             { return synced{} }

// synced is always done: there is nothing to wait for.
type synced struct{}

func (synced) HasSynced() bool                       { return true }
func (s synced) HasSyncedChecker() cache.DoneChecker { return s }
func (synced) Name() string                          { return "objects" }
func (synced) Done() <-chan struct{}                 { return closed }

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
