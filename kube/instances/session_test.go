// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/recording"
	"github.com/kumiki-scheduler/kumiki/core/shard"
	"github.com/kumiki-scheduler/kumiki/record"
)

// troubles are the objects of the troubles that planners had.
func (w *world) troubles() (list []string) {
	for _, f := range w.effects {
		if f, is := f.(engine.Trouble); is {
			list = append(list, f.Object)
		}
	}
	return list
}

// A panic of slow code for one pod sets that pod aside at its planner. The planner keeps its session.
func TestAPanicOfSlowCodeHarmsOnePod(t *testing.T) {
	scenario(t, 1, nil, func(w *world) {
		w.node("n0", 9)
		w.join()
		w.slow.bomb = "boom"
		w.pod("bomb", "slow", "", 0)
		w.pods(3, "slow")
		w.pass(time.Second)
		w.mustBind(3)
		if got := w.troubles(); !slices.Equal(got, []string{"default/bomb"}) || len(w.left) != 0 {
			w.Errorf("troubles %v, left %v", got, w.left)
		}
	})
}

// A planner whose engine is broken ends its session alone. Its units go to another planner, or without one to the loop;
// the planners join anew, and the loop goes on.
func TestABrokenPlannerJoinsAnew(t *testing.T) {
	scenario(t, 2, nil, func(w *world) {
		w.node("n0", 100)
		w.join()
		w.slow.bomb = cluster.Broken("a ledger")
		w.pod("bomb", "slow", "", 0)
		w.pods(10, "slow")
		w.pass(10 * time.Millisecond)
		w.mustBind(11)
		// Each planner that joins anew at once gets the pod again; then both pause for a second.
		if !slices.Equal(w.left, w.troubles()) || len(w.left) != 4 {
			w.Fatalf("left %v, troubles %v", w.left, w.troubles())
		}
		w.pass(2 * time.Second)
		if members := len(w.joined) - len(w.left); members != 2 {
			w.Errorf("%d planners are members, want 2", members)
		}
	})
}

// A planner whose sessions break again and again joins anew after 0, 1, 2, 4, 8, 16, 32, 60, 60 s: each join costs the
// loop a snapshot.
func TestAPlannerThatBreaksAgainAndAgain(t *testing.T) {
	scenario(t, 1, nil, func(w *world) {
		w.node("n0", 9)
		w.join()
		for range 4 * 60 * 10 {
			w.runner.planners[0].mail.put(message.Entries{Frame: []byte("no frame")})
			w.settle()
			time.Sleep(time.Second / 10)
		}
		if n := len(w.left); n < 9 || n > 11 {
			w.Errorf("%d sessions broke in four minutes", n)
		}
	})
}

// A session that breaks long after another one is followed by the next one at once.
func TestBreaksThatAreFarApart(t *testing.T) {
	scenario(t, 1, nil, func(w *world) {
		w.node("n0", 9)
		w.join()
		for range 3 {
			w.runner.planners[0].mail.put(message.Entries{Frame: []byte("no frame")})
			w.settle()
			w.settle()
			if joined, left := len(w.joined), len(w.left); joined != left+1 {
				w.Fatalf("joined %d times, and left %d times", joined, left)
			}
			w.pass(time.Duration(calm) + time.Minute)
		}
	})
}

// A planner whose frame is damaged joins anew, with a snapshot. Its lent units are decided, by itself or by others; what
// it proposed in the ended session does not count, although it arrives in the new one.
func TestADamagedFrame(t *testing.T) {
	scenario(t, 1, nil, func(w *world) {
		w.node("n0", 9)
		w.join()
		w.pods(5, "slow")
		for w.arbiter.Ready() {
			w.step(engine.Cycle{})
		}
		w.paused = true // proposals are held back, as the loop does
		w.settle()
		old := w.proposals
		w.proposals = nil
		w.runner.planners[0].mail.put(message.Entries{Frame: []byte("no frame")})
		w.settle()
		if len(old) != 5 || len(w.left) != 1 || len(w.joined) != 2 {
			w.Fatalf("%d proposals, left %v, joined %v", len(old), w.left, w.joined)
		}
		w.answers = nil
		w.step(message.Proposed{List: old})
		if len(w.answers) != 0 || len(w.bound) != 0 {
			w.Fatalf("proposals of an ended session are answered: %+v", w.answers)
		}
		w.paused = false
		w.settle()
		w.mustBind(5)
		if w.verdicts(shard.Taken) != 5 {
			w.Errorf("answers %+v", w.answers)
		}
	})
}

// A planner without an engine leaves, and says why in the log; the loop calls the slow code itself.
func TestAPlannerWithoutAnEngine(t *testing.T) {
	scenario(t, 2, nil, func(w *world) {
		w.node("n0", 9)
		w.broken.Store(true)
		w.join()
		w.pods(3, "slow")
		w.pass(time.Second)
		w.mustBind(3)
		if len(w.left) != 2 || len(w.joined) != 2 || w.verdicts(shard.Taken) != 0 {
			w.Errorf("joined %v, left %v, answers %+v", w.joined, w.left, w.answers)
		}
	})
}

// What users see of a unit that its planner cannot place comes from the planner: the condition and the event. An
// event wakes it there.
func TestAUnitThatDoesNotFit(t *testing.T) {
	scenario(t, 1, nil, func(w *world) {
		w.node("n0", 9)
		w.join()
		w.slow.reject = "p0"
		w.pods(1, "slow")
		w.settle()
		w.mustBind(0)
		said := map[string]int{}
		for _, f := range w.effects {
			switch f := f.(type) {
			case engine.Condition:
				said[fmt.Sprint("condition of ", f.Pod.Name)]++
			case engine.WriteEvent:
				said[fmt.Sprint("event of ", f.Pod.Name, " ", f.Reason)]++
			}
		}
		if want := map[string]int{"condition of p0": 1, "event of p0 FailedScheduling": 1}; !reflect.DeepEqual(said, want) {
			w.Fatalf("said %v, want %v", said, want)
		}
		if want := []string{"local-0 unschedulable p0"}; !slices.Equal(w.attempts, want) {
			w.Errorf("attempts %q, want %q", w.attempts, want)
		}
		w.slow.reject = ""
		w.node("n1", 9)
		w.settle()
		w.mustBind(1)
	})
}

// A planner tries a unit again when its backoff is over, and not only with its next heartbeat.
func TestBackoffAtAPlanner(t *testing.T) {
	scenario(t, 1, nil, func(w *world) {
		w.node("n0", 9)
		w.join()
		w.pass(600 * time.Millisecond)
		w.slow.fail = "p0"
		w.pods(1, "slow")
		w.settle()
		w.slow.fail = ""
		w.pass(350 * time.Millisecond)
		w.mustBind(0)
		w.pass(100 * time.Millisecond) // a fourth of a second, up to the next whole one
		w.mustBind(1)
	})
}

// A unit that evictions may help is given back, and decided by the arbiter.
func TestAUnitIsGivenBack(t *testing.T) {
	prepare := func(w *world) {
		w.configure = func(_ string, cfg *engine.Config) {
			for i := range cfg.Profiles {
				cfg.Profiles[i].Preemption = &preempt.Config{}
			}
		}
	}
	scenario(t, 2, prepare, func(w *world) {
		w.node("n0", 1)
		w.join()
		w.pods(1, "default-scheduler")
		w.settle()
		w.mustBind(1)
		w.priority = 10
		w.pod("blocked", "slow", "", 0)
		w.settle()
		if !slices.Contains(w.sent, "GivenBack") || w.lent() != 0 {
			w.Errorf("said %s, %d are lent", strings.Join(w.sent, " "), w.lent())
		}
	})
}

// With lending: Never the effects of the arbiter are those of an engine that knows of no planners, byte for byte,
// besides the log.
func TestNothingIsLentNothingChanges(t *testing.T) {
	prepare := func(w *world) {
		w.configure = func(_ string, cfg *engine.Config) { cfg.Instances.Policy.Lend = shard.LendNever }
	}
	scenario(t, 3, prepare, func(w *world) {
		w.join()
		cfg := w.config("")
		cfg.Instances = nil
		alone := engine.New(cfg)
		alone.Step(engine.Tick{Now: w.now()})
		alone.Step(engine.Synced{})
		var events []engine.Event
		w.kept = &events
		w.node("n0", 4)
		w.node("n1", 3)
		w.pods(9, "slow")
		for i := range 3 {
			w.pod(fmt.Sprintf("g%d", i), "default-scheduler", "g", 3)
		}
		for _, at := range []record.Time{2000 * record.Second, 2100 * record.Second} {
			events = append(events, engine.Tick{Now: at})
			events = append(events, slices.Repeat([]engine.Event{engine.Cycle{}}, 20)...)
		}
		binds := 0
		for _, ev := range events {
			effects := w.arbiter.Step(ev)
			w.runner.Carry(effects)
			got := recording.AppendEffects(nil, slices.DeleteFunc(slices.Clone(effects), func(f engine.Effect) bool {
				_, is := f.(message.Publish)
				return is
			}))
			want := recording.AppendEffects(nil, alone.Step(ev))
			if !bytes.Equal(got, want) {
				w.Fatalf("after %T:\n%s\nwant\n%s", ev, got, want)
			}
			binds += bytes.Count(got, []byte(`"Bind"`))
		}
		if binds == 0 {
			w.Errorf("nothing is bound")
		}
	})
}

// The planner of a pod that is deleted forgets it.
func TestALentPodIsDeleted(t *testing.T) {
	scenario(t, 1, nil, func(w *world) {
		w.node("n0", 9)
		w.join()
		w.slow.reject = "p0"
		w.pods(1, "slow")
		w.settle()
		w.step(engine.PodGone{Pod: record.PodRef{Namespace: "default", Name: "p0", UID: "p0"}})
		w.slow.reject = ""
		w.node("n1", 9)
		w.pass(20 * time.Second)
		if len(w.answers) != 0 || w.lent() != 0 {
			w.Errorf("answers %+v for a pod that is deleted", w.answers)
		}
	})
}
