// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// Two plugins that exist only here, on both sides, because none of the default
// plugins has what they exercise.
const (
	// HoldGate is a gate that depends on something outside of the pod: it keeps pods
	// with the label HoldLabel while it is closed, and registered for new nodes. The
	// default gate depends on the pod alone, so asking it once too often never shows.
	HoldGate  = "Hold"
	HoldLabel = "hold"
	// Outside is a plugin that waits for something (upstream: Pending). It is woken by
	// a node whose note becomes OutsideNote, and by any pod that gets a node.
	Outside     = "Outside"
	OutsideNote = "1"
	// NoteKey is the annotation that holds a node's note.
	NoteKey = "example.com/note"
)

// hold is upstream's form of HoldGate.
type hold struct{ open *bool }

func (hold) Name() string { return HoldGate }

func (h hold) PreEnqueue(_ context.Context, p *v1.Pod) *fwk.Status {
	if _, held := p.Labels[HoldLabel]; held && !*h.open {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "held")
	}
	return nil
}

func (hold) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add}}}, nil
}

// outside is upstream's form of Outside.
type outside struct{}

func (outside) Name() string { return Outside }

func (outside) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Add}},
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.UpdateNodeAnnotation},
			QueueingHintFn: func(_ klog.Logger, _ *v1.Pod, _, obj interface{}) (fwk.QueueingHint, error) {
				if obj.(*v1.Node).Annotations[NoteKey] == OutsideNote {
					return fwk.Queue, nil
				}
				return fwk.QueueSkip, nil
			}},
	}, nil
}
