// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
)

// mixes are the families of instances that answers are compared on.
var mixes = map[string]mix{
	"resources": {nodes: 5, members: 5, kinds: 3, used: true},
	"picky":     {nodes: 5, members: 5, kinds: 3, used: true, picky: true, extras: true},
	"wide":      {nodes: 4, members: 5, kinds: 3, used: true, picky: true, extras: true, wide: true},
	"domains":   {nodes: 6, members: 4, kinds: 2, used: true, picky: true, extras: true, domains: true},
	"all":       {nodes: 5, members: 4, kinds: 3, used: true, picky: true, extras: true, domains: true, wide: true},
}

// judgements bounds the exact solver, so that a test ends.
const judgements = 40_000

func drawn(t *rapid.T) pick {
	return func(what string, n int) int { return rapid.IntRange(0, n-1).Draw(t, what) }
}

// TestAnswersHold compares answers with the exact solver on small clusters: what is placed fits, one member after the
// other, and in one domain; what does not fit now has no places, and what never fits has none on the empty cluster either;
// and after any other verdict than placed the store is as it was.
// It catches: a try that is not taken back, a bound that is not one, a member skipped beyond the quorum, a domain left, a
// class of rows that are not alike, a jump over the member to blame.
func TestAnswersHold(t *testing.T) {
	for name, m := range mixes {
		t.Run(name, func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { answerHolds(t, m) }) })
	}
}

func answerHolds(t *rapid.T, m mix) {
	w := newWorld(t)
	need := instance(w, drawn(t), m)
	need.Budget = rapid.SampledFrom([]int{0, 0, 1, 20, 200}).Draw(t, "budget")
	prof := profile(t)
	before := fingerprint(w.store.Snapshot())
	var a gang.Answer
	w.try(need, func(got gang.Answer) {
		if a = got; a.Verdict != gang.Placed && fingerprint(w.store.Snapshot()) != before {
			t.Fatalf("%v, and this is left:\n%s", a.Verdict, fingerprint(w.store.Snapshot()))
		}
	})
	if fingerprint(w.store.Snapshot()) != before {
		t.Fatal("an answer outlives its trial")
	}
	if spent := max(need.Budget, gang.DefaultBudget); a.Tried > 4*len(need.Members)+spent {
		t.Fatalf("%d searches with a budget of %d", a.Tried, need.Budget)
	}
	switch a.Verdict {
	case gang.Placed:
		if why := wrong(w, prof, need, a); why != "" {
			t.Fatal(why)
		}
	case gang.NoRoom:
		if is, _ := feasible(w, prof, need, judgements); is {
			t.Fatalf("does not fit now, it says, and there are places")
		}
	case gang.NeverFits:
		for row := range w.store.Snapshot().Rows() {
			var gone []cluster.UID
			w.store.Snapshot().EachPod(cluster.NodeIdx(row), func(p *cluster.Pod, _ bool) { gone = append(gone, p.UID) })
			for _, uid := range gone {
				w.store.DeletePod(uid)
			}
		}
		need.Bound = nil
		if is, _ := feasible(w, prof, need, judgements); is {
			t.Fatalf("never fits, it says (%s), and there are places on the empty cluster", a.Proof)
		}
	case gang.Failed:
		t.Fatal(a.Err)
	}
	if a.Verdict != gang.Placed && len(a.Plugins) == 0 {
		t.Fatalf("%v, and no plugin is told that could help", a.Verdict)
	}
}
