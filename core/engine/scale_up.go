// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// A cluster autoscaler creates nodes for each pod that has the reason Unschedulable, and knows no gangs. If it may
// create fewer nodes than a gang needs, it creates those, and keeps them as long as the pods have that reason, although
// the gang cannot start. So the configuration may limit how long the pods of a blocked gang have it. After that they
// have the reason that autoscalers ignore, so that the nodes become empty and are removed. After a pause the nodes are
// requested again. The gang itself is tried as before.

// ScaleUp limits how long a blocked gang requests nodes from an autoscaler.
type ScaleUp struct {
	// For is how long it does since it was first blocked, and after each pause; 0 means without limit.
	For record.Time
	// Pause is how long it does not. Must be more than 0 if For is.
	Pause record.Time
}

// scheduleScaleUp reports whether the pods of a gang that has just been rejected are to show the reason for which
// autoscalers create nodes. It sets the time at which that changes.
func (e *Engine) scheduleScaleUp(st *gangState) (requests bool) {
	s := e.cfg.ScaleUp
	if s.For == 0 || st.blocked == 0 {
		return true
	}
	period := s.For + s.Pause
	since := (e.now - st.blocked) % period
	requests = since < s.For
	left := period - since
	if requests {
		left = s.For - since
	}
	st.scaleUp.Phase = phaseScaleUp
	e.deadlines.Set(&st.scaleUp, e.now+left)
	return requests
}

// turnScaleUps tries the gangs again that begin or cease to request nodes, which changes the reason of their pods.
func (e *Engine) turnScaleUps() {
	var due []cluster.GangKey
	for key, st := range e.gangs.of { // order: sorted below
		if at := st.scaleUp.At(); at != 0 && at <= e.now {
			due = append(due, key)
		}
	}
	slices.SortFunc(due, cluster.GangKey.Compare)
	for _, key := range due {
		e.deadlines.Stop(&e.gangs.of[key].scaleUp)
		e.reconsider(key, "it requests nodes for a limited time")
	}
}

// forgetState drops what is remembered of a gang.
func (e *Engine) forgetState(key cluster.GangKey) {
	if st := e.gangs.of[key]; st != nil {
		e.deadlines.Stop(&st.scaleUp)
		delete(e.gangs.of, key)
	}
}
