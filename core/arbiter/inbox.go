// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"cmp"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/shard"
)

// Proposal is a placement of a whole unit that a planner has decided.
type Proposal = shard.Proposal

// Inbox is the proposals that were not checked yet.
type Inbox struct {
	sessions *shard.Sessions
	arrivals uint64
	// of are the proposals by planner. Invariant: each list is sorted by sequence and then arrival, and has at most
	// shard.Window entries.
	of [shard.MaxMembers][]arrived
}

type arrived struct {
	Proposal
	arrival uint64
}

// NewInbox returns the inbox of the arbiter of an epoch. No session is open.
func NewInbox(epoch shard.Epoch) *Inbox {
	return &Inbox{sessions: shard.NewSessions(epoch, 0)} // what owns the streams has the timeout
}

// Open starts a session of a planner. Its proposals of an earlier one are dropped.
func (in *Inbox) Open(o shard.Ordinal, id shard.Session) {
	in.of[o] = nil
	in.sessions.Resume(o, id)
}

// Close ends the session of a planner and drops its proposals.
func (in *Inbox) Close(o shard.Ordinal) {
	in.of[o] = nil
	in.sessions.Close(o)
}

// Arrive adds a proposal. It reports whether it did: not if the proposal is of another epoch or session, if its verdict
// is not kept any more, or if it is too far ahead of what was answered.
func (in *Inbox) Arrive(p Proposal) bool {
	if int(p.From) >= len(in.of) {
		return false
	}
	switch admission, _ := in.sessions.Arrived(p.From, p.Epoch, p.Session, p.Sequence); admission {
	case shard.Admit, shard.Repeat:
	case shard.OutOfOrder:
		if p.Sequence == 0 || p.Sequence-in.sessions.Last(p.From) > shard.Window {
			return false
		}
	default:
		return false
	}
	list := in.of[p.From]
	if len(list) >= shard.Window {
		return false
	}
	in.arrivals++
	a := arrived{p, in.arrivals}
	at, _ := slices.BinarySearchFunc(list, a, func(x, y arrived) int {
		return cmp.Or(cmp.Compare(x.Sequence, y.Sequence), cmp.Compare(x.arrival, y.arrival))
	})
	in.of[p.From] = slices.Insert(list, at, a)
	return true
}

// Next removes the proposal that is next and returns it; ok is false if there is none. With repeated it was answered
// before, with the verdict given, and must not be checked again. Otherwise Answered must be called before the next
// call.
func (in *Inbox) Next() (p Proposal, verdict shard.Verdict, repeated, ok bool) {
	best := in.best()
	if best == nil {
		return Proposal{}, shard.NoVerdict, false, false
	}
	p = best.Proposal
	in.of[p.From] = slices.Delete(in.of[p.From], 0, 1)
	admission, verdict := in.sessions.Arrived(p.From, p.Epoch, p.Session, p.Sequence)
	return p, verdict, admission != shard.Admit, true
}

// Ready reports whether Next would return a proposal.
func (in *Inbox) Ready() bool { return in.best() != nil }

// best returns the proposal that is next; nil for none.
func (in *Inbox) best() (best *arrived) {
	for o := range in.of {
		if len(in.of[o]) == 0 {
			continue
		}
		head := &in.of[o][0]
		switch {
		case head.Sequence > in.sessions.Last(head.From)+1: // one before it is missing
		case best == nil || head.before(best):
			best = head
		}
	}
	return best
}

// before reports whether a goes before b, if both are of different planners.
func (a *arrived) before(b *arrived) bool {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.arrival, b.arrival)) < 0
}

// Session returns the session of a planner; 0 for none.
func (in *Inbox) Session(o shard.Ordinal) shard.Session { return in.sessions.Current(o) }

// Answered records the verdict of the proposal that Next returned last.
func (in *Inbox) Answered(o shard.Ordinal, v shard.Verdict) { in.sessions.Answered(o, v) }
