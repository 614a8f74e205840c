// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// reads lists the kinds of objects besides pods and nodes that a default plugin reads: plugin -> kinds.
var reads = map[string][]cluster.Kind{
	config.NodeResourcesFit:   {cluster.KindDeviceClass}, // a class may back an extended resource
	config.InterPodAffinity:   {cluster.KindNamespace},
	config.VolumeRestrictions: {cluster.KindClaim},
	config.VolumeBinding: {cluster.KindClaim, cluster.KindVolume, cluster.KindStorageClass, cluster.KindCSINode,
		cluster.KindCSIDriver,
		cluster.KindCapacity},
	config.VolumeZone: {cluster.KindClaim, cluster.KindVolume, cluster.KindStorageClass},
	config.NodeVolumeLimits: {cluster.KindClaim, cluster.KindVolume, cluster.KindStorageClass, cluster.KindCSINode,
		cluster.KindCSIDriver,
		cluster.KindAttachment},
	config.DefaultPreemption: {cluster.KindBudget},
	config.DynamicResources: {cluster.KindDeviceClaim, cluster.KindResourceSlice, cluster.KindDeviceClass,
		cluster.KindDeviceTaint},
}

// owners are what PodTopologySpread takes the selectors of default constraints from.
var owners = []cluster.Kind{cluster.KindService, cluster.KindController, cluster.KindReplicaSet,
	cluster.KindStatefulSet}

// Kinds returns the kinds of objects besides pods and nodes that the plugins of a configuration read, sorted. No
// others are watched. made is what EngineConfig returned for the configuration.
func (p Plugins) Kinds(c config.Resolved, made engine.Config) []cluster.Kind {
	var kinds []cluster.Kind
	for _, profile := range c.Profiles {
		for _, names := range profile.Enabled { // order: sorted below
			for _, name := range names {
				kinds = append(kinds, reads[name]...)
				if name == config.PodTopologySpread && spreadsByDefault(profile) {
					kinds = append(kinds, owners...)
				}
			}
		}
	}
	for _, profile := range made.Profiles {
		for _, w := range profile.Wakers { // each custom plugin is one of them
			if p.isCustom(w.Name()) {
				kinds = append(kinds, plugin.KindsOf(w)...)
			}
		}
	}
	kinds = slices.DeleteFunc(kinds, func(k cluster.Kind) bool {
		return k == cluster.KindGang || // see gangRules
			k == cluster.KindDeviceTaint && !c.Features.DRADeviceTaintRules
	})
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// checkKinds returns what is wrong with the kinds of objects that a custom plugin declares.
func checkKinds(pl plugin.Plugin) error {
	kinds := plugin.KindsOf(pl)
	for _, kind := range kinds {
		if cluster.EmptyObject(kind) == nil {
			return fmt.Errorf("plugin %q reads objects of an unknown kind %q", pl.Name(), kind)
		}
	}
	if len(kinds) == 0 && plugin.ReadsOf(pl)&plugin.ReadsObjects != 0 {
		return fmt.Errorf("plugin %q declares that it reads objects and names no kind of them, so none would be "+
			"watched; implement plugin.ObjectReader", pl.Name())
	}
	return nil
}

// GangRules returns which declarations of gangs count with a configuration.
func GangRules(c config.Resolved) convert.GangRules {
	rules := gangRules(c.Kumiki.Gangs, c.Features)
	if hold := c.Kumiki.Gangs.Hold; hold.Backfill == config.On && hold.For > 0 && evictsForGangs(c) {
		rules.Evictable, rules.EvictableClasses = true, hold.EvictableClasses
	}
	return rules
}

// evictsForGangs reports whether all profiles evict pods for gangs: if not, a pod that may be evicted could delay the
// start of a gang for which it is not evicted.
func evictsForGangs(c config.Resolved) bool {
	return !slices.ContainsFunc(c.Profiles, func(p config.Profile) bool {
		return !p.Runs(config.PostFilter, config.DefaultPreemption) ||
			!p.Runs(config.PodGroupPostFilter, config.DefaultPreemption)
	})
}

// gangRules returns which declarations of gangs count.
func gangRules(g config.Gangs, f config.Features) convert.GangRules {
	return convert.GangRules{
		Group: g.PodGroup != config.Off, GroupIfRead: g.PodGroup == config.Auto,
		Annotation: g.Annotation == config.On, Sigs: g.Sigs == config.On, Volcano: g.Volcano == config.On,
		Pfnet: g.Pfnet, GroupPolicy: f.PodGroupPreemptionPolicy,
	}
}

func spreadsByDefault(p config.Profile) bool {
	args := p.Args.PodTopologySpread
	return args.DefaultingType != "List" || len(args.DefaultConstraints) > 0
}
