// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/shard"
)

// Planners join when they are asked to, each from a snapshot; planners that join at the same position share one. Until
// then the arbiter decides.
func TestStart(t *testing.T) {
	scenario(t, 3, nil, func(w *world) {
		w.node("n0", 4)
		w.pod("early", "slow", "", 0)
		w.settle()
		if len(w.joined) != 0 || w.lent() != 0 {
			w.Fatalf("joined %v, %d pods are lent before", w.joined, w.lent())
		}
		w.mustBind(1)
		w.join()
		slices.Sort(w.joined)
		if want := []string{"local-0", "local-1", "local-2"}; !slices.Equal(w.joined, want) {
			w.Fatalf("joined %v, want %v", w.joined, want)
		}
		if w.snapshots != 1 {
			w.Errorf("%d snapshots for planners that join at once", w.snapshots)
		}
		w.pod("late", "slow", "", 0)
		w.settle()
		w.mustBind(2)
		if w.verdicts(shard.Taken) != 1 {
			w.Errorf("answers %+v, want one proposal that is taken", w.answers)
		}
	})
}

// A planner that joins after others gets a snapshot of that position: an older one does not go with the entries that
// follow.
func TestALatePlannerGetsAFreshSnapshot(t *testing.T) {
	scenario(t, 2, nil, func(w *world) {
		w.node("n0", 4)
		w.runner.planners[0].mail.put(join{})
		w.settle()
		w.node("n1", 4)
		w.pod("p", "slow", "", 0)
		w.settle()
		w.runner.planners[1].mail.put(join{})
		w.settle()
		w.node("n2", 4)
		w.settle()
		if len(w.left) != 0 || w.snapshots != 2 {
			w.Errorf("left %v, after %d snapshots; want none, and 2", w.left, w.snapshots)
		}
	})
}

// With four planners four calls of slow code are under way at once, and the time is a fourth.
func TestSlowCodeRunsSideBySide(t *testing.T) {
	for planners, want := range map[int]time.Duration{1: 40, 4: 10} { // calls one after another
		scenario(t, planners, nil, func(w *world) {
			w.node("n0", 100)
			w.slow.takes = 5 * time.Millisecond
			w.join()
			w.pods(40, "slow")
			began := time.Now()
			for len(w.bound) < 40 && time.Since(began) < time.Minute {
				w.pass(time.Millisecond)
			}
			if most := w.slow.most.Load(); most != int32(planners) {
				w.Errorf("%d planners: %d calls at once", planners, most)
			}
			// The load of a planner is at most 1.25 of its share.
			if took := time.Since(began); took > want*5*time.Millisecond*5/4+5*time.Millisecond {
				w.Errorf("%d planners took %v", planners, took)
			}
		})
	}
}

// Auto lends units with slow code, Never nothing, Always native ones too.
func TestLending(t *testing.T) {
	for lending, want := range map[shard.Lending]int{shard.LendAuto: 1, shard.LendNever: 0, shard.LendAlways: 2} {
		prepare := func(w *world) {
			w.configure = func(_ string, cfg *engine.Config) { cfg.Instances.Policy.Lend = lending }
		}
		scenario(t, 2, prepare, func(w *world) {
			w.node("n0", 4)
			w.join()
			w.pod("native", "default-scheduler", "", 0)
			w.pod("foreign", "slow", "", 0)
			w.settle()
			w.mustBind(2)
			if got := w.verdicts(shard.Taken); got != want {
				w.Errorf("%s: %d proposals are taken, want %d", lending, got, want)
			}
		})
	}
}

// A unit that does not fit any more is refused and stays with its planner, which places it once there is capacity.
func TestRefusal(t *testing.T) {
	scenario(t, 2, nil, func(w *world) {
		w.node("n0", 1)
		w.join()
		w.slow.takes = 5 * time.Millisecond
		w.pod("slow", "slow", "", 0)
		w.settle()
		w.pod("fast", "default-scheduler", "", 0) // while the slow code is asked
		w.settle()
		w.pass(6 * time.Millisecond)
		if got := w.verdicts(shard.Refused); got != 1 || w.bound["slow"] != "" || w.lent() != 1 {
			w.Fatalf("answers %+v, bound %v, %d lent", w.answers, w.bound, w.lent())
		}
		if no := w.answers[0]; no.Plugin != "NodeResourcesFit" || no.Node != "n0" || no.Entry == 0 {
			w.Errorf("refused: %+v", no)
		}
		refused := slices.DeleteFunc(slices.Clone(w.attempts), func(a string) bool { return !strings.Contains(a, "recalled slow") })
		if len(refused) != 1 || slices.ContainsFunc(w.attempts, func(a string) bool { return strings.Contains(a, "placed") }) {
			w.Errorf("attempts %q, want one that was taken back and none that placed a pod", w.attempts)
		}
		w.node("n1", 1)
		w.pass(12 * time.Second) // backoffs
		w.mustBind(2)
	})
}

// A gang is decided whole by one planner. A second one that does not fit beside it waits whole.
func TestGangs(t *testing.T) {
	scenario(t, 2, nil, func(w *world) {
		w.node("n0", 2)
		w.node("n1", 3)
		w.join()
		for i := range 3 {
			w.pod(fmt.Sprintf("a%d", i), "slow", "a", 3)
			w.pod(fmt.Sprintf("b%d", i), "slow", "b", 3)
		}
		w.pass(12 * time.Second)
		w.mustBind(3)
		first := 'x'
		for name := range w.bound { // order: all are of one gang, or the test fails
			if first != 'x' && rune(name[0]) != first {
				w.Fatalf("parts of both gangs are bound: %v", w.bound)
			}
			first = rune(name[0])
		}
		w.node("n2", 2)
		w.pass(12 * time.Second)
		w.mustBind(6)
	})
}

// While the arbiter pauses, planners decide up to their limit. What they propose is checked after it, in order, and
// nothing is lost.
func TestPause(t *testing.T) {
	scenario(t, 2, nil, func(w *world) {
		w.node("n0", 500)
		w.join()
		w.pods(30, "slow")
		for w.arbiter.Ready() {
			w.step(engine.Cycle{})
		}
		w.paused = true
		w.settle()
		if len(w.proposals) != 30 || len(w.bound) != 0 {
			w.Fatalf("%d proposals, %d binds", len(w.proposals), len(w.bound))
		}
		w.pass(5 * time.Second)
		w.mustBind(0)
		w.paused = false
		w.settle()
		w.mustBind(30)
		if w.verdicts(shard.Taken) != 30 {
			w.Errorf("answers %+v", w.answers)
		}
	})
}

// The context ends while slow code is asked: Run waits for the call, and no planner says anything after Run.
func TestStop(t *testing.T) {
	scenario(t, 3, nil, func(w *world) {
		w.node("n0", 100)
		w.slow.takes = 5 * time.Millisecond
		w.join()
		w.pods(30, "slow")
		w.settle()
		if w.slow.now.Load() == 0 {
			w.Fatal("no call is under way")
		}
		w.stop()
		w.settle()
		select {
		case <-w.ended:
			w.Fatal("Run has returned while slow code is asked")
		default:
		}
		<-w.ended
		w.runner.Take()
		time.Sleep(time.Minute)
		if said := w.runner.Take(); len(said) > 0 || w.slow.now.Load() != 0 {
			w.Errorf("after the end: %d messages, %d calls", len(said), w.slow.now.Load())
		}
	})
}

// While a call of slow code hangs for 30 s, native units are decided at once, and so are units with slow code that are
// lent to other planners.
func TestSlowCodeThatHangs(t *testing.T) {
	scenario(t, 2, nil, func(w *world) {
		w.node("n0", 100)
		w.join()
		w.slow.takes = 30 * time.Second
		w.pod("hangs", "slow", "", 0)
		w.settle()
		w.slow.takes = 0
		for i := range 20 {
			w.pod(fmt.Sprint("native", i), "default-scheduler", "", 0)
			w.pod(fmt.Sprint("other", i), "slow", "", 0)
		}
		w.settle()
		native := 0
		for name := range w.bound { // order: counted
			if strings.HasPrefix(name, "native") {
				native++
			}
		}
		// The load of a planner is bounded: the one that does not hang has about half of the others.
		if others := len(w.bound) - native; native != 20 || others < 8 || w.bound["hangs"] != "" {
			w.Errorf("%d native units and %d others are bound", native, others)
		}
		time.Sleep(30 * time.Second)
		w.settle()
		w.mustBind(41)
	})
}
