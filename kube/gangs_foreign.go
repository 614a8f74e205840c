// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// maxGangTimeout bounds how long members may wait for each other, in seconds: a day.
const maxGangTimeout = 24 * 60 * 60

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
