// SPDX-License-Identifier: Apache-2.0

package gangapi

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
)

// field is a value of an object whose type was not checked.
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
var typeText = map[string]string{"int64": "a whole number", "map[string]interface {}": "an object",
	"[]interface {}": "a list"}

// Phase reads the phase, empty for one that no controller could have written.
func Phase(o *unstructured.Unstructured) string {
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

// advance is the phase that follows from the present one and what is wished, in an order: a phase is never withdrawn,
// and one that is not in the order is of another controller (Finished, Failed, Completed) and stays.
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
