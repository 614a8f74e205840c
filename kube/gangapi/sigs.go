// SPDX-License-Identifier: Apache-2.0

package gangapi

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// maxGangTimeout bounds how long members may wait for each other, in seconds.
const maxGangTimeout = int64(convert.MaxGangTimeout / record.Second)

// sigsGang reads a PodGroup of scheduler-plugins (upstream: apis/scheduling/v1alpha1). minResources is not looked at:
// placing the members shows whether they fit.
func sigsGang(o *unstructured.Unstructured) *cluster.Gang {
	g := Meta(cluster.GangOfSigs, o)
	g.Phase = Phase(o)
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

// sigsStatus is what must change in the status of a PodGroup of scheduler-plugins, nothing when it is as wished. As its
// controller has it, a group is scheduling when it has its members, and running when enough of them are; bound ones
// count as running here.
func sigsStatus(o *unstructured.Unstructured, s engine.GangStatus, now metav1.Time) map[string]any {
	want := phasePending
	switch g := sigsGang(o); {
	case s.Scheduled:
		want = phaseRunning
	case g.MinCount > 0 && s.Pending+s.Bound >= g.MinCount:
		want = phaseScheduling
	}
	status := map[string]any{}
	was := Phase(o)
	phase := advance(was, want, phasePending, phaseScheduling, phaseRunning)
	if phase != was {
		status["phase"] = phase
	}
	if _, found, _ := unstructured.NestedFieldNoCopy(o.Object, "status", "scheduleStartTime"); !found &&
		phase == phaseScheduling {
		status["scheduleStartTime"] = now
	}
	if phase == want {
		counts(o, s, status)
	}
	return status
}
