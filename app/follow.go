// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"reflect"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// follower makes decisions wait for the pod informer of plugins. Upstream fills its queue from that informer, so
// plugins find there each pod that is decided; here the engine has a watch of its own, which may be ahead.
//
// Rejected: to give the plugins' informer what the engine's watch brings. An informer delivers on goroutines of its
// own, so it could still be behind.
type follower struct {
	pods  atomic.Pointer[podInformer] // nil if no plugin requested it, or before it is synchronized
	sleep func(time.Duration)
	late  atomic.Int64 // decisions that did not wait any longer
}

// podInformer is the part of an informer that a follower reads.
type podInformer struct {
	store cache.Store
	last  func() string // the newest version that was received
}

const (
	followEvery = 200 * time.Microsecond
	// followFor bounds the wait. Watches of one API server differ by milliseconds.
	followFor = time.Second
)

func newFollower() *follower { return &follower{sleep: time.Sleep} }

// start begins to follow, if a plugin requested pods from a factory whose informers are synchronized.
func (f *follower) start(ctx context.Context, factory informers.SharedInformerFactory) {
	for kind := range factory.WaitForCacheSyncWithContext(ctx).Synced { // order: at most one matches
		if kind == reflect.TypeFor[*v1.Pod]() {
			informer := factory.InformerFor(&v1.Pod{}, nil)
			f.pods.Store(&podInformer{informer.GetStore(), informer.LastSyncResourceVersion})
		}
	}
}

// await returns once the informer shows a pod in a version, or has shown it.
func (f *follower) await(p *v1.Pod) {
	informer := f.pods.Load()
	if informer == nil {
		return
	}
	for waited := time.Duration(0); !informer.shows(p); waited += followEvery {
		if waited >= followFor {
			f.late.Add(1)
			klog.Background().Info("The informers of plugins are behind; a pod is decided without them", "pod",
				klog.KObj(p), "waited", waited)
			return
		}
		f.sleep(followEvery)
	}
}

// shows reports whether the store has a pod in a version or a newer one, or has lost it after that.
func (i *podInformer) shows(p *v1.Pod) bool {
	version := i.last()
	if obj, found, err := i.store.GetByKey(p.Namespace + "/" + p.Name); err == nil && found {
		version = obj.(metav1.Object).GetResourceVersion()
	}
	order, err := resourceversion.CompareResourceVersion(version, p.ResourceVersion)
	return err != nil || order >= 0 // versions that cannot be compared are no reason to wait
}
