// SPDX-License-Identifier: Apache-2.0

package noop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// do makes a write of a script.
func (pl *player) do(ctx context.Context, j *job, w *Write) error {
	api := pl.clients.Binds
	switch w.Do {
	case BindPod:
		return pl.bindTo(ctx, j, w)
	case PatchPod:
		namespace, name := pl.target(j, w)
		_, err := api.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, w.Body, metav1.PatchOptions{}, "status")
		return err
	case DeletePod:
		var o metav1.DeleteOptions
		if err := json.Unmarshal(w.Body, &o); err != nil {
			return err
		}
		o.TypeMeta, o.Preconditions = metav1.TypeMeta{}, nil // the victim is another one with the same name
		namespace, name := pl.target(j, w)
		return api.CoreV1().Pods(namespace).Delete(ctx, name, o)
	case CreateEvent:
		return pl.tell(ctx, j, w)
	case PatchEvent:
		name, known := j.events[w.Name]
		if !known {
			return fmt.Errorf("event %s was not made", w.Name)
		}
		_, err := pl.clients.Events.EventsV1().Events(j.pod.Namespace).Patch(ctx, name, types.StrategicMergePatchType, w.Body, metav1.PatchOptions{})
		return err
	case CreateClaim:
		return pl.createClaim(ctx, j, w)
	case ChangeClaim, SetClaimStatus:
		return pl.writeClaim(ctx, j, w)
	case WriteVolume, WriteVolumeClaim:
		return pl.writeVolume(ctx, j, w)
	case PatchGroup:
		namespace, name, err := cache.SplitMetaNamespaceKey(w.Name)
		if err != nil {
			return err
		}
		_, err = api.SchedulingV1beta1().PodGroups(namespace).Patch(ctx, name, types.StrategicMergePatchType, w.Body, metav1.PatchOptions{}, "status")
		return err
	}
	return errors.New("the kind of the write is unknown")
}

// target is the pod that a write is about.
func (pl *player) target(j *job, w *Write) (namespace, name string) {
	if w.Pod == "" {
		return j.pod.Namespace, j.pod.Name
	}
	namespace, name, err := cache.SplitMetaNamespaceKey(w.Pod)
	if err != nil {
		panic(fmt.Sprintf("pod %q in a recording: %v", w.Pod, err))
	}
	return namespace, name
}

func (pl *player) bindTo(ctx context.Context, j *job, w *Write) error {
	if !w.Told {
		return pl.bindOnly(ctx, j.pod, w.Node)
	}
	return pl.bind(ctx, j.pod, w.Node)
}

// tell writes an event, or passes it to the event writers.
func (pl *player) tell(ctx context.Context, j *job, w *Write) error {
	var recorded eventsv1.Event
	if err := json.Unmarshal(w.Body, &recorded); err != nil {
		return err
	}
	about := j.pod
	if w.Pod != "" {
		namespace, name := pl.target(j, w)
		pl.mu.Lock()
		about = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: pl.pods[w.Pod].uid}}
		pl.mu.Unlock()
	}
	e := pl.event(about, "")
	e.Reason, e.Action, e.Type = recorded.Reason, recorded.Action, recorded.Type
	e.Note = preemptedBy.ReplaceAllString(recorded.Note, "Preempted by pod "+string(j.pod.UID)+" ")
	if !j.inline {
		pl.bound <- e
		return nil
	}
	j.events[w.Name] = e.Name
	return writeEvent(ctx, pl.clients.Events, e)
}

// createClaim creates the claim for devices that a pod requests as extended resources. Its name is the recorded one,
// which later writes use, or the pod's own if the script was another pod's.
func (pl *player) createClaim(ctx context.Context, j *job, w *Write) error {
	var c resourceapi.ResourceClaim
	if err := json.Unmarshal(w.Body, &c); err != nil {
		return err
	}
	c.Name = w.Name
	c.Namespace = j.pod.Namespace
	c.UID, c.ResourceVersion, c.ManagedFields, c.CreationTimestamp = "", "", nil, metav1.Time{}
	for i := range c.OwnerReferences {
		c.OwnerReferences[i].Name, c.OwnerReferences[i].UID = j.pod.Name, j.pod.UID
	}
	made, err := pl.clients.Binds.ResourceV1().ResourceClaims(c.Namespace).Create(ctx, &c, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	pl.claimSeen(made, false)
	return nil
}

// writeClaim writes the recorded finalizers of a claim, or the recorded allocation and the pod to its status.
func (pl *player) writeClaim(ctx context.Context, j *job, w *Write) error {
	name := w.Name
	if w.Claim != "" {
		name = claimNameOf(j.pod, w.Claim)
	}
	key := j.pod.Namespace + "/" + name
	pl.mu.Lock()
	now := pl.claims[key]
	pl.mu.Unlock()
	if now == nil {
		return fmt.Errorf("there is no claim %s", key)
	}
	now.writing.Lock()
	defer now.writing.Unlock()
	pl.mu.Lock()
	c := now.is.DeepCopy()
	pl.mu.Unlock()
	api := pl.clients.Binds.ResourceV1().ResourceClaims(c.Namespace)
	var after *resourceapi.ResourceClaim
	var err error
	switch {
	case w.Do == SetClaimStatus:
		if c.Status.Allocation == nil {
			if err := json.Unmarshal(w.Body, &c.Status.Allocation); err != nil {
				return err
			}
		}
		c.Status.ReservedFor = append(c.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: j.pod.Name, UID: j.pod.UID})
		pl.holds(j, now, key)
		after, err = api.UpdateStatus(ctx, c, metav1.UpdateOptions{})
	case w.Patch:
		after, err = api.Patch(ctx, name, types.StrategicMergePatchType, w.Body, metav1.PatchOptions{})
	default:
		var recorded resourceapi.ResourceClaim
		if err := json.Unmarshal(w.Body, &recorded); err != nil {
			return err
		}
		c.Finalizers = recorded.Finalizers
		after, err = api.Update(ctx, c, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("claim %s: %w", key, err)
	}
	pl.claimSeen(after, false)
	return nil
}

// holds records that a claim holds the devices of a script until it is gone or not allocated.
func (pl *player) holds(j *job, c *claimNow, key string) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	if l := pl.lent[keyOf(j.pod)]; l != nil && c.own == nil {
		c.own = l
		l.claims[key] = true
	}
}

// writeVolume writes a volume or its claim as recorded. A recording has no UIDs of either, except in a volume's
// reference to its claim.
func (pl *player) writeVolume(ctx context.Context, j *job, w *Write) error {
	core := pl.clients.Binds.CoreV1()
	claims, volumes := core.PersistentVolumeClaims(j.pod.Namespace), core.PersistentVolumes()
	if w.Patch {
		var err error
		if w.Do == WriteVolume {
			_, err = volumes.Patch(ctx, w.Name, types.MergePatchType, w.Body, metav1.PatchOptions{})
		} else {
			_, err = claims.Patch(ctx, w.Name, types.MergePatchType, w.Body, metav1.PatchOptions{})
		}
		return err
	}
	if w.Do == WriteVolumeClaim {
		var c corev1.PersistentVolumeClaim
		if err := json.Unmarshal(w.Body, &c); err != nil {
			return err
		}
		_, err := claims.Update(ctx, &c, metav1.UpdateOptions{})
		return err
	}
	var v corev1.PersistentVolume
	if err := json.Unmarshal(w.Body, &v); err != nil {
		return err
	}
	claim, err := claims.Get(ctx, v.Spec.ClaimRef.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	v.Spec.ClaimRef.UID, v.Spec.ClaimRef.ResourceVersion = claim.UID, ""
	_, err = volumes.Update(ctx, &v, metav1.UpdateOptions{})
	return err
}
