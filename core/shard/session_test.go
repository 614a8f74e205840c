// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"testing"

	"github.com/kumiki-scheduler/kumiki/record"
)

func TestProposalsThatArrive(t *testing.T) {
	s := NewSessions(7, 3*record.Second)
	old := s.Open(1, 0)
	id := s.Open(1, 0)
	answered := Sequence(Window + 10)
	for seq := Sequence(1); seq <= answered; seq++ {
		if a, _ := s.Arrived(1, 7, id, seq); a != Admit {
			t.Fatalf("proposal %d: %s", seq, a)
		}
		v := Taken
		if seq%2 == 0 {
			v = Refused
		}
		s.Answered(1, v)
	}
	for _, c := range []struct {
		name    string
		epoch   Epoch
		id      Session
		seq     Sequence
		want    Admission
		verdict Verdict
	}{
		{"the next one", 7, id, answered + 1, Admit, NoVerdict},
		{"the last one again", 7, id, answered, Repeat, Refused},
		{"the oldest that is kept", 7, id, 11, Repeat, Taken},
		{"one that is not kept", 7, id, 10, TooOld, NoVerdict},
		{"one too far", 7, id, answered + 2, OutOfOrder, NoVerdict},
		{"number 0", 7, id, 0, OutOfOrder, NoVerdict},
		{"an ended session", 7, old, 1, NoSession, NoVerdict},
		{"session 0", 7, 0, 1, NoSession, NoVerdict},
		{"another arbiter's", 6, id, answered + 1, WrongEpoch, NoVerdict},
	} {
		if a, v := s.Arrived(1, c.epoch, c.id, c.seq); a != c.want || v != c.verdict {
			t.Errorf("%s: %s %d, want %s %d", c.name, a, v, c.want, c.verdict)
		}
	}
	s.Close(1)
	s.Answered(1, Taken) // an answer that comes after the end changes nothing
	if a, _ := s.Arrived(1, 7, id, answered+1); a != NoSession {
		t.Errorf("after the end: %s", a)
	}
}

// Fault neverSilent: a member that does not answer keeps its units without end.
func TestSilentMembers(t *testing.T) {
	s := NewSessions(1, 3*record.Second)
	a, b := s.Open(1, 0), s.Open(2, 0)
	s.Heard(1, a, record.Second)
	s.Heard(2, b+1, 2*record.Second) // of another session
	if got := s.Silent(3*record.Second - 1); got != 0 {
		t.Errorf("before the timeout: %b", got)
	}
	if got := s.Silent(3 * record.Second); got != 1<<2 {
		t.Errorf("at the timeout of the second: %b", got)
	}
	s.Close(2)
	if got := s.Silent(4 * record.Second); got != 1<<1 {
		t.Errorf("at the timeout of the first: %b", got)
	}
}
