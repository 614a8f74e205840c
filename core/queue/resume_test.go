// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"
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
