// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// NodeVolumeLimits keeps a pod off nodes to which its volumes cannot be attached any more, because a CSI driver there
// has as many as it can take, or is missing (upstream: plugins/nodevolumelimits).
//
// Volumes of in-tree kinds count for the CSI driver that took over from them. Which driver that is, and what such a
// volume is called there, comes from a Migration, which the builder of the profile sets once by WithMigration:
// the core does not import csi-translation-lib. Without one, volumes of in-tree kinds are not counted. The objects in
// the store stay as the API server has them.
type NodeVolumeLimits struct {
	migration plugin.Migration
	needed    neededDrivers
	nodes     csiColumn
}

// NodeVolumeLimitsArgs are the arguments of NodeVolumeLimits.
type NodeVolumeLimitsArgs struct {
	// NeedDrivers rejects nodes without a driver whose CSIDriver has preventPodSchedulingIfMissing (upstream: the gate
	// VolumeLimitScaling).
	NeedDrivers bool
}

// DefaultNodeVolumeLimitsArgs are upstream's.
func DefaultNodeVolumeLimitsArgs() NodeVolumeLimitsArgs {
	return NodeVolumeLimitsArgs{NeedDrivers: true}
}

// NodeVolumeLimitsName is its name in configurations.
const NodeVolumeLimitsName = "NodeVolumeLimits"

// countedPlugins are the in-tree plugins whose volumes count for the CSI driver that took over (upstream:
// nodevolumelimits/utils.go). Others that have migrated, Azure files and vSphere disks, do not.
var countedPlugins = map[string]bool{ // plugin -> counts
	"kubernetes.io/aws-ebs":         true,
	"kubernetes.io/portworx-volume": true,
	"kubernetes.io/gce-pd":          true,
	"kubernetes.io/azure-disk":      true,
	"kubernetes.io/cinder":          true,
}

// NewNodeVolumeLimits returns the plugin with its default arguments; a nil Migration means that no volume has migrated.
func NewNodeVolumeLimits(m plugin.Migration) *NodeVolumeLimits {
	pl, err := MakeNodeVolumeLimits(DefaultNodeVolumeLimitsArgs())
	if err != nil {
		panic(fmt.Sprintf("volumes: %s with its default arguments: %v", NodeVolumeLimitsName, err))
	}
	pl.migration = m
	return pl
}

// MakeNodeVolumeLimits returns the plugin without a Migration. The error is nil.
func MakeNodeVolumeLimits(args NodeVolumeLimitsArgs) (*NodeVolumeLimits, error) {
	pl := &NodeVolumeLimits{needed: noDriver}
	if args.NeedDrivers {
		pl.needed = driversThatPrevent
	}
	return pl, nil
}

// Name is NodeVolumeLimitsName.
func (*NodeVolumeLimits) Name() string { return NodeVolumeLimitsName }

// WithMigration returns a plugin that asks m.
func (pl *NodeVolumeLimits) WithMigration(m plugin.Migration) plugin.Plugin {
	return &NodeVolumeLimits{migration: m, needed: pl.needed}
}

// Reads declares claims, volumes, attachments and what drivers allow.
func (*NodeVolumeLimits) Reads() plugin.Reads {
	return plugin.ReadsNode | plugin.ReadsPods | plugin.ReadsObjects | plugin.ReadsWholePod
}

// PrepareFilter has nothing to say about pods none of whose volumes a CSI driver would attach.
func (pl *NodeVolumeLimits) PrepareFilter(s cluster.Snapshot, p *cluster.Pod) plugin.FilterPlan {
	if !pl.attaches(p) {
		return plugin.FilterPlan{}
	}
	f := &limitFilter{pl: pl, plain: attaching{pl, s, false}.demand(p), csi: attaching{pl, s, true}.demand(p)}
	if f.plain.isNone() && f.csi.isNone() {
		return plugin.FilterPlan{}
	}
	return plugin.FilterPlan{Filter: f}
}

// attaches reports whether a pod has a volume that a CSI driver may have to attach.
func (pl *NodeVolumeLimits) attaches(p *cluster.Pod) bool {
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		if v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			return true
		}
		if _, ok := pl.inline(v, p.Namespace); ok {
			return true
		}
	}
	return false
}

func (pl *NodeVolumeLimits) inline(v *v1.Volume, namespace string) (plugin.Migrated, bool) {
	if pl.migration == nil {
		return plugin.Migrated{}, false
	}
	return pl.migration.Inline(v, namespace)
}

// attachable is one volume as a driver knows it.
type attachable struct{ driver, handle string }

// attaching determines what drivers attach to the nodes of a snapshot that have a CSINode object, or to those that have
// none.
type attaching struct {
	pl         *NodeVolumeLimits
	s          cluster.Snapshot
	hasCSINode bool
}

// demand is what a pending pod wants attached to a node.
type demand struct {
	volumes map[attachable]struct{}
	// perDriver counts the volumes; driver -> number.
	perDriver map[string]int64
	// needed are the drivers of the volumes that a node must have, by name: their CSIDriver objects say so.
	needed []string
	// missing, when not empty, is why no node can take the pod: a claim does not exist. err fails the attempt.
	missing string
	err     error
}

func (d *demand) isNone() bool { return len(d.volumes) == 0 && d.missing == "" && d.err == nil }

// demand returns what a pending pod wants attached.
func (at attaching) demand(p *cluster.Pod) demand {
	d := demand{volumes: map[attachable]struct{}{}, perDriver: map[string]int64{}}
	err := at.eachVolume(p, func(a attachable) {
		if _, known := d.volumes[a]; !known {
			d.volumes[a] = struct{}{}
			d.perDriver[a.driver]++
		}
	}, func(claim string) error {
		d.missing = fmt.Sprintf("looking up PVC %s/%s: %s", p.Namespace, claim,
			notFound("persistentvolumeclaim", claim))
		return errClaimMissing
	})
	if err != nil && !errors.Is(err, errClaimMissing) {
		d.err = err
	}
	d.needed = at.pl.needed(at.s, d.perDriver)
	return d
}

// neededDrivers returns which of the drivers of a pod's volumes a node must have, by name.
type neededDrivers func(s cluster.Snapshot, perDriver map[string]int64) []string

// noDriver lets a pod on nodes without its drivers.
func noDriver(cluster.Snapshot, map[string]int64) []string { return nil }

// driversThatPrevent returns the drivers whose CSIDriver has preventPodSchedulingIfMissing.
func driversThatPrevent(s cluster.Snapshot, perDriver map[string]int64) []string {
	var needed []string
	for driver := range perDriver { // order: sorted below
		of, ok := cluster.FindAPI[*storagev1.CSIDriver](s, "", driver)
		if ok && of.Spec.PreventPodSchedulingIfMissing != nil && *of.Spec.PreventPodSchedulingIfMissing {
			needed = append(needed, driver)
		}
	}
	slices.Sort(needed)
	return needed
}

// absent returns the index of the first needed driver that a node with this CSINode object, nil for none, does not
// have; -1 if it has all.
func (d *demand) absent(csi *storagev1.CSINode) int {
	return slices.IndexFunc(d.needed, func(needed string) bool {
		return csi == nil || !slices.ContainsFunc(csi.Spec.Drivers, func(has storagev1.CSINodeDriver) bool {
			return has.Name == needed
		})
	})
}

var errClaimMissing = errors.New("a claim does not exist")

// notFound is how the API machinery words that an object does not exist.
func notFound(resource, name string) string { return fmt.Sprintf("%s %q not found", resource, name) }

// eachVolume calls found for the volumes of a pod that a driver attaches to a node, repeats included. What missing
// returns for a claim that does not exist ends the search, if it is an error.
func (at attaching) eachVolume(p *cluster.Pod, found func(attachable), missing func(claim string) error) error {
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		var name string
		switch {
		case v.PersistentVolumeClaim != nil:
			name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			name = p.EphemeralClaim(v.Name)
		default:
			if err := at.inlineVolume(v, p, found); err != nil {
				return err
			}
			continue
		}
		if name == "" {
			return errors.New("PersistentVolumeClaim had no name")
		}
		claim, ok := cluster.FindAPI[*v1.PersistentVolumeClaim](at.s, p.Namespace, name)
		if !ok {
			if err := missing(name); err != nil {
				return err
			}
			continue
		}
		if v.Ephemeral != nil && v.PersistentVolumeClaim == nil && !madeFor(claim, p) {
			return notMadeFor(claim, p)
		}
		if a, ok := at.claimed(claim); ok {
			found(a)
		}
	}
	return nil
}

// isBroken reports whether eachVolume fails for a pod on a node with a CSINode object, where missing claims are passed
// over. It looks at special volumes only (see cluster.Snapshot.VolumesOn).
func (pl *NodeVolumeLimits) isBroken(s cluster.Snapshot, p *cluster.Pod) bool {
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		switch {
		case v.PersistentVolumeClaim != nil:
			if v.PersistentVolumeClaim.ClaimName == "" {
				return true
			}
		case v.Ephemeral != nil:
			claim, ok := cluster.FindAPI[*v1.PersistentVolumeClaim](s, p.Namespace, p.EphemeralClaim(v.Name))
			if ok && !madeFor(claim, p) {
				return true
			}
		default:
			if (attaching{pl, s, true}).inlineVolume(v, p, func(attachable) {}) != nil {
				return true
			}
		}
	}
	return false
}

// madeFor reports whether a claim was made for a generic ephemeral volume of p.
func madeFor(claim *v1.PersistentVolumeClaim, p *cluster.Pod) bool {
	for _, owner := range claim.OwnerReferences {
		if owner.Controller != nil && *owner.Controller {
			return string(owner.UID) == string(p.UID) && claim.Namespace == p.Namespace
		}
	}
	return false
}

func notMadeFor(claim *v1.PersistentVolumeClaim, p *cluster.Pod) error {
	return fmt.Errorf("PVC %s/%s was not created for pod %s/%s (pod is not owner)", claim.Namespace, claim.Name,
		p.Namespace, p.Name)
}

// inlineVolume is eachVolume for a volume without a claim.
func (at attaching) inlineVolume(v *v1.Volume, p *cluster.Pod, found func(attachable)) error {
	m, ok := at.pl.inline(v, p.Namespace)
	if !ok || !at.counts(m.Plugin) {
		return nil
	}
	if m.Err != nil || m.PV == nil {
		return fmt.Errorf("converting volume(%s) from inline to csi: %w", v.Name, m.Err)
	}
	if m.PV.Spec.CSI != nil {
		found(attachable{m.Driver, m.PV.Spec.CSI.VolumeHandle})
	}
	return nil
}

// counts reports whether volumes of an in-tree plugin count for the driver that replaced it.
func (at attaching) counts(plugin string) bool {
	return at.hasCSINode && countedPlugins[plugin]
}

// claimed returns the volume of a claim; ok is false if no driver attaches it.
func (at attaching) claimed(claim *v1.PersistentVolumeClaim) (a attachable, ok bool) {
	if claim.Spec.VolumeName == "" {
		return at.provisioned(claim)
	}
	pv, found := cluster.FindAPI[*v1.PersistentVolume](at.s, "", claim.Spec.VolumeName)
	if !found {
		return at.provisioned(claim)
	}
	source := pv.Spec.CSI
	if source == nil {
		if at.pl.migration == nil {
			return attachable{}, false
		}
		m, migrated := at.pl.migration.Volume(pv)
		if !migrated || !at.counts(m.Plugin) || m.Err != nil || m.PV == nil || m.PV.Spec.CSI == nil {
			return attachable{}, false
		}
		source = m.PV.Spec.CSI
	}
	return attachable{source.Driver, source.VolumeHandle}, source.Driver != "" && source.VolumeHandle != ""
}

// provisioned returns the volume that a claim's storage class will provision. No two claims get the same one, and no
// existing volume has its handle.
func (at attaching) provisioned(claim *v1.PersistentVolumeClaim) (a attachable, ok bool) {
	class, found := cluster.FindAPI[*storagev1.StorageClass](at.s, "", classOfClaim(claim))
	if !found {
		return attachable{}, false
	}
	driver := class.Provisioner
	if at.pl.migration != nil {
		if took, migrated := at.pl.migration.Provisioner(driver); migrated {
			if !at.counts(driver) {
				return attachable{}, false
			}
			driver = took
		}
	}
	return attachable{driver, "\x00" + claim.Namespace + "/" + claim.Name}, driver != ""
}

// classOfClaim is the storage class of a claim, empty when it names none (upstream:
// component-helpers/storage/volume.GetPersistentVolumeClaimClass).
func classOfClaim(claim *v1.PersistentVolumeClaim) string {
	if class, ok := claim.Annotations[v1.BetaStorageClassAnnotation]; ok {
		return class
	}
	if claim.Spec.StorageClassName != nil {
		return *claim.Spec.StorageClassName
	}
	return ""
}
