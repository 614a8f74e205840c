// SPDX-License-Identifier: Apache-2.0

package intake

import (
	v1 "k8s.io/api/core/v1"
	csitranslation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// migratedKept bounds the volumes whose translation is remembered.
const migratedKept = 8192

// Migration tells plugins what volumes of in-tree kinds have become, as csi-translation-lib has it. It belongs to one
// goroutine.
type Migration struct {
	lib csitranslation.CSITranslator
	log klog.Logger
	// volumes remembers translations, of volumes that have migrated only: who asks keeps what it made of a translation
	// by its address.
	volumes map[*v1.PersistentVolume]plugin.Migrated // volume -> what it has become
}

var _ plugin.Migration = (*Migration)(nil)

// NewMigration returns a Migration.
func NewMigration(log klog.Logger) *Migration {
	return &Migration{lib: csitranslation.New(), log: log, volumes: map[*v1.PersistentVolume]plugin.Migrated{}}
}

// Provisioner is the CSI driver that took over from an in-tree plugin.
func (m *Migration) Provisioner(name string) (driver string, ok bool) {
	if !m.lib.IsMigratableIntreePluginByName(name) {
		return "", false
	}
	driver, err := m.lib.GetCSINameFromInTreeName(name)
	return driver, err == nil
}

// Inline is what a volume in a pod has become.
func (m *Migration) Inline(v *v1.Volume, namespace string) (plugin.Migrated, bool) {
	if !m.lib.IsInlineMigratable(v) {
		return plugin.Migrated{}, false
	}
	return m.migrated(nil, v, func() (*v1.PersistentVolume, error) {
		return m.lib.TranslateInTreeInlineVolumeToCSI(m.log, v, namespace)
	})
}

// Volume is what a PersistentVolume has become.
func (m *Migration) Volume(pv *v1.PersistentVolume) (plugin.Migrated, bool) {
	if was, known := m.volumes[pv]; known {
		return was, true
	}
	if !m.lib.IsPVMigratable(pv) {
		return plugin.Migrated{}, false
	}
	is, ok := m.migrated(pv, nil, func() (*v1.PersistentVolume, error) {
		return m.lib.TranslateInTreePVToCSI(m.log, pv)
	})
	if len(m.volumes) >= migratedKept {
		clear(m.volumes)
	}
	m.volumes[pv] = is
	return is, ok
}

func (m *Migration) migrated(pv *v1.PersistentVolume, v *v1.Volume,
	translate func() (*v1.PersistentVolume, error)) (plugin.Migrated, bool) {
	name, err := m.lib.GetInTreePluginNameFromSpec(pv, v)
	if err != nil {
		return plugin.Migrated{}, false
	}
	out := plugin.Migrated{Plugin: name}
	out.Driver, out.Err = m.lib.GetCSINameFromInTreeName(name)
	if out.Err == nil {
		out.PV, out.Err = translate()
	}
	if out.Err != nil {
		out.PV = nil
	}
	return out, true
}
