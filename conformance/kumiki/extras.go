// SPDX-License-Identifier: Apache-2.0

package kumiki

import (
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/conformance/queue"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// hold is kumiki's form of queue.HoldGate.
type hold struct{ open *bool }

func (hold) Name() string { return queue.HoldGate }

func (h hold) Gated(_ cluster.Snapshot, p *cluster.Pod) (reason string, ok bool) {
	_, held := p.Spec.Labels[queue.HoldLabel]
	return "held", !held || *h.open
}

func (hold) Wakes() []plugin.Wake {
	return []plugin.Wake{{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}}}
}

// outside is kumiki's form of queue.Outside. Compact records keep a hash of a
// node's annotations only, so the adapter notes whose note is the one waited for.
type outside struct{ noted map[*cluster.Node]bool }

func (outside) Name() string { return queue.Outside }

func (o outside) Wakes() []plugin.Wake {
	return []plugin.Wake{
		{Event: plugin.Event{Resource: plugin.Pod, Action: plugin.Add}},
		{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.UpdateNodeAnnotation}, Hint: func(_ *cluster.Pod, ch plugin.Change) plugin.Hint {
			if o.noted[ch.NewNode] {
				return plugin.QueueHint
			}
			return plugin.SkipHint
		}},
	}
}

// resourceOf maps upstream's names, which are the same words but for the two
// kinds of pods.
func resourceOf(r fwk.EventResource) plugin.Resource {
	return plugin.Resource(r)
}
