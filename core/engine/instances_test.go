// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	roles "github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/recording"
	"github.com/kumiki-scheduler/kumiki/core/shard"
	"github.com/kumiki-scheduler/kumiki/record"
)

// TestInstancesHoldTheRules runs random histories of an arbiter and up to three planners: pods, gangs and nodes come,
// binds fail, planners join and crash, arbiters die, and messages are delivered in any order among streams. Held at
// every bind: no node is overcommitted (M1), no pod is bound twice (M2), gangs go together (M3). Held at every step of
// a planner: its ledger without its own proposals is the arbiter's at its position (M7), and it writes nothing. Held at
// rest: each pod that waits is in one place (M4, M5), and none waits that a single instance would place (M10).
func TestInstancesHoldTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newInstances(t, nil)
		w.setNode("n0", 2)
		w.setNode("n1", 3)
		w.join()
		for range rapid.IntRange(1, 100).Draw(t, "moves") {
			w.happen(t)
		}
		w.rest()
		w.checkRest()
	})
}

// TestASingleInstanceIsAsBefore: an arbiter without planners has the effects of an engine that knows of no other
// instances, byte for byte, besides the log (M11).
func TestASingleInstanceIsAsBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.setNode("n0")
		w.setNode("n1")
		for range rapid.IntRange(1, 60).Draw(t, "moves") {
			w.happen()
		}
		cfg := engine.ConfigOf(w.engine)
		cfg.Profiles = []engine.Profile{locked()}
		cfg.Instances = &engine.Instances{Name: "i0", Epoch: 1, Policy: shard.Policy{Lend: shard.LendAlways}}
		single, read := engine.New(cfg), recording.NewReader()
		var effects []byte
		for _, line := range bytes.SplitAfter(w.taped, []byte("\n")) {
			if len(line) == 0 {
				continue
			}
			ev, is, err := read.Event(line)
			if err != nil || !is {
				t.Fatalf("reading %s: %v", line, err)
			}
			all := slices.DeleteFunc(slices.Clone(single.Step(ev)), func(f engine.Effect) bool {
				_, is := f.(roles.Publish)
				return is
			})
			effects = recording.AppendEffects(effects, all)
		}
		if !bytes.Equal(effects, w.played) {
			t.Fatalf("a single instance among several does otherwise:\n%s", diff(string(w.played), string(effects)))
		}
	})
}

// pair is an arbiter with two planners on a node of two cores.
func pair(t *testing.T, rule func(*engine.Config)) *instances {
	w := newInstances(t, rule)
	w.setNode("n0", 2)
	w.join()
	w.join()
	w.quiet()
	return w
}

// lendAll lets the arbiter see and lend what waits, and the planners decide it, without an answer.
func (w *instances) lendAll() {
	for w.see() || w.arbiter.Ready() {
		w.toArbiter(engine.Cycle{})
	}
	for _, p := range w.planners {
		for w.deliverDown(p) {
		}
		for p.engine.Ready() {
			w.toPlanner(p, engine.Cycle{})
		}
	}
}

// verdicts are the answers so far, as words.
func (w *instances) verdicts() (list []string) {
	for _, ans := range w.answers {
		switch {
		case ans.Verdict == shard.Taken:
			list = append(list, "taken")
		case ans.Verdict == shard.Gone:
			list = append(list, "gone")
		case ans.Stays:
			list = append(list, fmt.Sprintf("refused by %s, stays", ans.Plugin))
		default:
			list = append(list, "refused by "+ans.Plugin)
		}
	}
	return list
}

func (w *instances) mustAnswer(t *testing.T, want ...string) {
	t.Helper()
	if got := w.verdicts(); !slices.Equal(got, want) {
		t.Fatalf("answered %q, want %q", got, want)
	}
}

// Two planners take the same two cores. The unit of the higher priority gets them, whatever came first. The other one
// is refused with the plugin and the entry of the log, and decided by the arbiter in the same Step.
func TestAConflictIsDecidedAtOnce(t *testing.T) {
	w := pair(t, nil)
	for i := range 6 { // the hash sends some to each
		w.pod(fmt.Sprintf("p%d", i), "default-scheduler", "2", "", int32(i))
	}
	w.lendAll()
	if len(w.planners[0].up) == 0 || len(w.planners[1].up) == 0 {
		t.Fatalf("%d and %d proposals", len(w.planners[0].up), len(w.planners[1].up))
	}
	before, decided := w.last, ""
	w.batch()
	got := w.verdicts() // by planner
	slices.Sort(got)
	if want := []string{"refused by NodeResourcesFit", "taken"}; !slices.Equal(got, want) {
		t.Fatalf("answered %q, want %q", got, want)
	}
	no := w.answers[slices.IndexFunc(w.answers, func(ans shard.Answer) bool { return ans.Verdict == shard.Refused })]
	if no.Node != "n0" || no.Entry <= before || no.Reason == "" {
		t.Errorf("refused: %+v; the log was at %d", no, before)
	}
	for _, p := range w.pods {
		u, _, waits := w.arbiter.View().Queue().Lookup(cluster.UID(p.UID))
		if waits && u.Gate == "" && u.Attempts == 1 {
			decided = p.Name // by a cycle of the arbiter; the others wait at planners
		}
	}
	if decided == "" {
		t.Errorf("no unit was decided by the arbiter")
	}
	w.rest()
	w.checkRest()
	w.mustBeBound(t, "p5")
}

func (w *instances) mustBeBound(t *testing.T, names ...string) {
	t.Helper()
	var bound []string
	for _, uid := range sortedKeys(w.pods) {
		if p := w.pods[uid]; p.Spec.NodeName != "" {
			bound = append(bound, p.Name)
		}
	}
	if !slices.Equal(bound, names) {
		t.Fatalf("bound are %v, want %v", bound, names)
	}
}

// A proposal of an old state is taken if it fits: staleness alone is no reason.
func TestAnOldProposalThatFitsIsTaken(t *testing.T) {
	w := pair(t, nil)
	w.pod("p0", "default-scheduler", "1", "", 0)
	w.lendAll()
	w.setNode("n0", 3)
	w.setNode("n1", 3)
	for w.see() {
	}
	w.batch()
	w.mustAnswer(t, "taken")
}

// A unit with foreign code goes back to its planner with the verdict. After the third refusal the nodes that are still
// free are kept for it.
func TestForeignUnitsGoBackAndGetAPromise(t *testing.T) {
	w := pair(t, nil)
	w.setNode("n1", 2)
	w.gang("g0", "slow", "2", 2)
	for round := range 3 {
		w.lendAll()
		name := fmt.Sprintf("taker%d", round)
		w.pod(name, "default-scheduler", "2", "", 1) // another scheduler binds it before the proposal arrives
		for _, p := range w.pods {
			if p.Name == name {
				p.Spec.NodeName = "n0"
				w.changed(p)
			}
		}
		for w.see() {
		}
		w.batch()
		for _, p := range w.pods {
			if p.Name == name {
				w.remove(p)
			}
		}
	}
	refused := "refused by NodeResourcesFit, stays"
	w.mustAnswer(t, refused, refused, refused)
	if kept := w.answers[2].Promised; len(kept) != 1 || kept[0].Node != "n1" {
		t.Fatalf("promised: %+v, want n1 alone", kept)
	}
	if nominated := w.arbiter.View().Queue().NominatedOn("n1"); len(nominated) != 1 {
		t.Fatalf("nominated on n1: %v", nominated)
	}
	w.tick(2 * record.Second)
	if nominated := w.arbiter.View().Queue().NominatedOn("n1"); len(nominated) != 0 {
		t.Errorf("the promise does not end: %v", nominated)
	}
	w.rest()
	w.checkRest()
}

// A gang is taken whole or not at all, and its planner lets all of it go.
func TestAGangIsTakenWhole(t *testing.T) {
	w := pair(t, nil)
	w.setNode("n1", 2)
	w.gang("g0", "default-scheduler", "1", 4)
	w.lendAll()
	w.batch()
	w.mustAnswer(t, "taken")
	if len(w.binds) != 4 {
		t.Fatalf("%d binds, want 4", len(w.binds))
	}
	w.rest()
	w.checkRest()
	for _, p := range w.planners {
		if n := len(slices.Collect(p.engine.View().AllPending())); n != 0 {
			t.Errorf("%s still has %d pods", p.name, n)
		}
	}
}

// A gang of which one member does not fit any more is refused whole.
func TestAGangIsRefusedWhole(t *testing.T) {
	w := pair(t, nil)
	w.setNode("n1", 2)
	w.gang("g0", "default-scheduler", "1", 4)
	w.lendAll()
	w.pod("taker", "default-scheduler", "1", "", 0)
	for _, p := range w.pods {
		if p.Name == "taker" {
			p.Spec.NodeName = "n1"
			w.changed(p)
		}
	}
	for w.see() {
	}
	w.batch()
	w.mustAnswer(t, "refused by NodeResourcesFit")
	if len(w.binds) != 0 {
		t.Fatalf("%d binds, want none", len(w.binds))
	}
	w.rest()
	w.checkRest()
}

// Evictions are the arbiter's: a planner gives a unit back that others must go for.
func TestUnitsThatNeedEvictionsAreGivenBack(t *testing.T) {
	w := pair(t, func(cfg *engine.Config) {
		for i := range cfg.Profiles {
			cfg.Profiles[i].Preemption = &preempt.Config{}
		}
	})
	w.pod("low", "default-scheduler", "2", "", 0)
	w.quiet()
	w.mustBeBound(t, "low")
	w.pod("high", "default-scheduler", "2", "", 10)
	w.lendAll()
	given := 0
	for _, p := range w.planners {
		for _, ev := range p.up {
			if _, is := ev.(roles.GivenBack); is {
				given++
			}
		}
	}
	if given != 1 {
		t.Fatalf("%d units are given back, want 1", given)
	}
	evicts := 0
	for _, p := range w.planners {
		for w.deliverUp(p) {
		}
	}
	for w.arbiter.Ready() {
		for _, f := range w.arbiter.Step(engine.Cycle{}) {
			if _, is := f.(engine.Evict); is {
				evicts++
			}
		}
	}
	if evicts != 1 {
		t.Errorf("%d evictions are requested, want 1", evicts)
	}
}

// The arbiter dies after it has taken a gang, of which a planner knows. That planner becomes the arbiter: it sends the
// same binds, and no other pod gets the capacity.
func TestAPlannerBecomesTheArbiter(t *testing.T) {
	w := pair(t, nil)
	w.gang("g0", "default-scheduler", "1", 2)
	w.lendAll()
	w.batch()
	for _, p := range w.planners {
		for w.deliverDown(p) {
		}
	}
	var nodes []string
	for _, b := range w.binds {
		nodes = append(nodes, b.Pod.Name+" on "+b.Node)
	}
	w.carryOut(0, false) // one of the two arrives at the API server
	w.pod("late", "default-scheduler", "2", "", 9)
	w.succeed()
	var again []string
	for _, b := range w.binds {
		again = append(again, b.Pod.Name+" on "+b.Node)
		if b.Gang == nil || b.Gang.Quorum != 2 {
			t.Errorf("bind of %s: gang %+v", b.Pod.Name, b.Gang)
		}
	}
	if !slices.Equal(again, nodes) {
		t.Fatalf("the binds %v are sent, want %v", again, nodes)
	}
	w.rest()
	w.checkRest()
	w.mustBeBound(t, "g0-0", "g0-1")
}
