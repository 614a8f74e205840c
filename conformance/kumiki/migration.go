// SPDX-License-Identifier: Apache-2.0

package kumiki

import (
	v1 "k8s.io/api/core/v1"
	csitrans "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// migration is plugin.Migration by upstream's library.
type migration struct{ lib csitrans.CSITranslator }

func (m migration) Provisioner(name string) (driver string, ok bool) {
	driver, err := m.lib.GetCSINameFromInTreeName(name)
	return driver, err == nil
}

func (m migration) Inline(v *v1.Volume, namespace string) (plugin.Migrated, bool) {
	if !m.lib.IsInlineMigratable(v) {
		return plugin.Migrated{}, false
	}
	pv, err := m.lib.TranslateInTreeInlineVolumeToCSI(klog.Background(), v, namespace)
	return m.migrated(nil, v, pv, err), true
}

func (m migration) Volume(pv *v1.PersistentVolume) (plugin.Migrated, bool) {
	if !m.lib.IsPVMigratable(pv) {
		return plugin.Migrated{}, false
	}
	as, err := m.lib.TranslateInTreePVToCSI(klog.Background(), pv)
	return m.migrated(pv, nil, as, err), true
}

func (m migration) migrated(pv *v1.PersistentVolume, v *v1.Volume, as *v1.PersistentVolume, err error) plugin.Migrated {
	name, _ := m.lib.GetInTreePluginNameFromSpec(pv, v)
	driver, _ := m.lib.GetCSINameFromInTreeName(name)
	return plugin.Migrated{Plugin: name, Driver: driver, PV: as, Err: err}
}

// withMigration hands the library to the plugins that ask for it, unless whoever made
// them has done so.
func withMigration(p engine.Profile) engine.Profile {
	fresh := map[string]plugin.Plugin{} // name -> the plugin that knows the library
	know := func(pl plugin.Plugin) plugin.Plugin {
		asks, ok := pl.(plugin.Migrating)
		if !ok {
			return pl
		}
		if fresh[pl.Name()] == nil {
			fresh[pl.Name()] = asks.WithMigration(migration{csitrans.New()})
		}
		return fresh[pl.Name()]
	}
	for i, pl := range p.Filters {
		p.Filters[i] = know(pl).(plugin.Filter)
	}
	for i, pl := range p.Wakers {
		p.Wakers[i] = know(pl).(plugin.Waker)
	}
	return p
}
