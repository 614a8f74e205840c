// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Reserve supposes that the volumes found for the pod are bound to its claims, and that the claims of those to be
// made have their selected node, so that no other pod takes them meanwhile (upstream: binder.go, AssumePodVolumes).
func (pl *VolumeBinding) Reserve(t *cluster.Trial, p *cluster.Pod, n cluster.NodeIdx) plugin.Reserved {
	s := t.Snapshot()
	if !slices.ContainsFunc(p.Spec.Volumes, func(v v1.Volume) bool { return hasClaim(&v) }) {
		return plugin.Reserved{}
	}
	f := pl.last
	if f == nil || f.pod != p || f.store != s || f.at != volumeRevisionsOf(s) {
		plan := pl.PrepareFilter(s, p)
		if plan.Err != nil || plan.Reject != "" {
			return plugin.Reserved{Err: plan.Err, Reject: plan.Reject}
		}
		f = pl.last
	}
	node := s.Node(n)
	f.columns(s)
	f.err = nil
	code := f.quickly(s, node)
	if f.err != nil {
		return plugin.Reserved{Err: f.err}
	}
	if code != plugin.Fit { // what the filter saw has been taken since
		return plugin.Reserved{Reject: strings.Join(f.Reasons(code), ", ")}
	}
	if len(f.claims.delayed) == 0 {
		return plugin.Reserved{}
	}
	h := &heldVolumes{pl: pl, node: node.Name}
	for _, found := range f.cols.take {
		h.take(t, found)
	}
	for _, claim := range f.cols.made {
		h.make(t, claim)
	}
	return plugin.Reserved{Hold: h}
}

// heldVolumes are the volumes and claims that are being prepared for a pod on a node.
type heldVolumes struct {
	pl   *VolumeBinding // derived: the plugin
	node string         // kept
	// started is when the wait for the volume controller began; valid if waits.
	started record.Time // kept
	waits   bool        // kept

	taken []heldVolume // kept
	made  []heldClaim  // kept
}

// heldVolume is a volume that is given to a claim.
type heldVolume struct {
	claim *v1.PersistentVolumeClaim // kept
	is    *v1.PersistentVolume      // kept; as it will be
	// written is set if the volume is not that already, so that a new version of it will be seen.
	written bool // kept
	// byController is set if the scheduler, not the user, chose the volume.
	byController bool // kept
}

// heldClaim is a claim that gets its selected node.
type heldClaim struct {
	is      *v1.PersistentVolumeClaim // kept
	written bool                      // kept
}

func (h *heldVolumes) take(t *cluster.Trial, found taking) {
	pv, claim := found.pv, found.claim
	is := *pv
	held := heldVolume{claim: claim, is: &is, byController: !boundTo(pv, claim)}
	if ref := pv.Spec.ClaimRef; ref == nil || ref.UID != claim.UID {
		is.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1",
			Namespace: claim.Namespace, Name: claim.Name,
			UID: claim.UID, ResourceVersion: claim.ResourceVersion}
		held.written = true
	}
	if held.byController && !metav1.HasAnnotation(pv.ObjectMeta, annBoundByController) {
		is.Annotations = with(pv.Annotations, annBoundByController, "yes")
		held.written = true
	}
	if held.written {
		t.AssumeObject(&is)
	}
	h.taken = append(h.taken, held)
}

func (h *heldVolumes) make(t *cluster.Trial, claim *v1.PersistentVolumeClaim) {
	if slices.ContainsFunc(h.made, func(c heldClaim) bool { return c.is.Name == claim.Name }) {
		return // two volumes of the pod name it
	}
	is := *claim
	is.Annotations = with(claim.Annotations, annSelectedNode, h.node)
	t.AssumeObject(&is)
	h.made = append(h.made, heldClaim{&is, claim.Annotations[annSelectedNode] != h.node})
}

// with is a copy of annotations with one more.
func with(annotations map[string]string, key, value string) map[string]string {
	more := maps.Clone(annotations)
	if more == nil {
		more = map[string]string{}
	}
	more[key] = value
	return more
}

// Writes bind the volumes first, then write the selected node to the claims. Those that change nothing are there too:
// their preconditions fail the attempt if what was decided on is out of date.
func (h *heldVolumes) Writes() (writes []cluster.Write) {
	for _, v := range h.taken {
		writes = append(writes, cluster.BindVolume{Target: targetOf(v.is), Claim: targetOf(v.claim),
			ByController: v.byController})
	}
	for _, c := range h.made {
		writes = append(writes, cluster.SelectNode{Target: targetOf(c.is), Node: h.node})
	}
	return writes
}

func targetOf(obj cluster.Object) cluster.Target {
	return cluster.Target{Kind: cluster.KindOf(obj), Namespace: obj.GetNamespace(), Name: obj.GetName(),
		UID:             cluster.UID(obj.GetUID()),
		ResourceVersion: obj.GetResourceVersion()}
}

// Ready waits until the volume controller and the provisioners are done, or one of them has turned the decision
// down, or time is up (upstream: binder.go, BindPodVolumes and checkBindings). Time counts from when it is first
// asked.
func (h *heldVolumes) Ready(s cluster.Snapshot, now record.Time) plugin.Readiness {
	if !h.waits {
		h.waits, h.started = true, now
	}
	deadline := h.started + h.pl.timeout
	if now >= deadline {
		return plugin.Readiness{Err: errors.New("binding volumes: context deadline exceeded")}
	}
	switch ready, err := h.check(s); {
	case err != nil:
		return plugin.Readiness{Err: fmt.Errorf("binding volumes: %w", err)}
	case ready:
		return plugin.Readiness{Ready: true}
	}
	return plugin.Readiness{Again: deadline}
}

// check looks at objects as the API server has them, for what other decisions assume about them is not yet so.
func (h *heldVolumes) check(s cluster.Snapshot) (ready bool, err error) {
	n, ok := s.Find(h.node)
	if !ok {
		return false, fmt.Errorf("failed to get node %q: node %q not found", h.node, h.node)
	}
	node := &cluster.Node{Name: h.node}
	if ok {
		node = s.Node(n)
	}
	for i := range h.taken {
		if ready, err := h.taken[i].check(s, h.pl, node); !ready {
			return false, err
		}
	}
	for i := range h.made {
		if ready, err := h.made[i].check(s, h.pl, node); !ready {
			return false, err
		}
	}
	return true, nil
}

func (v *heldVolume) check(s cluster.Snapshot, pl *VolumeBinding, node *cluster.Node) (ready bool, err error) {
	pv, ok := cluster.FindAPI[*v1.PersistentVolume](s, "", v.is.Name)
	if !ok {
		return false, fmt.Errorf("failed to check binding: persistentvolumes %q not found", v.is.Name)
	}
	claim, ok := cluster.FindAPI[*v1.PersistentVolumeClaim](s, v.claim.Namespace, v.claim.Name)
	if !ok {
		return false, fmt.Errorf("failed to check binding: persistentvolumeclaims %q not found",
			v.claim.Namespace+"/"+v.claim.Name)
	}
	if v.written && pv.ResourceVersion == v.is.ResourceVersion {
		return false, nil // our own write has not come back yet
	}
	affinity, err := pl.affinityOn(s, pv, node.Name)
	if err != nil {
		return false, fmt.Errorf("failed to translate pv to csi: %w", err)
	}
	if err := conflict(pv.Name, affinity, node); err != nil {
		return false, err
	}
	if ref := pv.Spec.ClaimRef; ref == nil || ref.UID == "" {
		return false, fmt.Errorf("ClaimRef got reset for pv %q", pv.Name)
	}
	return fullyBound(claim), nil
}

func (c *heldClaim) check(s cluster.Snapshot, pl *VolumeBinding, node *cluster.Node) (ready bool, err error) {
	claim, ok := cluster.FindAPI[*v1.PersistentVolumeClaim](s, c.is.Namespace, c.is.Name)
	if !ok {
		return false, fmt.Errorf("failed to check provisioning pvc: persistentvolumeclaims %q not found",
			c.is.Namespace+"/"+c.is.Name)
	}
	switch selected := claim.Annotations[annSelectedNode]; {
	case c.written && claim.ResourceVersion == c.is.ResourceVersion:
		return false, nil // our own write has not come back yet
	case claim.Annotations == nil:
		return false, fmt.Errorf("selectedNode annotation reset for PVC %q", claim.Name)
	case selected != node.Name:
		return false, fmt.Errorf("provisioning failed for PVC %q", claim.Name)
	}
	if claim.Spec.VolumeName != "" {
		pv, ok := cluster.FindAPI[*v1.PersistentVolume](s, "", claim.Spec.VolumeName)
		if !ok {
			return false, nil // it may not have been seen yet; were it deleted, the claim would get an update
		}
		affinity, err := pl.affinityOn(s, pv, node.Name)
		if err != nil {
			return false, err
		}
		if err := conflict(pv.Name, affinity, node); err != nil {
			return false, err
		}
	}
	return fullyBound(claim), nil
}

// conflict returns why a volume that came to be cannot be reached after all.
func conflict(name string, affinity *v1.VolumeNodeAffinity, node *cluster.Node) error {
	if err := reach(affinity, node); err != nil {
		return fmt.Errorf("pv %q node affinity doesn't match node %q: %w", name, node.Name, err)
	}
	return nil
}

// Release ends what Reserve supposed. That ends, too, what was written but has not come back yet: for a moment the
// volume looks free, and a pod that takes it then meets a conflict. Nothing is written back; the volume controller
// keeps what has been bound, and a claim keeps its node until its provisioner gives up. The bool is a part of the
// contract, for reservations that undo their writes; this one treats both cases alike.
func (h *heldVolumes) Release(t *cluster.Trial, _ bool) []cluster.Write {
	s := t.Snapshot()
	for _, v := range h.taken {
		if now, _ := cluster.Find[*v1.PersistentVolume](s, "", v.is.Name); now == v.is {
			t.RestoreObject(cluster.KindVolume, cluster.KeyOf(now))
		}
	}
	for _, c := range h.made {
		if now, _ := cluster.Find[*v1.PersistentVolumeClaim](s, c.is.Namespace, c.is.Name); now == c.is {
			t.RestoreObject(cluster.KindClaim, cluster.KeyOf(now))
		}
	}
	return nil
}
