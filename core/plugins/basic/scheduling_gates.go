// SPDX-License-Identifier: Apache-2.0

package basic

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// SchedulingGates holds a pod back while its spec lists scheduling gates (KEP-3521; upstream:
// plugins/schedulinggates).
type SchedulingGates struct{}

// SchedulingGatesName is its name in configurations.
const SchedulingGatesName = "SchedulingGates"

// Name is SchedulingGatesName.
func (SchedulingGates) Name() string { return SchedulingGatesName }

// Gated names the gates.
func (SchedulingGates) Gated(_ cluster.Snapshot, p *cluster.Pod) (reason string, ok bool) {
	if len(p.Spec.Gates) == 0 {
		return "", true
	}
	return fmt.Sprintf("waiting for scheduling gates: %v", p.Spec.Gates), false
}

// Wakes on the removal of the pod's own gates.
func (SchedulingGates) Wakes() []plugin.Wake {
	return []plugin.Wake{{Event: plugin.Event{Resource: plugin.TargetPod,
		Action: plugin.UpdatePodSchedulingGatesEliminated}}}
}
