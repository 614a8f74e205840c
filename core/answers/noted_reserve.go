// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"errors"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// notedReserver is what reserves for plugins, with answers that are noted.
type notedReserver struct {
	plugin.Deferrer
	log *Log
	id  int
}

var _ plugin.Resumer = notedReserver{}

// Reserve notes the answer.
func (n notedReserver) Reserve(t *cluster.Trial, p *cluster.Pod, row cluster.NodeIdx) plugin.Reserved {
	return n.note(n.Deferrer.Reserve(t, p, row))
}

// note notes an answer of Reserve and Permit.
func (n notedReserver) note(got plugin.Reserved) plugin.Reserved {
	if sec := n.log.at(n.id, atReserve); sec != nil {
		kind := refusalOf(got.Reject, got.Err, got.Worded)
		if kind == accepted && got.Hold == nil {
			kind = holdsNothing
		}
		sec.refusal(n.log, kind, got.By, got.Reject, got.Err)
	}
	if got.Hold != nil {
		got.Hold = notedReservation{got.Hold, n}
	}
	return got
}

// ReserveLater returns a reservation whose answers are noted.
func (n notedReserver) ReserveLater(p *cluster.Pod, row cluster.NodeIdx) plugin.Deferred {
	later := n.Deferrer.ReserveLater(p, row)
	return notedDeferred{notedReservation{later, n}, later}
}

// NoFacts returns the facts of any reservation.
func (notedReserver) NoFacts() any { return &noFacts{} }

// Resume fails: what plugins reserved is in their memory.
func (notedReserver) Resume(any) (plugin.Reservation, error) {
	return nil, errors.New("what plugins of kube-scheduler's framework reserved cannot be resumed but in a replay")
}

// noFacts are the facts of a reservation: none, because a replay has its answers.
type noFacts struct{}

// notedReservation is a reservation whose answers are noted.
type notedReservation struct {
	plugin.Reservation
	n notedReserver
}

var (
	_ plugin.Factual            = notedReservation{}
	_ plugin.WaitingReservation = notedReservation{}
)

// Facts returns no facts.
func (notedReservation) Facts() any { return &noFacts{} }

// Ready notes the answer.
func (r notedReservation) Ready(s cluster.Snapshot, now record.Time) plugin.Readiness {
	got := r.Reservation.Ready(s, now)
	sec := r.n.log.at(r.n.id, atPermit)
	if sec == nil {
		return got
	}
	kind := refusalOf(got.Reject, got.Err, got.Worded)
	switch {
	case kind != accepted || got.Ready:
	case got.Again == 0:
		kind = waits
	default:
		kind = waitsUntil
	}
	sec.refusal(r.n.log, kind, got.By, got.Reject, got.Err)
	if kind == waitsUntil {
		sec.signed(int64(got.Again - now))
	}
	return got
}

// Rejecters notes whether there are any. They are always the same ones: what reserves, and the plugins of its profile.
func (r notedReservation) Rejecters() []string {
	waiting, may := r.Reservation.(plugin.WaitingReservation)
	if !may {
		return nil
	}
	names := waiting.Rejecters()
	if sec := r.n.log.at(r.n.id, atRejecters); sec != nil {
		sec.byte(byte(min(len(names), 1)))
	}
	return names
}

// notedDeferred is a notedReservation that is not made yet.
type notedDeferred struct {
	notedReservation
	later plugin.Deferred
}

var _ plugin.Deferred = notedDeferred{}

// Keep notes the answer.
func (r notedDeferred) Keep(s cluster.Snapshot) plugin.Reserved { return r.n.note(r.later.Keep(s)) }

// What a reservation answers, as a byte says.
const (
	accepted byte = iota
	holdsNothing
	waits
	waitsUntil
	rejects
	fails
	failsWorded
)

func refusalOf(reject string, err error, worded bool) byte {
	switch {
	case err != nil && worded:
		return failsWorded
	case err != nil:
		return fails
	case reject != "":
		return rejects
	}
	return accepted
}

// refusal notes the kind of an answer, and of a refusal the plugin and the reason.
func (s *section) refusal(l *Log, kind byte, by, reject string, err error) {
	s.byte(kind)
	switch kind {
	case rejects:
		s.number(l.text(by))
		s.number(l.text(reject))
	case fails, failsWorded:
		s.number(l.text(by))
		s.number(l.text(err.Error()))
	}
}
