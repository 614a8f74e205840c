// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/kube/call"
)

// kindOrder is the order in which the initial lists of objects are told: what others name comes first.
var kindOrder = []cluster.Kind{
	cluster.KindNamespace, cluster.KindService, cluster.KindController, cluster.KindReplicaSet, cluster.KindStatefulSet,
	cluster.KindStorageClass, cluster.KindCSIDriver, cluster.KindCSINode, cluster.KindCapacity, cluster.KindVolume, cluster.KindClaim,
	cluster.KindAttachment, cluster.KindDeviceClass, cluster.KindResourceSlice, cluster.KindDeviceTaint, cluster.KindDeviceClaim,
	cluster.KindBudget,
}

// source is where the objects of a kind come from.
func source(c kubernetes.Interface, kind cluster.Kind) (*cache.ListWatch, runtime.Object) {
	const all = metav1.NamespaceAll
	switch kind {
	case cluster.KindNamespace:
		api := c.CoreV1().Namespaces()
		return listWatch(api.List, api.Watch), &v1.Namespace{}
	case cluster.KindService:
		api := c.CoreV1().Services(all)
		return listWatch(api.List, api.Watch), &v1.Service{}
	case cluster.KindController:
		api := c.CoreV1().ReplicationControllers(all)
		return listWatch(api.List, api.Watch), &v1.ReplicationController{}
	case cluster.KindReplicaSet:
		api := c.AppsV1().ReplicaSets(all)
		return listWatch(api.List, api.Watch), &appsv1.ReplicaSet{}
	case cluster.KindStatefulSet:
		api := c.AppsV1().StatefulSets(all)
		return listWatch(api.List, api.Watch), &appsv1.StatefulSet{}
	case cluster.KindClaim:
		api := c.CoreV1().PersistentVolumeClaims(all)
		return listWatch(api.List, api.Watch), &v1.PersistentVolumeClaim{}
	case cluster.KindVolume:
		api := c.CoreV1().PersistentVolumes()
		return listWatch(api.List, api.Watch), &v1.PersistentVolume{}
	case cluster.KindStorageClass:
		api := c.StorageV1().StorageClasses()
		return listWatch(api.List, api.Watch), &storagev1.StorageClass{}
	case cluster.KindCSINode:
		api := c.StorageV1().CSINodes()
		return listWatch(api.List, api.Watch), &storagev1.CSINode{}
	case cluster.KindCSIDriver:
		api := c.StorageV1().CSIDrivers()
		return listWatch(api.List, api.Watch), &storagev1.CSIDriver{}
	case cluster.KindCapacity:
		api := c.StorageV1().CSIStorageCapacities(all)
		return listWatch(api.List, api.Watch), &storagev1.CSIStorageCapacity{}
	case cluster.KindAttachment:
		api := c.StorageV1().VolumeAttachments()
		return listWatch(api.List, api.Watch), &storagev1.VolumeAttachment{}
	case cluster.KindDeviceClaim:
		api := c.ResourceV1().ResourceClaims(all)
		return listWatch(api.List, api.Watch), &resourceapi.ResourceClaim{}
	case cluster.KindResourceSlice:
		api := c.ResourceV1().ResourceSlices()
		return listWatch(api.List, api.Watch), &resourceapi.ResourceSlice{}
	case cluster.KindDeviceClass:
		api := c.ResourceV1().DeviceClasses()
		return listWatch(api.List, api.Watch), &resourceapi.DeviceClass{}
	case cluster.KindDeviceTaint:
		api := c.ResourceV1beta2().DeviceTaintRules()
		return listWatch(api.List, api.Watch), &resourcev1beta2.DeviceTaintRule{}
	case cluster.KindBudget:
		api := c.PolicyV1().PodDisruptionBudgets(all)
		return listWatch(api.List, api.Watch), &policyv1.PodDisruptionBudget{}
	}
	panic(fmt.Sprintf("kube: no API is known for kind %s", kind))
}

func listWatch[L runtime.Object](
	list func(context.Context, metav1.ListOptions) (L, error), watches func(context.Context, metav1.ListOptions) (watch.Interface, error),
) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return list(ctx, o) },
		WatchFuncWithContext: watches,
	}
}

const (
	// forbiddenGrace is how long a kind may be forbidden before the scheduler goes on without it. An API server that has
	// just been started forbids what it allows a moment later, when it has read the roles.
	forbiddenGrace = 5 * time.Second
	// firstAbsence and longestAbsence bound the wait before a kind that is not served, or not to us, is asked for again.
	firstAbsence, longestAbsence = time.Second, time.Minute
)

// consequence says what a kind that cannot be read turns off.
func consequence(kind cluster.Kind) string {
	switch kind {
	case cluster.KindNamespace:
		return "namespace selectors of pod affinity match no namespace"
	case cluster.KindService, cluster.KindController, cluster.KindReplicaSet, cluster.KindStatefulSet:
		return "default spread constraints do not see the pods that it selects"
	case cluster.KindClaim, cluster.KindVolume:
		return "pods with persistent volume claims wait"
	case cluster.KindStorageClass:
		return "pods whose persistent volume claims are not bound wait"
	case cluster.KindCSINode:
		return "volumes of CSI drivers are not limited per node"
	case cluster.KindAttachment:
		return "volumes that are attached to a node, and of no pod there, do not count against its limit"
	case cluster.KindCSIDriver, cluster.KindCapacity:
		return "room for new volumes is not looked at"
	case cluster.KindDeviceClaim, cluster.KindResourceSlice, cluster.KindDeviceClass:
		return "pods that ask for devices wait"
	case cluster.KindDeviceTaint:
		return "rules that taint devices have no effect"
	case cluster.KindBudget:
		return "preemption knows no disruption budgets"
	}
	panic(fmt.Sprintf("kube: nobody reads kind %s", kind))
}

// patient wraps the source of a kind without which the scheduler can go on: one that this API server does not serve, or
// does not let us read. Such an answer is kept from the reflector, which would tell of it again and again, and the
// question is asked again, less and less often. absent is called, once for each call of patient, when the kind must
// count as listed. ctx ends the asking: a reflector lists without a context of its own.
func patient(ctx context.Context, lw *cache.ListWatch, a absence, absent func()) *cache.ListWatch {
	list, watches := lw.ListWithContextFunc, lw.WatchFuncWithContext
	p := &patience{ctx: ctx, absence: a, absent: absent}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (got runtime.Object, err error) {
			p.ask(func() error { got, err = list(ctx, o); return err })
			return got, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (got watch.Interface, err error) {
			p.ask(func() error { got, err = watches(ctx, o); return err })
			return got, err
		},
	}
}

// absence tells of a kind that cannot be read.
type absence struct {
	kind, so string // its name, and what it turns off
	// expected tells that nobody need hear of it.
	expected bool
}

// patience belongs to the goroutine of one reflector: its list and its watch follow each other.
type patience struct {
	ctx context.Context
	absence
	absent func()
	told   bool
}

// ask asks until the kind is there, or the answer is of another sort, or ctx ends.
func (p *patience) ask(do func() error) {
	wait := firstAbsence
	for waited := time.Duration(0); ; {
		err := do()
		forbidden := apierrors.IsForbidden(err)
		if !forbidden && !apierrors.IsNotFound(err) {
			if p.told && err == nil {
				klog.FromContext(p.ctx).Info("Objects of a kind can be read now", "kind", p.kind)
				p.told = false
			}
			return
		}
		if !p.told && (!forbidden || waited >= forbiddenGrace) {
			level := 0
			if p.expected {
				level = 2
			}
			klog.FromContext(p.ctx).V(level).Info("Objects of a kind cannot be read; going on as if there were none", "kind", p.kind,
				"so", p.so, "err", err)
			p.told = true
			p.absent()
		}
		if !call.Sleep(p.ctx, wait) {
			return
		}
		waited += wait
		wait = min(2*wait, longestAbsence)
	}
}
