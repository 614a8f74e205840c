// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-helpers/nodedeclaredfeatures"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

func controllerOf(p *v1.Pod) cluster.Controller {
	ref := metav1.GetControllerOfNoCopy(p)
	if ref == nil {
		return cluster.Controller{}
	}
	switch ref.Kind {
	case "ReplicationController", "ReplicaSet", "StatefulSet":
		return cluster.Controller{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name}
	}
	return cluster.Controller{}
}

// volumes returns the volumes that filters read, without the fields that they do not read.
func volumes(p *v1.Pod) []v1.Volume {
	var kept []v1.Volume
	for i := range p.Spec.Volumes {
		from := &p.Spec.Volumes[i].VolumeSource
		to := v1.VolumeSource{
			PersistentVolumeClaim: from.PersistentVolumeClaim,
			GCEPersistentDisk:     from.GCEPersistentDisk,
			AWSElasticBlockStore:  from.AWSElasticBlockStore,
			AzureDisk:             from.AzureDisk,
			AzureFile:             from.AzureFile,
			VsphereVolume:         from.VsphereVolume,
		}
		if from.Ephemeral != nil {
			to.Ephemeral = &v1.EphemeralVolumeSource{}
		}
		if from.ISCSI != nil {
			disk := *from.ISCSI
			disk.SecretRef = nil
			to.ISCSI = &disk
		}
		if from.RBD != nil {
			disk := *from.RBD
			disk.SecretRef = nil
			to.RBD = &disk
		}
		if from.Cinder != nil {
			disk := *from.Cinder
			disk.SecretRef = nil
			to.Cinder = &disk
		}
		if from.PortworxVolume != nil {
			disk := *from.PortworxVolume
			to.PortworxVolume = &disk
		}
		if from.CSI != nil {
			disk := *from.CSI
			disk.NodePublishSecretRef, disk.VolumeAttributes = nil, nil
			to.CSI = &disk
		}
		if to != (v1.VolumeSource{}) {
			kept = append(kept, v1.Volume{Name: p.Spec.Volumes[i].Name, VolumeSource: to})
		}
	}
	return kept
}

// devices returns nil for a pod without claims whose containers request nothing that a device class could back.
func devices(p *v1.Pod) *cluster.Devices {
	if len(p.Spec.ResourceClaims) == 0 && !asksForExtended(p.Spec.InitContainers) &&
		!asksForExtended(p.Spec.Containers) {
		return nil
	}
	return &cluster.Devices{Claims: p.Spec.ResourceClaims, Init: trimmed(p.Spec.InitContainers),
		Main: trimmed(p.Spec.Containers)}
}

func asksForExtended(containers []v1.Container) bool {
	return slices.ContainsFunc(containers, func(c v1.Container) bool {
		for name := range c.Resources.Requests { // order: any match suffices
			switch name {
			case v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage:
			default:
				return true
			}
		}
		return false
	})
}

func trimmed(containers []v1.Container) []v1.Container {
	var out []v1.Container
	for i := range containers {
		c := &containers[i]
		out = append(out, v1.Container{Name: c.Name, RestartPolicy: c.RestartPolicy, Resources: c.Resources})
	}
	return out
}

// release is the version of Kubernetes whose features are queried.
var release = version.MustParseSemantic("1.37.1")

// neededFeatures returns the declared features that a node must have.
func neededFeatures(p *v1.Pod) (names []string, problem string) {
	info := &nodedeclaredfeatures.PodInfo{Spec: &p.Spec}
	need, err := nodedeclaredfeatures.DefaultFramework.InferForPodScheduling(info, release)
	if err != nil {
		return nil, err.Error()
	}
	if need.IsEmpty() {
		return nil, ""
	}
	names, err = nodedeclaredfeatures.DefaultFramework.Unmap(need)
	if err != nil {
		return nil, err.Error()
	}
	return slices.Sorted(slices.Values(names)), ""
}
