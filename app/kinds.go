// SPDX-License-Identifier: Apache-2.0

package app

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
)

// reads lists the kinds of objects besides pods and nodes that a plugin reads: plugin -> kinds.
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
	config.DynamicResources:  {cluster.KindDeviceClaim, cluster.KindResourceSlice, cluster.KindDeviceClass},
}

// owners are what PodTopologySpread takes the selectors of default constraints from.
var owners = []cluster.Kind{cluster.KindService, cluster.KindController, cluster.KindReplicaSet,
	cluster.KindStatefulSet}

// Kinds returns the kinds of objects besides pods and nodes that the plugins of a configuration read, sorted. No
// others are watched.
func Kinds(c config.Resolved) []cluster.Kind {
	var kinds []cluster.Kind
	for _, p := range c.Profiles {
		for _, names := range p.Enabled { // order: sorted below
			for _, name := range names {
				kinds = append(kinds, reads[name]...)
				if name == config.PodTopologySpread && spreadsByDefault(p) {
					kinds = append(kinds, owners...)
				}
			}
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// gangRules returns which declarations of gangs count.
func gangRules(g config.Gangs) convert.GangRules {
	return convert.GangRules{
		Group: g.PodGroup != config.Off, GroupIfRead: g.PodGroup == config.Auto,
		Annotation: g.Annotation == config.On, Sigs: g.Sigs == config.On, Volcano: g.Volcano == config.On,
		Pfnet: g.Pfnet,
	}
}

func spreadsByDefault(p config.Profile) bool {
	args := p.Args.PodTopologySpread
	return args.DefaultingType != "List" || len(args.DefaultConstraints) > 0
}
