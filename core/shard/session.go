// SPDX-License-Identifier: Apache-2.0

package shard

import "github.com/kumiki-scheduler/kumiki/record"

// Epoch counts the arbiters of a cluster: the number of transitions of the lease. A message of another epoch than the
// receiver's is refused.
type Epoch uint64

// Session identifies one connection of a planner to an arbiter; 0 is none.
type Session uint64

// Sequence numbers the proposals of a session, from 1 on.
type Sequence uint64

// Window is how many proposals of one session may be without a verdict, and for how many the arbiter keeps the verdict
// in case the planner did not get it.
const Window = 2048

// Verdict is the arbiter's answer to a proposal.
type Verdict uint8

const (
	NoVerdict Verdict = iota
	Taken             // capacity is taken, binds start
	Refused           // a filter refuses a placement on the ledger
	Gone              // the unit is not the planner's any more: bound, deleted, or recalled
)

// Admission is what an arbiter does with a proposal that arrives.
type Admission string

const (
	Admit      Admission = "Admit"      // check it against the ledger
	Repeat     Admission = "Repeat"     // it was answered; send the verdict again
	TooOld     Admission = "TooOld"     // it was answered, and the verdict is not kept any more
	OutOfOrder Admission = "OutOfOrder" // one before it is missing: the stream is broken
	WrongEpoch Admission = "WrongEpoch" // it was made for another arbiter
	NoSession  Admission = "NoSession"  // there is no such session
)

// Sessions are the open sessions of an arbiter. Liveness is all that a timeout decides: what a member whose session
// has ended still sends is refused by the session, not by a clock.
type Sessions struct {
	epoch   Epoch
	timeout record.Time
	last    Session             // the newest that was given
	of      [MaxMembers]session // of each member
}

type session struct {
	id       Session // 0 while there is none
	heard    record.Time
	answered Sequence // Invariant: proposals 1 to answered have a verdict.
	// Invariant: verdicts[(s-1)%Window] is the verdict of s for answered-Window < s <= answered.
	verdicts []Verdict
}

// NewSessions returns the sessions of an arbiter that has just become one. A member that is silent for timeout loses
// its session.
func NewSessions(epoch Epoch, timeout record.Time) *Sessions {
	return &Sessions{epoch: epoch, timeout: timeout}
}

// Open starts a session for a member and ends the one that it had.
func (s *Sessions) Open(o Ordinal, now record.Time) Session {
	s.last++
	s.of[o] = session{id: s.last, heard: now}
	return s.last
}

// Resume starts a session that was numbered elsewhere.
func (s *Sessions) Resume(o Ordinal, id Session) {
	s.last = max(s.last, id)
	s.of[o] = session{id: id}
}

// Last returns the newest proposal of a member that has a verdict; 0 for none.
func (s *Sessions) Last(o Ordinal) Sequence { return s.of[o].answered }

// Close ends the session of a member.
func (s *Sessions) Close(o Ordinal) { s.of[o] = session{} }

// Current returns the session of a member; 0 for none.
func (s *Sessions) Current(o Ordinal) Session { return s.of[o].id }

// Heard records that a member sent something in its session.
func (s *Sessions) Heard(o Ordinal, id Session, now record.Time) {
	if of := &s.of[o]; of.id == id && id != 0 && now > of.heard {
		of.heard = now
	}
}

// Silent returns the members that sent nothing for the timeout; their sessions stay open until Close.
func (s *Sessions) Silent(now record.Time) (silent Set) {
	for i := range s.of {
		if of := &s.of[i]; of.id != 0 && now-of.heard >= s.timeout {
			silent |= 1 << i
		}
	}
	return silent
}

// Arrived returns what to do with a proposal, and the verdict if it is a repeat.
func (s *Sessions) Arrived(o Ordinal, epoch Epoch, id Session, seq Sequence) (Admission, Verdict) {
	of := &s.of[o]
	switch {
	case epoch != s.epoch:
		return WrongEpoch, NoVerdict
	case id == 0 || of.id != id:
		return NoSession, NoVerdict
	case seq == of.answered+1:
		return Admit, NoVerdict
	case seq == 0 || seq > of.answered:
		return OutOfOrder, NoVerdict
	case of.answered-seq >= Window:
		return TooOld, NoVerdict
	}
	return Repeat, of.verdicts[(seq-1)%Window]
}

// Answered records the verdict of the proposal that was admitted last.
func (s *Sessions) Answered(o Ordinal, v Verdict) {
	of := &s.of[o]
	if of.id == 0 {
		return // the member was expelled meanwhile
	}
	if len(of.verdicts) < Window {
		of.verdicts = append(of.verdicts, v)
	} else {
		of.verdicts[of.answered%Window] = v
	}
	of.answered++
}
