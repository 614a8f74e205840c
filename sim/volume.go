// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// The annotations of claims and volumes that schedulers and controllers write.
const (
	annSelectedNode  = "volume.kubernetes.io/selected-node"
	annBindCompleted = "pv.kubernetes.io/bind-completed"
	annByController  = "pv.kubernetes.io/bound-by-controller"
)

// noProvisioner is the provisioner of classes whose volumes are made by hand.
const noProvisioner = "kubernetes.io/no-provisioner"

// storageObjects are the claims, volumes and classes of a World. Each map has the newest versions.
type storageObjects struct {
	claims  map[cluster.ObjectKey]*v1.PersistentVolumeClaim // namespace and name -> claim
	volumes map[string]*v1.PersistentVolume                 // name -> volume
	classes map[string]StorageClass                         // name -> class
	made    uint64                                          // number of provisioned volumes
	delays  uint64                                          // number of delays that were drawn
}

// StorageClass is a class of volumes.
type StorageClass struct {
	Name string
	// Immediate classes bind a claim when it is created, others when a pod with the claim has a node.
	Immediate bool
	// Static classes have the volumes of AddVolume and no provisioner. They bind late.
	Static bool
	// Topology is a label of nodes: a provisioned volume can be reached from the nodes that have the same value as the
	// node for which it was made. Empty for all nodes.
	Topology string
}

// AddClass creates a StorageClass.
func (w *World) AddClass(c StorageClass) {
	mode, provisioner := storagev1.VolumeBindingWaitForFirstConsumer, "simulated.example.com"
	if c.Immediate {
		mode = storagev1.VolumeBindingImmediate
	}
	if c.Static {
		provisioner = noProvisioner
	}
	w.SetObject(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: c.Name, UID: types.UID("class-" + c.Name)},
		Provisioner: provisioner, VolumeBindingMode: &mode})
	w.storage.classes[c.Name] = c
}

// AddVolume creates a volume of a static class that can be reached from one node.
func (w *World) AddVolume(name, class string, size apiresource.Quantity, node string) {
	pv := newVolume(name, class, size)
	pv.Spec.NodeAffinity = reachableFrom(v1.LabelHostname, node)
	w.SetObject(pv)
}

// AddClaim creates a claim that is not bound.
func (w *World) AddClaim(c *v1.PersistentVolumeClaim) {
	c.Status.Phase = v1.ClaimPending
	w.SetObject(c)
}

func newVolume(name, class string, size apiresource.Quantity) *v1.PersistentVolume {
	return &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("volume-" + name)},
		Spec: v1.PersistentVolumeSpec{Capacity: v1.ResourceList{v1.ResourceStorage: size}, StorageClassName: class,
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}},
		Status: v1.PersistentVolumeStatus{Phase: v1.VolumeAvailable}}
}

func reachableFrom(label, value string) *v1.VolumeNodeAffinity {
	return &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchExpressions: []v1.NodeSelectorRequirement{{Key: label, Operator: v1.NodeSelectorOpIn,
			Values: []string{value}}}}}}}
}

// keepStorage notes the newest version of an object if it is one of storage, and lets the controllers see it.
func (w *World) keepStorage(obj cluster.Object) {
	s := &w.storage
	switch o := obj.(type) {
	case *v1.PersistentVolumeClaim:
		s.claims[cluster.KeyOf(o)] = o
		w.claimChanged(o)
	case *v1.PersistentVolume:
		s.volumes[o.Name] = o
		w.volumeChanged(o)
	case *storagev1.StorageClass:
		if _, known := s.classes[o.Name]; !known {
			s.classes[o.Name] = StorageClass{Name: o.Name, Static: o.Provisioner == noProvisioner,
				Immediate: o.VolumeBindingMode == nil || *o.VolumeBindingMode == storagev1.VolumeBindingImmediate}
		}
	}
}

// dropStorage forgets an object of storage.
func (w *World) dropStorage(kind cluster.Kind, key cluster.ObjectKey) {
	switch kind {
	case cluster.KindClaim:
		delete(w.storage.claims, key)
	case cluster.KindVolume:
		delete(w.storage.volumes, key.Name)
	case cluster.KindStorageClass:
		delete(w.storage.classes, key.Name)
	}
}

// setStorage publishes a new version of a claim or volume.
func (w *World) setStorage(obj cluster.Object) {
	w.changed = w.now
	w.SetObject(obj)
}

// inWhile has a controller of storage act after its delay.
func (w *World) inWhile(do func()) {
	w.storage.delays++
	w.After(w.setup.Model.Volume.draw(mix(w.setup.Seed, streamVolume, w.storage.delays, 0)), do)
}

// claimChanged lets the provisioner see a claim that is not bound.
func (w *World) claimChanged(c *v1.PersistentVolumeClaim) {
	class, known := w.storage.classes[classOf(c)]
	waits := !class.Immediate && c.Annotations[annSelectedNode] == ""
	if !known || class.Static || waits || c.Spec.VolumeName != "" {
		return
	}
	key, uid := cluster.KeyOf(c), c.UID
	w.inWhile(func() { w.provision(key, uid, class) })
}

func classOf(c *v1.PersistentVolumeClaim) string {
	if c.Spec.StorageClassName == nil {
		return ""
	}
	return *c.Spec.StorageClassName
}

// reprovision is how long a provisioner waits when there is no node.
const reprovision = 15 * time.Second

// provision makes a volume for a claim and binds them. If the selected node is gone, the claim loses it, so that the
// scheduler chooses again.
func (w *World) provision(key cluster.ObjectKey, uid types.UID, class StorageClass) {
	c := w.storage.claims[key]
	if c == nil || c.UID != uid || c.Spec.VolumeName != "" {
		return
	}
	node := w.nodes[c.Annotations[annSelectedNode]]
	if class.Immediate && len(w.order) > 0 {
		node = w.order[mix(w.setup.Seed, streamVolume, w.storage.made, 1)%uint64(len(w.order))]
	}
	switch {
	case node == nil && class.Immediate:
		w.retryAfter(reprovision, func() { w.provision(key, uid, class) })
		return
	case node == nil:
		if c.Annotations[annSelectedNode] != "" {
			next := c.DeepCopy()
			delete(next.Annotations, annSelectedNode)
			w.setStorage(next)
		}
		return
	}
	w.storage.made++
	pv := newVolume(fmt.Sprintf("provisioned-%d", w.storage.made), class.Name,
		c.Spec.Resources.Requests[v1.ResourceStorage])
	if value := node.Record.Labels[class.Topology]; class.Topology != "" && value != "" {
		pv.Spec.NodeAffinity = reachableFrom(class.Topology, value)
	}
	pv.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: c.Namespace,
		Name: c.Name, UID: c.UID}
	pv.Annotations, pv.Status.Phase = map[string]string{annByController: "yes"}, v1.VolumeBound
	w.setStorage(pv)
	w.bindClaim(c, pv.Name)
}

// bindClaim writes to a claim that it has a volume.
func (w *World) bindClaim(c *v1.PersistentVolumeClaim, volume string) {
	next := c.DeepCopy()
	next.Spec.VolumeName, next.Status.Phase = volume, v1.ClaimBound
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, annBindCompleted, "yes")
	w.setStorage(next)
}

// volumeChanged lets the volume controller see a volume: it binds the claim that the volume names, and gives back a
// volume whose claim is gone.
func (w *World) volumeChanged(pv *v1.PersistentVolume) {
	ref := pv.Spec.ClaimRef
	if ref == nil || ref.UID == "" || pv.Status.Phase == v1.VolumeBound {
		return
	}
	name, uid := pv.Name, ref.UID
	w.inWhile(func() {
		c, pv := w.storage.claims[cluster.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}], w.storage.volumes[name]
		switch {
		case pv == nil || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != uid || pv.Status.Phase == v1.VolumeBound:
		case c == nil || c.UID != uid:
			w.reclaim(name, uid)
		case c.Spec.VolumeName == "":
			bound := pv.DeepCopy()
			bound.Status.Phase = v1.VolumeBound
			w.setStorage(bound)
			w.bindClaim(c, name)
		}
	})
}

// deleteClaim deletes a claim, and later its volume.
func (w *World) deleteClaim(key cluster.ObjectKey, uid types.UID) {
	c := w.storage.claims[key]
	if c == nil || c.UID != uid {
		return
	}
	w.changed = w.now
	w.DropObject(cluster.KindClaim, key)
	if volume := c.Spec.VolumeName; volume != "" {
		w.inWhile(func() { w.reclaim(volume, uid) })
	}
}

// reclaim gives back the volume of a claim that is gone: a provisioned one is deleted, another one is free again.
func (w *World) reclaim(volume string, claim types.UID) {
	pv := w.storage.volumes[volume]
	if pv == nil || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != claim ||
		pv.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimRetain {
		return
	}
	w.changed = w.now
	if class, known := w.storage.classes[pv.Spec.StorageClassName]; !known || !class.Static {
		w.DropObject(cluster.KindVolume, cluster.KeyOf(pv))
		return
	}
	next := pv.DeepCopy()
	next.Spec.ClaimRef, next.Status.Phase = nil, v1.VolumeAvailable
	delete(next.Annotations, annByController)
	w.setStorage(next)
}

// ephemeral returns the generic ephemeral volumes of a pod.
func ephemeral(p *v1.Pod) (list []v1.Volume) {
	for _, v := range p.Spec.Volumes {
		if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
			list = append(list, v)
		}
	}
	return list
}

// createClaims is the controller of ephemeral volumes: it creates the claims of a pod. A claim of the same name that
// belonged to another pod must be gone before.
func (w *World) createClaims(p *Pod) {
	if p.gone {
		return
	}
	yes, waits := true, false
	for _, v := range p.Template.ephemeral {
		c := &v1.PersistentVolumeClaim{Spec: *v.Ephemeral.VolumeClaimTemplate.Spec.DeepCopy()}
		c.Namespace, c.Name, c.UID = p.Record.Namespace, p.Record.EphemeralClaim(v.Name), ephemeralUID(p, v)
		if old := w.storage.claims[cluster.KeyOf(c)]; old != nil {
			waits = waits || old.UID != c.UID
			continue
		}
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Record.Name,
			UID: types.UID(p.Record.UID), Controller: &yes}}
		w.AddClaim(c)
	}
	if waits {
		w.retryAfter(max(w.setup.Model.Controller, time.Second), func() { w.createClaims(p) })
	}
}

// ephemeralUID returns the UID of the claim of an ephemeral volume.
func ephemeralUID(p *Pod, v v1.Volume) types.UID {
	return types.UID(fmt.Sprintf("claim-%s-%d", v.Name, p.Number))
}

// deleteClaims deletes the claims that were created for a pod.
func (w *World) deleteClaims(p *Pod) {
	for _, v := range p.Template.ephemeral {
		w.deleteClaim(cluster.ObjectKey{Namespace: p.Record.Namespace, Name: p.Record.EphemeralClaim(v.Name)},
			ephemeralUID(p, v))
	}
}

// modified is what the API server answers to a write of an older version.
const modified = "the object has been modified; please apply your changes to the latest version and try again"

// write carries out a write before a bind. It returns why it failed, empty if it has not, and false if it is of a kind
// that is not simulated.
func (w *World) write(x cluster.Write) (failed string, simulated bool) {
	switch x := x.(type) {
	case cluster.BindVolume:
		pv := w.storage.volumes[x.Name]
		switch {
		case pv == nil:
			return fmt.Sprintf("persistentvolumes %q not found", x.Name), true
		case pv.UID != types.UID(x.UID) || x.ResourceVersion != "" && x.ResourceVersion != pv.ResourceVersion:
			return modified, true
		case pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID == types.UID(x.Claim.UID):
			return "", true
		}
		next := pv.DeepCopy()
		next.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1",
			Namespace: x.Claim.Namespace, Name: x.Claim.Name, UID: types.UID(x.Claim.UID)}
		if x.ByController {
			metav1.SetMetaDataAnnotation(&next.ObjectMeta, annByController, "yes")
		}
		w.setStorage(next)
		return "", true
	case cluster.SelectNode:
		c := w.storage.claims[cluster.ObjectKey{Namespace: x.Namespace, Name: x.Name}]
		switch {
		case c == nil:
			return fmt.Sprintf("persistentvolumeclaims %q not found", x.Name), true
		case c.UID != types.UID(x.UID) || x.ResourceVersion != "" && x.ResourceVersion != c.ResourceVersion:
			return modified, true
		case c.Annotations[annSelectedNode] == x.Node:
			return "", true
		}
		next := c.DeepCopy()
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, annSelectedNode, x.Node)
		w.setStorage(next)
		return "", true
	}
	return "the simulator has no devices", false
}

// claimCounts returns how many claims there are, and how many of them are bound.
func (w *World) claimCounts() (all, bound int) {
	for _, c := range w.storage.claims { // order: a count
		all++
		if c.Spec.VolumeName != "" {
			bound++
		}
	}
	return all, bound
}

// HasClaim reports whether there is a claim of a namespace and name.
func (w *World) HasClaim(key cluster.ObjectKey) bool { return w.storage.claims[key] != nil }

// claimFor returns a claim of a pod of a StatefulSet by the set's template, with the names that its controller gives.
func claimFor(template v1.PersistentVolumeClaim, namespace, pod string) *v1.PersistentVolumeClaim {
	c := template.DeepCopy()
	c.Namespace, c.Name = namespace, template.Name+"-"+pod
	c.UID = types.UID("claim-" + c.Name)
	return c
}

// mounting returns a copy of a pod with a volume for each claim of the set that is the pod's own.
func mounting(p *v1.Pod, templates []v1.PersistentVolumeClaim, pod string) *v1.Pod {
	out := p.DeepCopy()
	for _, t := range templates {
		out.Spec.Volumes = slices.Concat(out.Spec.Volumes, []v1.Volume{{Name: t.Name, VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: t.Name + "-" + pod}}}})
	}
	return out
}
