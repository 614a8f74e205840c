// SPDX-License-Identifier: Apache-2.0

package kumiki

import (
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/intake"
	"github.com/kumiki-scheduler/kumiki/record"
)

// The API server and the controllers of an EngineRun: objects that a decision writes change on
// both sides at once.

// tell steps the engine and does what it asks.
func (st *EngineRun) tell(ev engine.Event) { st.depart(st.step(ev)) }

// depart carries out effects.
func (st *EngineRun) depart(effects []engine.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case engine.Bind:
			st.flying = append(st.flying, e)
			st.up.Bind(gen.Bind(st.pods[e.Pod.UID], e.Node))
		case engine.Prepare:
			st.prepare(e)
		case engine.Release:
			for _, w := range e.Writes {
				st.carryOut(w)
			}
		}
	}
}

// prepare carries writes out, or refuses them all where no devices are at stake: what
// is held for devices that may have been written is kumiki's own matter. A pod that is
// not bound then waits for something that never comes here, and is deleted.
func (st *EngineRun) prepare(e engine.Prepare) {
	devices := slices.ContainsFunc(e.Writes, func(w cluster.Write) bool {
		switch w.(type) {
		case cluster.BindVolume, cluster.SelectNode:
			return false
		}
		return true
	})
	if !devices && st.rand.Chance(30) {
		st.Refused++
		st.refused[e.Pod.UID] = true
		st.tell(engine.WritesDone{Pod: e.Pod, Decision: e.Decision, Message: "the API server said no"})
		return
	}
	st.Written++
	for _, w := range e.Writes {
		st.carryOut(w)
	}
	st.tell(engine.WritesDone{Pod: e.Pod, Decision: e.Decision})
	for _, w := range e.Writes {
		st.control(w)
	}
	if !slices.ContainsFunc(st.flying, func(b engine.Bind) bool { return b.Pod == e.Pod }) && st.pods[e.Pod.UID] != nil {
		delete(st.pods, e.Pod.UID)
		st.tell(engine.PodGone{Pod: record.PodRef{Namespace: e.Pod.Namespace, Name: e.Pod.Name, UID: e.Pod.UID}})
	}
}

// set shows an object in a new version on both sides.
func (st *EngineRun) set(o scenario.APIObject) {
	st.version++
	o.SetResourceVersion(strconv.Itoa(st.version))
	st.up.SetObject(o)
	if st.second != nil {
		st.second.Objects.Set(o)
	}
	st.tell(engine.ObjectSet{Object: intake.Trim(o)})
}

// current is a copy of an object as it is now.
func current[T scenario.APIObject](st *EngineRun, w cluster.Target) (o T, found bool) {
	obj, found := st.up.Object(scenario.ObjectRef{Kind: string(w.Kind), Namespace: w.Namespace, Name: w.Name})
	if !found {
		return o, false
	}
	return obj.DeepCopyObject().(T), true
}

// carryOut does one write.
func (st *EngineRun) carryOut(w cluster.Write) {
	switch w := w.(type) {
	case cluster.BindVolume:
		if pv, ok := current[*v1.PersistentVolume](st, w.Target); ok {
			pv.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: w.Claim.Namespace, Name: w.Claim.Name, UID: types.UID(w.Claim.UID)}
			metav1.SetMetaDataAnnotation(&pv.ObjectMeta, "pv.kubernetes.io/bound-by-controller", "yes")
			st.set(pv)
		}
	case cluster.SelectNode:
		if claim, ok := current[*v1.PersistentVolumeClaim](st, w.Target); ok {
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, "volume.kubernetes.io/selected-node", w.Node)
			st.set(claim)
		}
	case cluster.AllocateClaim:
		if claim, ok := current[*resourceapi.ResourceClaim](st, w.Target); ok {
			if w.Allocation != nil {
				claim.Status.Allocation = w.Allocation
			}
			if !slices.Contains(claim.Status.ReservedFor, w.ReservedFor) {
				claim.Status.ReservedFor = append(claim.Status.ReservedFor, w.ReservedFor)
			}
			st.set(claim)
		}
	case cluster.CreateClaim:
		claim := w.Claim.DeepCopy()
		if claim.UID == "" {
			claim.UID = types.UID("uid-" + claim.Name)
		}
		st.set(claim)
	case cluster.ReleaseClaim:
		if claim, ok := current[*resourceapi.ResourceClaim](st, w.Target); ok {
			claim.Status.ReservedFor = slices.DeleteFunc(claim.Status.ReservedFor, func(r resourceapi.ResourceClaimConsumerReference) bool { return cluster.UID(r.UID) == w.Consumer })
			if w.Deallocate {
				claim.Status.Allocation, claim.Finalizers = nil, nil
			}
			st.set(claim)
		}
	case cluster.DeleteClaim:
		ref := scenario.ObjectRef{Kind: string(w.Kind), Namespace: w.Namespace, Name: w.Name}
		if _, ok := st.up.Object(ref); ok {
			st.up.DeleteObject(ref)
			if st.second != nil {
				st.second.Objects.Delete(ref)
			}
			st.tell(engine.ObjectGone{Kind: w.Kind, Key: cluster.ObjectKey{Namespace: w.Namespace, Name: w.Name}})
		}
	}
}

// control does what the controllers of volumes do then: it makes the volume, and binds
// the claim to it.
func (st *EngineRun) control(w cluster.Write) {
	var claim *v1.PersistentVolumeClaim
	var volume string
	switch w := w.(type) {
	case cluster.BindVolume:
		claim, _ = current[*v1.PersistentVolumeClaim](st, w.Claim)
		volume = w.Name
	case cluster.SelectNode:
		claim, _ = current[*v1.PersistentVolumeClaim](st, w.Target)
		volume = "made-for-" + w.Name
		pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume, UID: types.UID("uid-" + volume)}}
		pv.Spec = v1.PersistentVolumeSpec{Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes,
			ClaimRef:               &v1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: volume}}}
		pv.Status.Phase = v1.VolumeBound
		st.set(pv)
	default:
		return
	}
	claim.Spec.VolumeName, claim.Status.Phase = volume, v1.ClaimBound
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, "pv.kubernetes.io/bind-completed", "yes")
	st.set(claim)
}
