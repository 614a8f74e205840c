// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"testing"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/replica"
	"github.com/kumiki-scheduler/kumiki/core/shard"
	"github.com/kumiki-scheduler/kumiki/record"
)

// inSession is a planner in session 3, and what it says.
func inSession() (*Planner, *[]message.Effect) {
	var said []message.Effect
	p := New(replica.NewFollower().Reader, func(f message.Effect) { said = append(said, f) })
	p.Welcome(message.Welcomed{Ordinal: 2, Epoch: 1, Session: 3})
	return p, &said
}

func propose(p *Planner, uid string) {
	p.Propose(uid, cluster.GangKey{}, 0, []shard.Placement{{Pod: record.PodRef{UID: uid}, Node: "n"}})
}

// A planner decides nothing before its session, and no more than the arbiter keeps answers for.
func TestOpenProposalsAreBounded(t *testing.T) {
	p, said := inSession()
	if before := New(replica.NewFollower().Reader, nil); !before.Full() {
		t.Error("a planner without a session may propose")
	}
	for !p.Full() && len(*said) < 2*shard.Window {
		propose(p, "a")
	}
	if len(*said) != shard.Window {
		t.Fatalf("%d proposals are open, want %d", len(*said), shard.Window)
	}
	if _, ok := p.Answered(shard.Answer{Session: 3, Sequence: 1}); !ok || p.Full() {
		t.Errorf("answered %v, and full: %v", ok, p.Full())
	}
}

// What was answered, or is of another session, is ignored.
func TestAnswersOfOtherSessions(t *testing.T) {
	p, _ := inSession()
	propose(p, "a")
	for name, ans := range map[string]shard.Answer{
		"old session":   {Session: 2, Sequence: 1},
		"not proposed":  {Session: 3, Sequence: 2},
		"newer session": {Session: 4, Sequence: 1},
	} {
		if _, ok := p.Answered(ans); ok {
			t.Errorf("%s: it counts", name)
		}
	}
	o, ok := p.Answered(shard.Answer{Session: 3, Sequence: 1})
	if _, again := p.Answered(shard.Answer{Session: 3, Sequence: 1}); !ok || again || len(o.Pods) != 1 {
		t.Errorf("answered %v, again %v: %+v", ok, again, o)
	}
}

// A planner that cannot read the log asks once to join anew, and decides nothing more.
func TestADamagedFrameEndsTheSession(t *testing.T) {
	p, said := inSession()
	p.Read([]byte("no frame"))
	p.Read([]byte("no frame"))
	if _, is := (*said)[0].(message.Rejoin); !is || len(*said) != 1 || !p.Full() {
		t.Errorf("said %+v, full: %v", *said, p.Full())
	}
}
