// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"
	"slices"
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
// other, and in one domain; what does not fit now has no places, and what never fits has none on the empty cluster
// either; and after any other verdict than placed the store is as it was. Asked again, the answer is the same.
// Mutants: triesKept, quorumShort, domainsLeft, boundElsewhere, extrasCounted, slackForgotten, neverIsNow,
// budgetIgnored, hopeIgnoresSlack, unprovedNever, keepIgnored.
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
	if rapid.IntRange(0, 2).Draw(t, "keep") == 0 {
		all := w.answer(need)
		need.Keep = need.Quorum
		if kept := w.answer(need); kept.Verdict != all.Verdict || kept.Verdict == gang.Placed &&
			(kept.Most != max(need.Quorum, 0) || kept.Most+kept.Cut != all.Most) {
			t.Fatalf("%v, %d placed; and when %d may stay %v, %d placed and %d cut", all.Verdict, all.Most, need.Keep,
				kept.Verdict, kept.Most, kept.Cut)
		}
	}
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
	if again := w.answer(need); again.Verdict != a.Verdict || !slices.Equal(again.Nodes, a.Nodes) ||
		again.Tried != a.Tried || again.Why.Message != a.Why.Message {
		t.Fatalf("asked again: %v on %v after %d searches (%s), before %v on %v after %d (%s)",
			again.Verdict, again.Nodes, again.Tried, again.Why.Message, a.Verdict, a.Nodes, a.Tried, a.Why.Message)
	}
	if need.Budget == 0 {
		need.Budget = gang.DefaultBudget
	}
	if a.Tried > need.Budget+3*len(need.Members) { // a pass that has begun is ended
		t.Fatalf("%d searches with a budget of %d", a.Tried, need.Budget)
	}
	switch a.Verdict {
	case gang.Placed:
		if why := wrong(w, prof, need, a); why != "" {
			t.Fatal(why)
		}
	case gang.Unschedulable:
		if is, _ := feasible(w, prof, need, judgements); is {
			t.Fatalf("does not fit now, it says, and there are places")
		}
	case gang.NeverFits:
		for row := range w.store.Snapshot().Rows() {
			var gone []cluster.UID
			w.store.Snapshot().EachPod(cluster.NodeIdx(row), func(p *cluster.Pod, _ bool) {
				gone = append(gone, p.UID)
			})
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

// TestRoomIsNotDenied searches placements of gangs that were cut out of the nodes, so that there are some, with
// additional members beyond the quorum that do not fit: the search must not report that there are none for the gang.
// Passes place few of them. Mutants: blameNobody, slackBlameless, amountsMerged, touchedMerged, neverDig.
func TestRoomIsNotDenied(t *testing.T) { rapid.Check(t, roomIsNotDenied) }

func roomIsNotDenied(t *rapid.T) {
	w, c, need := newWorld(t), drawn(t), gang.Need{Budget: 4000}
	type part struct {
		cores, gibs int
		disk        string // that its node must have; empty for any
	}
	var parts []part
	for i := range 2 + c("nodes", 3) {
		cores, gibs := 6+c("cores", 8), 6+c("gibs", 8)
		disk := []string{"a", "b"}[c("disk", 2)]
		w.node(fmt.Sprintf("n%d", i), map[string]string{host: fmt.Sprintf("n%d", i), "disk": disk},
			map[string]string{"cpu": fmt.Sprint(cores), "memory": fmt.Sprintf("%dGi", gibs)})
		count := 2 + c("parts", 3)
		byCore, byGib := cut(c, cores, count), cut(c, gibs, count)
		for k := range count {
			parts = append(parts, part{byCore[k], byGib[k], []string{"", disk}[c("any disk", 2)]})
		}
	}
	need.Quorum = len(parts)
	for range c("extras", 3) {
		parts = append(parts, part{1 + c("extra cores", 6), 1 + c("extra gibs", 6),
			[]string{"a", "b", ""}[c("extra disk", 3)]})
	}
	for i, part := range rapid.Permutation(parts).Draw(t, "order") {
		p := pod(fmt.Sprintf("m%d", i), map[string]string{"cpu": fmt.Sprint(part.cores),
			"memory": fmt.Sprintf("%dGi", part.gibs)})
		if part.disk != "" {
			p.Spec.NodeSelector = map[string]string{"disk": part.disk}
		}
		need.Members = append(need.Members, w.intake.Pod(p))
	}
	switch a := w.answer(need); a.Verdict {
	case gang.Placed:
		if why := wrong(w, profile(t), need, a); why != "" {
			t.Fatal(why)
		}
	case gang.GaveUp:
		if a.Tried < need.Budget {
			t.Fatalf("gave up after %d searches of %d", a.Tried, need.Budget)
		}
	default:
		t.Fatalf("%v, it says, and there are places: %s", a.Verdict, a.Proof)
	}
}

// TestFewestRacks: members that are alike are in the smallest rack that holds them all, and otherwise in as few racks
// as can be, whether the rack is required or preferred. Mutants: roomiestFirst, preferredIgnored.
func TestFewestRacks(t *testing.T) { rapid.Check(t, fewestRacks) }

func fewestRacks(t *rapid.T) {
	w, sizes, total := newWorld(t), []int{}, 0
	for i := range rapid.IntRange(1, 6).Draw(t, "racks") {
		size := rapid.IntRange(1, 6).Draw(t, "size")
		w.racks(map[string]int{fmt.Sprintf("a/%d", i): size})
		sizes, total = append(sizes, size), total+size
	}
	count, required := rapid.IntRange(1, total).Draw(t, "members"), rapid.Bool().Draw(t, "required")
	a := w.answer(all(w.members(count, pod("m", cores(1))), cluster.GangTopology{Key: rack, Required: required}))
	slices.Sort(sizes)
	if at, _ := slices.BinarySearch(sizes, count); at < len(sizes) {
		if a.Verdict != gang.Placed || len(a.Domains) != 1 {
			t.Fatalf("%v in %v, though a rack of %d holds %d", a.Verdict, a.Domains, sizes[at], count)
		}
		if w.nodesOf(a.Domains[0]) != sizes[at] {
			t.Fatalf("%d members are in a rack of %d, racks are %v", count, w.nodesOf(a.Domains[0]), sizes)
		}
		return
	}
	if required {
		if a.Verdict != gang.NeverFits {
			t.Fatalf("%v, no rack of %v holds %d", a.Verdict, sizes, count)
		}
		return
	}
	least := 0
	for left := count; left > 0; least++ {
		left -= sizes[len(sizes)-1-least]
	}
	if a.Verdict != gang.Placed || len(a.Domains) != least {
		t.Fatalf("%v: %d members in %v, %d racks of %v would do", a.Verdict, count, a.Domains, least, sizes)
	}
}

// nodesOf is how many nodes a rack has.
func (w *world) nodesOf(name string) int { return w.store.Snapshot().WithLabel(rack, name).Count() }
