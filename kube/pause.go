// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/record"
)

// A pause is kept on the lease, because it must outlive any process: the next leader reads it there before it
// decides. Rejected: an endpoint that switches the leader, because a restart or a take-over would end the pause without
// a word.
const (
	// PausedAnnotation asks the leader to bind and evict nothing. Its value is a Pause in JSON, or a reason in plain
	// words; "false" asks for nothing.
	PausedAnnotation = "kumiki.dev/paused"
	// PauseStateAnnotation is the leader's answer, a PauseState in JSON; a leader that is not asked to pause takes it
	// down.
	PauseStateAnnotation = "kumiki.dev/pause-state"
)

// Pause is a wish that nothing be bound or evicted.
type Pause struct {
	Since  time.Time `json:"since"`
	Reason string    `json:"reason,omitempty"`
	// By is who asked, as far as it is known.
	By string `json:"by,omitempty"`
}

// PauseState is how far a leader is with a pause.
type PauseState struct {
	// Paused tells that nothing is sent, and that what was sent before has been answered.
	Paused bool `json:"paused"`
	// Holder is the leader who says so, by its identity in the lease.
	Holder string `json:"holder"`
	// InFlight counts the pods for which something was sent before the pause and is not answered.
	InFlight int `json:"inFlight,omitempty"`
}

// PauseOf reads the pause that a lease asks for, nil when it asks for none. A text that is not a Pause is a reason:
// people write annotations by hand, and it is safer to stop.
func PauseOf(lease *coordinationv1.Lease) *Pause {
	text, asked := lease.Annotations[PausedAnnotation]
	if !asked || text == "false" {
		return nil
	}
	var p Pause
	if json.Unmarshal([]byte(text), &p) != nil {
		p = Pause{Reason: text}
		if text == "true" {
			p.Reason = ""
		}
	}
	return &p
}

// PauseStateOf reads the answer of the leader. It is the zero value when there is none, or one of a leader of the past.
func PauseStateOf(lease *coordinationv1.Lease) PauseState {
	var s PauseState
	if json.Unmarshal([]byte(lease.Annotations[PauseStateAnnotation]), &s) != nil ||
		lease.Spec.HolderIdentity == nil || s.Holder != *lease.Spec.HolderIdentity {
		return PauseState{}
	}
	return s
}

// Text is the pause as it stands in the annotation.
func (p Pause) Text() string { return jsonText(p) }

func jsonText(of any) string {
	text, err := json.Marshal(of)
	if err != nil {
		panic(err) // nothing in it can fail
	}
	return string(text)
}

// Record is the pause as reports tell it.
func (p *Pause) Record() *record.Pause {
	if p == nil {
		return nil
	}
	out := &record.Pause{Reason: p.Reason, By: p.By}
	if !p.Since.IsZero() {
		out.Since = record.Time(p.Since.UnixNano())
	}
	return out
}

// pausing is the pause as this process last read it on the lease. The election's goroutine writes, anyone reads.
type pausing struct {
	asked atomic.Pointer[Pause] // nil: none
	// hold stops and starts what acts; it does not block. Nil when nothing acts yet.
	hold func(on bool)
	// inFlight counts the pods for which something was sent and is not answered; nil when nothing acts yet.
	inFlight func() int
	// tell is called with whether this process leads and is paused; may be nil.
	tell func(paused bool)
}

// read takes note of what a lease asks for.
func (p *pausing) read(lease *coordinationv1.Lease) {
	is, was := PauseOf(lease), p.asked.Load()
	p.asked.Store(is)
	if (is == nil) == (was == nil) {
		return
	}
	if p.hold != nil {
		p.hold(is != nil)
	}
	if log := klog.Background(); is != nil {
		log.Info("Scheduling is paused: nothing is bound or evicted until the lease says otherwise",
			"lease", lease.Namespace+"/"+lease.Name, "since", is.Since, "reason", is.Reason, "by", is.By)
	} else {
		log.Info("Scheduling goes on after a pause", "lease", lease.Namespace+"/"+lease.Name, "since", was.Since)
	}
}

// answer puts what the leader says about the pause on a lease that is given to us, and takes it down when we release
// it.
func (p *pausing) answer(lease *coordinationv1.Lease, held bool) {
	paused := held && PauseOf(lease) != nil
	if p.tell != nil {
		p.tell(paused)
	}
	if !paused {
		delete(lease.Annotations, PauseStateAnnotation)
		return
	}
	s := PauseState{Holder: *lease.Spec.HolderIdentity}
	if p.inFlight != nil {
		s.InFlight = p.inFlight()
	}
	s.Paused = s.InFlight == 0
	lease.Annotations[PauseStateAnnotation] = jsonText(s)
}
