// SPDX-License-Identifier: Apache-2.0

package plugin

import v1 "k8s.io/api/core/v1"

// Migration knows what volumes of in-tree kinds have become (upstream: csi-translation-lib). Its answers depend on its
// arguments alone, which are immutable: it may keep what it has worked out. It is called from the loop.
type Migration interface {
	// Provisioner is the CSI driver that took over from an in-tree plugin; ok is false for any other name.
	Provisioner(plugin string) (driver string, ok bool)
	// Inline is what a volume in a pod of this namespace has become; ok is false when its kind has not migrated.
	Inline(v *v1.Volume, namespace string) (m Migrated, ok bool)
	// Volume is what a PersistentVolume has become; ok is false when its kind has not migrated, as CSI volumes have
	// not.
	Volume(pv *v1.PersistentVolume) (m Migrated, ok bool)
}

// Migrated is what a volume of an in-tree kind has become.
type Migrated struct {
	// Plugin is the in-tree plugin, say kubernetes.io/aws-ebs; Driver is the CSI driver that took over.
	Plugin, Driver string
	// PV is the volume as that driver's: CSI source and node affinity. It is nil when Err is set.
	PV *v1.PersistentVolume
	// Err is why the volume cannot be translated.
	Err error
}

// Migrating is a plugin that asks what volumes of in-tree kinds have become.
type Migrating interface {
	Plugin
	// WithMigration returns the plugin with m in place of what it knew.
	WithMigration(m Migration) Plugin
}
