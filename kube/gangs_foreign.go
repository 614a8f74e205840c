// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// maxGangTimeout bounds how long members may wait for each other, in seconds.
const maxGangTimeout = int64(cluster.MaxGangTimeout / record.Second)

// field is a value of an object whose type nobody checked.
func field[T any](o *unstructured.Unstructured, g *cluster.Gang, path ...string) (value T, found bool) {
	raw, found, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	if err != nil || !found || raw == nil {
		return value, false
	}
	value, ok := raw.(T)
	if !ok {
		g.Bad = strings.Join(path, ".") + " is not " + typeText[fmt.Sprintf("%T", value)]
	}
	return value, ok
}

// typeText says a type of a decoded object in words: Go type -> text.
var typeText = map[string]string{"int64": "a whole number", "map[string]interface {}": "an object", "[]interface {}": "a list"}

// sigsGang reads a PodGroup of scheduler-plugins (upstream: apis/scheduling/v1alpha1). minResources is not looked at: that
// the members have room is tried, not reckoned.
func sigsGang(o *unstructured.Unstructured) *cluster.Gang {
	g := gangMeta(cluster.GangOfSigs, o)
	g.Phase = phaseOf(o)
	if n, found := field[int64](o, g, "spec", "minMember"); found || g.Bad == "" {
		setMinCount(g, "spec.minMember", n)
	}
	if s, found := field[int64](o, g, "spec", "scheduleTimeoutSeconds"); found {
		if s < 1 || s > maxGangTimeout {
			g.Bad = fmt.Sprintf("spec.scheduleTimeoutSeconds must be from 1 to %d, it is %d", maxGangTimeout, s)
		} else {
			g.Timeout = record.Time(s) * record.Second
		}
	}
	return g
}

// volcanoGang reads a PodGroup of Volcano. Queues, minResources and minTaskMember are not looked at; a demand on the
// network that nobody here can keep is refused.
func volcanoGang(o *unstructured.Unstructured) *cluster.Gang {
	g := gangMeta(cluster.GangOfVolcano, o)
	g.Phase = phaseOf(o)
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

// phaseOf reads the phase, empty for one that nobody could have written.
func phaseOf(o *unstructured.Unstructured) string {
	phase, _, err := unstructured.NestedString(o.Object, "status", "phase")
	if err != nil || len(phase) > 64 {
		return ""
	}
	return phase
}

// Phases of the PodGroups of scheduler-plugins and of Volcano.
const (
	phasePending    = "Pending"
	phaseScheduling = "Scheduling" // sigs
	phaseInqueue    = "Inqueue"    // volcano: controllers may create the pods
	phaseRunning    = "Running"
	phaseUnknown    = "Unknown"
)

// advance is the phase that follows from the present one and what is wished, in an order: a phase is never taken back, and
// one that is not in the order is somebody else's (Finished, Failed, Completed) and stays.
func advance(now, want string, order ...string) string {
	if now == "" || now == phaseUnknown {
		return want
	}
	if at := slices.Index(order, now); at < 0 || at > slices.Index(order, want) {
		return now
	}
	return want
}

// counts are the numbers of a status that a scheduler knows.
func counts(o *unstructured.Unstructured, s engine.GangStatus, into map[string]any) {
	if n, _, _ := unstructured.NestedInt64(o.Object, "status", "running"); n != int64(s.Bound) {
		into["running"] = int64(s.Bound)
	}
}

// sigsStatus is what must change in the status of a PodGroup of scheduler-plugins, nothing when it is as wished. As its
// controller has it, a group is scheduling when it has its members, and running when enough of them are; bound ones count
// as running here.
func sigsStatus(o *unstructured.Unstructured, s engine.GangStatus, now metav1.Time) map[string]any {
	want := phasePending
	switch g := sigsGang(o); {
	case s.Scheduled:
		want = phaseRunning
	case g.MinCount > 0 && s.Pending+s.Bound >= g.MinCount:
		want = phaseScheduling
	}
	status := map[string]any{}
	was := phaseOf(o)
	phase := advance(was, want, phasePending, phaseScheduling, phaseRunning)
	if phase != was {
		status["phase"] = phase
	}
	if _, found, _ := unstructured.NestedFieldNoCopy(o.Object, "status", "scheduleStartTime"); !found && phase == phaseScheduling {
		status["scheduleStartTime"] = now
	}
	if phase == want {
		counts(o, s, status)
	}
	return status
}

// volcanoStatus is the same for a PodGroup of Volcano.
func volcanoStatus(o *unstructured.Unstructured, s engine.GangStatus, now metav1.Time) map[string]any {
	want := phasePending
	switch {
	case s.Scheduled:
		want = phaseRunning
	case s.Admitted, s.Pending+s.Bound > 0: // where there are pods, somebody did not wait to be let in
		want = phaseInqueue
	}
	status := map[string]any{}
	was := phaseOf(o)
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
		list, changed = setVolcano(list, map[string]any{"type": "Scheduled", "status": "True", "reason": "Scheduled", "message": ""}, now)
		if i := volcanoCondition(list, "Unschedulable"); i >= 0 && list[i].(map[string]any)["status"] != "False" {
			list, _ = setVolcano(list, map[string]any{"type": "Unschedulable", "status": "False", "reason": "Scheduled", "message": ""}, now)
			changed = true
		}
	case s.Reason != "":
		list, changed = setVolcano(list, map[string]any{"type": "Unschedulable", "status": "True", "reason": s.Reason, "message": cut(s.Message)}, now)
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

// setVolcano puts a condition into a list and tells whether that changes anything.
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
