// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/volume/ephemeral"
	"k8s.io/kubernetes/pkg/controller/volume/persistentvolume"
	"k8s.io/kubernetes/pkg/controller/volume/persistentvolume/config"
	"k8s.io/kubernetes/pkg/controller/volume/pvcprotection"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/hostpath"
	"k8s.io/kubernetes/pkg/volume/nfs"
)

// This file builds the controllers of volumes and their claims.

func buildEphemeralVolumes(ctx context.Context, e *environment, client identity) (loop, error) {
	core := e.informers.Core().V1()
	c, err := ephemeral.NewController(ctx, client, core.Pods(), core.PersistentVolumeClaims())
	if err != nil {
		return nil, err
	}
	return workers(c.Run, e.config.EphemeralVolumeController.ConcurrentEphemeralVolumeSyncs), nil
}

func buildVolumeBinder(ctx context.Context, e *environment, client identity) (loop, error) {
	core, settings := e.informers.Core().V1(), e.config.PersistentVolumeBinderController
	c, err := persistentvolume.NewController(ctx, persistentvolume.ControllerParameters{
		KubeClient:                client,
		SyncPeriod:                settings.PVClaimBinderSyncPeriod.Duration,
		VolumePlugins:             volumePlugins(settings.VolumeConfiguration),
		VolumeInformer:            core.PersistentVolumes(),
		ClaimInformer:             core.PersistentVolumeClaims(),
		ClassInformer:             e.informers.Storage().V1().StorageClasses(),
		PodInformer:               core.Pods(),
		NodeInformer:              core.Nodes(),
		EnableDynamicProvisioning: settings.VolumeConfiguration.EnableDynamicProvisioning,
	})
	if err != nil {
		return nil, fmt.Errorf("create the binder: %w", err)
	}
	return c.Run, nil
}

// volumePlugins returns the plugins that can recycle or delete a volume. They are those of kube-controller-manager that
// are left when plugins are dropped that can do neither: csi, fc and iscsi.
func volumePlugins(settings config.VolumeConfiguration) []volume.VolumePlugin {
	recycler := settings.PersistentVolumeRecyclerConfiguration
	return append(hostpath.ProbeVolumePlugins(volume.VolumeConfig{
		RecyclerMinimumTimeout:   int(recycler.MinimumTimeoutHostPath),
		RecyclerTimeoutIncrement: int(recycler.IncrementTimeoutHostPath),
		RecyclerPodTemplate:      volume.NewPersistentVolumeRecyclerPodTemplate(),
		ProvisioningEnabled:      settings.EnableHostPathProvisioning,
	}), nfs.ProbeVolumePlugins(volume.VolumeConfig{
		RecyclerMinimumTimeout:   int(recycler.MinimumTimeoutNFS),
		RecyclerTimeoutIncrement: int(recycler.IncrementTimeoutNFS),
		RecyclerPodTemplate:      volume.NewPersistentVolumeRecyclerPodTemplate(),
	})...)
}

func buildClaimProtection(ctx context.Context, e *environment, client identity) (loop, error) {
	core := e.informers.Core().V1()
	c, err := pvcprotection.NewPVCProtectionController(klog.FromContext(ctx), core.PersistentVolumeClaims(),
		core.Pods(), client)
	if err != nil {
		return nil, err
	}
	return workers(c.Run, 1), nil
}

func buildVolumeProtection(ctx context.Context, e *environment, client identity) (loop, error) {
	c, err := newVolumeProtection(ctx, e, client)
	if err != nil {
		return nil, err
	}
	return workers(c.Run, 1), nil
}
