// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// DefaultPreemptionName is the plugin's name, as configuration and metrics have it.
const DefaultPreemptionName = "DefaultPreemption"

// DefaultPreemption keeps a pod for which others are being evicted from being tried before the evictions are
// carried out (upstream: PreEnqueue of DefaultPreemption, KEP-4832). The search for victims itself is no plugin:
// see core/preempt.
type DefaultPreemption struct {
	// Preempting reports whether evictions for a pod are under way; the engine knows.
	Preempting func(cluster.UID) bool
}

// Name is DefaultPreemptionName.
func (DefaultPreemption) Name() string { return DefaultPreemptionName }

// Gated holds a pod while its evictions are under way.
func (d DefaultPreemption) Gated(_ cluster.Snapshot, p *cluster.Pod) (reason string, ok bool) {
	if d.Preempting(p.UID) {
		return "waiting for the preemption for this pod to be finished", false
	}
	return "", true
}

// OpensItself says that the engine tries the pods itself whose gate opens.
func (DefaultPreemption) OpensItself() {}

// Wakes registers for pods that go, so that the gate is asked again then. Whether that helps the pod is for the
// plugins to say that rejected it.
func (DefaultPreemption) Wakes() []Wake {
	return []Wake{{Event: Event{Resource: AssignedPod, Action: Delete},
		Hint: func(*cluster.Pod, Change) Hint { return SkipHint }}}
}
