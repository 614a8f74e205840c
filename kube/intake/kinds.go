// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// kindOrder is the order in which the initial lists become events: objects that others name come first.
var kindOrder = []cluster.Kind{
	cluster.KindNamespace, cluster.KindService, cluster.KindController, cluster.KindReplicaSet, cluster.KindStatefulSet,
	cluster.KindStorageClass, cluster.KindCSIDriver, cluster.KindCSINode, cluster.KindCapacity, cluster.KindVolume,
	cluster.KindClaim, cluster.KindAttachment, cluster.KindDeviceClass, cluster.KindResourceSlice,
	cluster.KindDeviceTaint, cluster.KindDeviceClaim,
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
		api := c.ResourceV1().DeviceTaintRules()
		return listWatch(api.List, api.Watch), &resourceapi.DeviceTaintRule{}
	case cluster.KindBudget:
		api := c.PolicyV1().PodDisruptionBudgets(all)
		return listWatch(api.List, api.Watch), &policyv1.PodDisruptionBudget{}
	}
	panic(fmt.Sprintf("kube: no API is known for kind %s", kind))
}

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
	panic(fmt.Sprintf("kube: no store reads kind %s", kind))
}
