// SPDX-License-Identifier: Apache-2.0

package gangapi

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
)

// volcanoGang reads a PodGroup of Volcano. Queues, minResources and minTaskMember are not looked at; a demand on the
// network that this scheduler cannot keep is refused.
func volcanoGang(o *unstructured.Unstructured) *cluster.Gang {
	g := Meta(cluster.GangOfVolcano, o)
	g.Phase = Phase(o)
	if n, found := field[int64](o, g, "spec", "minMember"); found || g.Bad == "" {
		setMinCount(g, "spec.minMember", n)
	}
	if topology, found := field[map[string]any](o, g, "spec", "networkTopology"); found {
		if mode, _ := topology["mode"].(string); mode != "soft" {
			g.Bad = "spec.networkTopology is hard, and hyper nodes are not supported"
		}
	}
	if list, found := field[[]any](o, g, "spec", "subGroupPolicy"); found && len(list) > 0 {
		g.Bad = "spec.subGroupPolicy is not supported"
	}
	return g
}

// volcanoStatus is the same for a PodGroup of Volcano.
func volcanoStatus(o *unstructured.Unstructured, s engine.GangStatus, now metav1.Time) map[string]any {
	want := phasePending
	switch {
	case s.Scheduled:
		want = phaseRunning
	case s.Admitted, s.Pending+s.Bound > 0: // if there are pods, their controller did not wait for Inqueue
		want = phaseInqueue
	}
	status := map[string]any{}
	was := Phase(o)
	phase := advance(was, want, phasePending, phaseInqueue, phaseRunning)
	if phase != was {
		status["phase"] = phase
	}
	if phase != want {
		return status
	}
	counts(o, s, status)
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var changed bool
	switch {
	case s.Scheduled:
		list, changed = setVolcano(list, map[string]any{"type": "Scheduled", "status": "True", "reason": "Scheduled",
			"message": ""}, now)
		if i := volcanoCondition(list, "Unschedulable"); i >= 0 && list[i].(map[string]any)["status"] != "False" {
			list, _ = setVolcano(list, map[string]any{"type": "Unschedulable", "status": "False",
				"reason": "Scheduled", "message": ""}, now)
			changed = true
		}
	case s.Reason != "":
		list, changed = setVolcano(list, map[string]any{"type": "Unschedulable", "status": "True", "reason": s.Reason,
			"message": CutMessage(s.Message)}, now)
	}
	if changed {
		status["conditions"] = list
	}
	return status
}

// volcanoCondition is where a condition stands in a list, -1 if nowhere.
func volcanoCondition(list []any, kind string) int {
	return slices.IndexFunc(list, func(c any) bool {
		fields, is := c.(map[string]any)
		return is && fields["type"] == kind
	})
}

// setVolcano puts a condition into a list and reports whether that changes anything.
func setVolcano(list []any, c map[string]any, now metav1.Time) ([]any, bool) {
	stamp := any(now)
	i := volcanoCondition(list, c["type"].(string))
	if i < 0 {
		c["lastTransitionTime"] = stamp
		return append(list, c), true
	}
	was := list[i].(map[string]any)
	reason, _ := was["reason"].(string)
	message, _ := was["message"].(string)
	if was["status"] == c["status"] && reason == c["reason"] && message == c["message"] {
		return list, false
	}
	if was["status"] == c["status"] && was["lastTransitionTime"] != nil {
		stamp = was["lastTransitionTime"]
	}
	c["lastTransitionTime"] = stamp
	list[i] = c
	return list, true
}
