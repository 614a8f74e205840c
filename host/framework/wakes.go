// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// known are the resources whose changes kumiki sees.
var known = []plugin.Resource{plugin.AssignedPod, plugin.UnscheduledPod, plugin.TargetPod, plugin.Pod,
	plugin.NodeObject, plugin.VolumeObject, plugin.ClaimObject, plugin.StorageClassObject, plugin.CSINodeObject,
	plugin.CSIDriverObject, plugin.CapacityObject, plugin.AttachmentObject, plugin.DeviceClaimObject,
	plugin.ResourceSliceObject, plugin.DeviceClassObject, plugin.Wildcard}

// Wakes returns the events of EventsToRegister.
func (a adapter) Wakes() []plugin.Wake { return a.h.wakes }

// anyEvent wakes the pods of a plugin that does not implement EnqueueExtensions.
var anyEvent = []plugin.Wake{{Event: plugin.Event{Resource: plugin.Wildcard, Action: plugin.All}}}

// register calls EventsToRegister. Resources besides those of the scheduler are noted, to be watched; an event of a
// resource that cannot be watched is reported, and wakes no pod.
func (h *hosted) register() ([]plugin.Wake, error) {
	extensions, names := h.plugin.(fwk.EnqueueExtensions)
	if !names {
		return anyEvent, nil
	}
	events, err := extensions.EventsToRegister(h.profile.host.env.context())
	if err != nil {
		return nil, err
	}
	wakes := []plugin.Wake{}
	for _, e := range events {
		event := plugin.Event{Resource: plugin.Resource(e.Event.Resource), Action: plugin.Action(e.Event.ActionType),
			Label: e.Event.CustomLabel}
		if event.Action == 0 || e.Event.ActionType < 0 || e.Event.ActionType > fwk.All {
			return nil, fmt.Errorf("event of %s has the unknown action %d", event.Resource, e.Event.ActionType)
		}
		if isOther(event.Resource) {
			h.profile.host.others[event.Resource] |= event.Action
		} else if !slices.Contains(known, event.Resource) {
			h.profile.host.report(Problem{h.name, config.PreEnqueue, fmt.Errorf("it registers for events of %q, which "+
				"are not watched: pods that it rejects wait for another event, or until they are flushed",
				event.Resource), Misused})
			continue
		}
		wakes = append(wakes, plugin.Wake{Event: event, Hint: h.hint(e)})
	}
	return wakes, nil
}

// hint returns the hint of an event; nil if the event always wakes.
func (h *hosted) hint(e fwk.ClusterEventWithHint) func(*cluster.Pod, plugin.Change) plugin.Hint {
	if e.QueueingHintFn == nil && e.PreQueueingHintFn == nil {
		return nil
	}
	return func(p *cluster.Pod, ch plugin.Change) plugin.Hint {
		pod, err := objectOfPod(p)
		if err != nil {
			return plugin.QueueHint
		}
		was, is := objects(ch)
		hint := plugin.QueueHint
		lent := loan{objects: [3]runtime.Object{pod, asObject(was), asObject(is)}}
		failed := h.guard(config.PreEnqueue, lent, func() {
			if e.PreQueueingHintFn != nil && !selects(e.PreQueueingHintFn, pod, was, is) {
				hint = plugin.SkipHint
				return
			}
			if e.QueueingHintFn == nil {
				return
			}
			// An error means Queue, as upstream.
			if answer, err := e.QueueingHintFn(klog.Background(), pod, was, is); err == nil && answer == fwk.QueueSkip {
				hint = plugin.SkipHint
			}
		})
		if failed != nil {
			h.broken(config.PreEnqueue, Panicked,
				fmt.Errorf("hint for %s%s: %w", e.Event.Resource, e.Event.ActionType, failed))
			return plugin.QueueHint
		}
		return hint
	}
}

// selects reports whether a PreQueueingHintFn leaves a pod to the hint. An error leaves all.
func selects(narrow fwk.PreQueueingHintFn, pod *v1.Pod, was, is any) bool {
	if was == nil && is == nil {
		return true
	}
	result, err := narrow(klog.Background(), was, is)
	return err != nil || result.AllPods ||
		slices.Contains(result.Pods, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
}

// objects returns the objects of a change as hints receive them: nil, not a nil pointer, where there is none.
func objects(ch plugin.Change) (was, is any) {
	switch {
	case ch.OldPod != nil || ch.NewPod != nil:
		return podObject(ch.OldPod), podObject(ch.NewPod)
	case ch.OldNode != nil || ch.NewNode != nil:
		return nodeObject(ch.OldNode), nodeObject(ch.NewNode)
	}
	if ch.OldObject != nil {
		was = ch.OldObject
	}
	if ch.NewObject != nil {
		is = ch.NewObject
	}
	return was, is
}

func podObject(p *cluster.Pod) any {
	if p == nil {
		return nil
	}
	return newPodInfo(p, p.NodeName).pod
}

func nodeObject(n *cluster.Node) any {
	if n == nil {
		return nil
	}
	return objectOf(n)
}
