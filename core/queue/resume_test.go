// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// resume replaces the queue of a scenario by one that is restored from its State, after a change of it, if no unit is
// in flight. Nominations that have ended are not in a State; the engine takes them in each step, and the scenario later.
func (s *story) resume(change func(*State)) (err error) {
	if s.q == nil || s.q.flight.entries > 0 {
		return nil
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	freed, made := s.q.nominated.freed, s.q.nominated.made
	s.q.nominated.freed, s.q.nominated.made = nil, nil
	var outside []*Unit
	for _, name := range slices.Sorted(maps.Keys(s.popped)) {
		if u := s.popped[name]; u.at == nowhere && len(u.next)+len(u.gone)+len(u.joining) == 0 {
			outside = append(outside, u)
		}
	}
	st, index := s.q.State(outside)
	change(&st)
	s.cfg.Gangs = s.quorum
	again := New(s.cfg)
	units, err := again.Restore(st)
	if err != nil {
		return err
	}
	for name, u := range s.popped { // order: each name stands apart
		if at := index(u); at >= 0 {
			s.popped[name] = units[at]
		}
	}
	s.q = again
	s.q.nominated.freed, s.q.nominated.made = freed, made
	return s.q.checkInvariants()
}

// scenarios are the texts of all scenarios.
func scenarios(t *testing.T) (texts []string) {
	for _, file := range stories(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}

// TestResumedStories restores the queue after each line of each scenario, and nothing happens differently.
func TestResumedStories(t *testing.T) {
	for _, text := range scenarios(t) {
		told, err := tellResumed(text, func(*State) {})
		if err != nil || told != text {
			t.Errorf("%v\n%s", err, firstDifference(text, told))
		}
	}
}

// TestEveryFactOfAUnitIsNeeded drops each field of a State: at least one scenario happens differently then.
func TestEveryFactOfAUnitIsNeeded(t *testing.T) {
	notice := func(name string, change func(*State)) {
		for _, text := range scenarios(t) {
			if told, err := tellResumed(text, change); err != nil || told != text {
				return
			}
		}
		t.Errorf("every scenario happens alike without %s", name)
	}
	for i := range reflect.TypeFor[State]().NumField() {
		name := reflect.TypeFor[State]().Field(i).Name
		if name == "Asked" || name == "Shut" {
			continue // taken within a step, unless it panics; see core/engine
		}
		notice(name, func(st *State) { reflect.ValueOf(st).Elem().Field(i).SetZero() })
	}
	elsewhere := []string{"Profile", "Joined", "GateReason", "Priority", "Urgent", "Declared"} // core/engine shows them
	for i := range reflect.TypeFor[UnitState]().NumField() {
		if slices.Contains(elsewhere, reflect.TypeFor[UnitState]().Field(i).Name) {
			continue
		}
		notice("Units[]."+reflect.TypeFor[UnitState]().Field(i).Name, func(st *State) {
			for k := range st.Units {
				reflect.ValueOf(&st.Units[k]).Elem().Field(i).SetZero()
			}
		})
	}
	notice("Units[].Watched.Helped", func(st *State) {
		for k := range st.Units {
			st.Units[k].Watched.Helped = nil
		}
	})
	notice("Asks[].At", func(st *State) {
		for k := range st.Asks {
			st.Asks[k].At = 0
		}
	})
	notice("Asks[].Unit", func(st *State) {
		for k := range st.Asks {
			st.Asks[k].Unit = -1
		}
	})
	notice("Nominations[].Node", func(st *State) {
		for k := range st.Nominations {
			st.Nominations[k].Node = "elsewhere"
		}
	})
	notice("Nominations[].Priority", func(st *State) {
		for k := range st.Nominations {
			st.Nominations[k].Priority = 0
		}
	})
}

// contrary is a Less whose answers contradict each other.
type contrary struct{ calls int }

func (*contrary) Name() string                  { return "Contrary" }
func (*contrary) Before(_, _ *cluster.Pod) bool { panic("not called") }
func (c *contrary) EntityBefore(_, _ plugin.QueuedEntity) bool {
	c.calls++
	return c.calls*c.calls%7 < 3
}

// TestARestoredHeapIsTheSame: restoring a queue asks a Less of a plugin nothing, since a replay has no answers for that,
// and units stay in the order that its answers led to. It catches heapSortedOnRestore.
func TestARestoredHeapIsTheSame(t *testing.T) {
	less := &contrary{}
	cfg := Config{InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, PopFromBackoff: true, Less: less,
		UnschedulableTimeout: 300 * record.Second, Profiles: map[string]Profile{"": {}}}
	q := New(cfg)
	q.Tick(epoch)
	for i := range 40 {
		q.Add(podNamed(fmt.Sprintf("p%d", i), 1000))
		if i%3 == 0 {
			u, _ := q.Pop()
			q.Requeue(u, Rejection{Err: true})
		}
	}
	q.TakeMoves()
	st, _ := q.State(nil)
	asked := less.calls
	again := New(cfg)
	if _, err := again.Restore(st); err != nil || less.calls != asked {
		t.Fatalf("%d comparisons, %v", less.calls-asked, err)
	}
	names := func(h heap) (out []string) {
		for _, u := range h.units {
			out = append(out, u.Key)
		}
		return out
	}
	if then, now := names(q.active), names(again.active); !slices.Equal(then, now) || len(now) < 20 {
		t.Errorf("order of the heap: then %v, now %v", then, now)
	}
}

// TestARestoredQueueAsksHintsInTheSameOrder: in which order units that different plugins rejected are asked does not
// depend on what the queue held before its State. A replay has the answers of plugins in that order. It catches
// groupsAsCreated.
func TestARestoredQueueAsksHintsInTheSameOrder(t *testing.T) {
	var asked []string
	hint := func(name string) []plugin.Wake {
		return []plugin.Wake{{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add},
			Hint: func(p *cluster.Pod, _ plugin.Change) plugin.Hint {
				asked = append(asked, name+" "+p.Name)
				return plugin.SkipHint
			}}}
	}
	cfg := Config{InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, PopFromBackoff: true,
		UnschedulableTimeout: 300 * record.Second, Profiles: map[string]Profile{"": {Wakes: []PluginWakes{
			{Plugin: "A", Wakes: hint("A")}, {Plugin: "B", Wakes: hint("B")}}}}}
	q := New(cfg)
	q.Tick(epoch)
	reject := func(q *Queue, name, by string) {
		q.Add(podNamed(name, 1000))
		u, _ := q.Pop()
		q.Requeue(u, Rejection{Plugins: []string{by}})
		q.TakeMoves()
	}
	reject(q, "first", "B")
	reject(q, "second", "A")
	q.Delete(podNamed("first", 1000))
	q.TakeMoves()
	st, _ := q.State(nil)
	again := New(cfg)
	if _, err := again.Restore(st); err != nil {
		t.Fatal(err)
	}
	var orders [2][]string
	for i, q := range []*Queue{q, again} {
		reject(q, "third", "B")
		asked = nil
		q.Happened(happened("Node/Add", 1000))
		orders[i] = asked
	}
	if !slices.Equal(orders[0], orders[1]) || len(orders[0]) != 2 {
		t.Errorf("hints are asked in the order %v, and %v after a restart from the State", orders[0], orders[1])
	}
}
