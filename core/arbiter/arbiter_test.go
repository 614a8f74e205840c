// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/shard"
)

// opened is an inbox of epoch 1 in which the planners 1 and 2 have a session of their number.
func opened() *Inbox {
	in := NewInbox(1)
	in.Open(1, 1)
	in.Open(2, 2)
	return in
}

func proposal(from shard.Ordinal, seq shard.Sequence, priority int32) Proposal {
	return Proposal{From: from, Epoch: 1, Session: shard.Session(from), Sequence: seq, Priority: priority,
		Unit: fmt.Sprintf("%d-%d", from, seq)}
}

// drain answers all proposals that are ready with Taken, and returns their units in order, with * for repeats.
func drain(in *Inbox) (units []string) {
	for {
		p, _, repeated, ok := in.Next()
		switch {
		case !ok:
			return units
		case repeated:
			units = append(units, p.Unit+"*")
		default:
			units = append(units, p.Unit)
			in.Answered(p.From, shard.Taken)
		}
	}
}

// The unit of the higher priority is first, then the one that came first; the proposals of a planner stay in order.
func TestOrderOfABatch(t *testing.T) {
	in := opened()
	for _, p := range []Proposal{proposal(1, 1, 0), proposal(2, 1, 5), proposal(2, 2, 0), proposal(1, 2, 9)} {
		if !in.Arrive(p) {
			t.Fatalf("%s is not accepted", p.Unit)
		}
	}
	if got, want := drain(in), []string{"2-1", "1-1", "1-2", "2-2"}; !slices.Equal(got, want) {
		t.Errorf("checked in the order %v, want %v", got, want)
	}
}

// What is of another epoch or session, has no number, or is too far ahead is not accepted; nor is what came in a
// session that has ended.
func TestForeignProposals(t *testing.T) {
	in := opened()
	for name, p := range map[string]Proposal{
		"epoch":     {From: 1, Epoch: 2, Session: 1, Sequence: 1},
		"session":   {From: 1, Epoch: 1, Session: 2, Sequence: 1},
		"no number": {From: 1, Epoch: 1, Session: 1},
		"far ahead": {From: 1, Epoch: 1, Session: 1, Sequence: shard.Window + 1},
		"no index":  {From: 200, Epoch: 1, Session: 1, Sequence: 1},
		"no member": {From: 3, Epoch: 1, Session: 3, Sequence: 1},
	} {
		if in.Arrive(p) {
			t.Errorf("%s: accepted", name)
		}
	}
	in.Arrive(proposal(1, 1, 0))
	in.Arrive(proposal(2, 1, 0))
	in.Open(1, 7)
	in.Close(2)
	if got := drain(in); len(got) > 0 {
		t.Errorf("proposals of ended sessions are checked: %v", got)
	}
}

// One planner cannot fill the memory of the arbiter with one proposal that it sends again and again.
func TestInboxIsBounded(t *testing.T) {
	in, accepted := opened(), 0
	for range 3 * shard.Window {
		if in.Arrive(proposal(1, 1, 0)) {
			accepted++
		}
	}
	if accepted != shard.Window {
		t.Errorf("%d accepted, want %d", accepted, shard.Window)
	}
}

// However a stream loses, repeats and reorders the proposals of two planners that send again what has no verdict: each
// is checked once, those of a planner in order, and every repeat gets the verdict of the first.
func TestBadStreams(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := opened()
		verdicts := map[string]shard.Verdict{} // unit -> verdict
		last := map[shard.Ordinal]shard.Sequence{}
		count := shard.Sequence(rapid.IntRange(1, 6).Draw(t, "proposals"))
		check := func() {
			p, verdict, repeated, ok := in.Next()
			switch {
			case !ok:
			case repeated:
				if verdict != verdicts[p.Unit] || verdict == shard.NoVerdict {
					t.Fatalf("%s gets %d again, it was %d", p.Unit, verdict, verdicts[p.Unit])
				}
			case p.Sequence != last[p.From]+1:
				t.Fatalf("%s is checked after %d", p.Unit, last[p.From])
			default:
				last[p.From] = p.Sequence
				verdicts[p.Unit] = rapid.SampledFrom([]shard.Verdict{shard.Taken, shard.Refused, shard.Gone}).Draw(t, "verdict")
				in.Answered(p.From, verdicts[p.Unit])
			}
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "check") {
				check()
				continue
			}
			o := shard.Ordinal(rapid.IntRange(1, 2).Draw(t, "from"))
			in.Arrive(proposal(o, shard.Sequence(rapid.IntRange(1, int(count)).Draw(t, "sequence")), int32(o)))
		}
		for seq := count; seq > 0; seq-- { // the planners send everything again, in the wrong order
			in.Arrive(proposal(1, seq, 0))
			in.Arrive(proposal(2, seq, 0))
		}
		for range 200 {
			check()
		}
		if last[1] != count || last[2] != count {
			t.Fatalf("of %d proposals %d and %d are checked", count, last[1], last[2])
		}
	})
}

// A refused proposal learns the newest entry about the node that its planner did not have: capacity that was taken, or
// another version of the node; not capacity that came free.
func TestNewestEntryAboutANode(t *testing.T) {
	var n Newest
	pod := &cluster.Pod{UID: "p", NodeName: "a"}
	n.Note(1, cluster.Change{Kind: cluster.NodeChanged, Node: &cluster.Node{Name: "a"}})
	n.Note(2, cluster.Change{Kind: cluster.PodTaken, Pod: pod, Name: "b"})
	n.Note(3, cluster.Change{Kind: cluster.PodBound, Pod: pod})
	n.Note(4, cluster.Change{Kind: cluster.PodRemoved, UID: "p"})
	for _, c := range []struct {
		node        string
		since, want shard.Position
	}{{"a", 0, 3}, {"a", 2, 3}, {"a", 3, 0}, {"b", 1, 2}, {"b", 2, 0}, {"c", 0, 0}} {
		if got := n.Since(c.node, c.since); got != c.want {
			t.Errorf("node %s since %d: %d, want %d", c.node, c.since, got, c.want)
		}
	}
	n.Note(5, cluster.Change{Kind: cluster.NodeRemoved, Name: "a"})
	if got := n.Since("a", 0); got != 0 {
		t.Errorf("node a is gone, and its newest entry is %d", got)
	}
}
