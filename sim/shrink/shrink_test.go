// SPDX-License-Identifier: Apache-2.0

package shrink

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// TestListIsMinimal: the result holds, is in order, and none of its entries can be removed; for predicates that need
// several entries, and for such that are not monotonic.
func TestListIsMinimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "entries")
		whole := make([]int, n)
		for i := range whole {
			whole[i] = i
		}
		needs := rapid.SliceOfN(rapid.IntRange(0, 40), 0, 4).Draw(t, "needs")
		parity := rapid.Bool().Draw(t, "also needs as many as are even or odd")
		tries := 0
		holds := func(list []int) bool {
			tries++
			for _, x := range needs {
				if x < n && !slices.Contains(list, x) {
					return false
				}
			}
			return !parity || len(list)%2 == n%2
		}
		got := List(whole, holds)
		if !slices.IsSorted(got) || !holds(got) {
			t.Fatalf("%v of %d, needs %v", got, n, needs)
		}
		for i := range got {
			if holds(slices.Delete(slices.Clone(got), i, i+1)) {
				t.Fatalf("%v: %d is not needed", got, got[i])
			}
		}
		if tries > 20*(n+1)*(n+1) {
			t.Fatalf("%d tries for %d entries", tries, n)
		}
	})
}

func TestNumber(t *testing.T) {
	for _, c := range []struct{ from, needs, want int }{{100, 7, 7}, {100, 1, 1}, {100, 0, 1}, {1, 0, 1}, {0, 0, 0}} {
		if got := Number(1, c.from, func(v int) bool { return v >= c.needs }); got != c.want {
			t.Errorf("from %d, at least %d: %d", c.from, c.needs, got)
		}
	}
}

// TestYAML: lists, fields and counts become smaller; kept fields and comments of what is left stay.
func TestYAML(t *testing.T) {
	text := "name: x # kept\nseeds: 1-9\nnodes:\n- {name: a, count: 10}\n- {name: b, count: 20, labels: {k: v}}\n" +
		"workloads:\n- name: w\n  count: 64\n- name: v\nevents: [{at: 1s}]\n"
	tries := 0
	got, err := YAML([]byte(text), Keys{Keep: []string{"name", "seeds"}, Count: []string{"count"}}, func(b []byte) bool {
		tries++
		s := string(b)
		count := 0
		if _, after, is := strings.Cut(s, "name: b, count: "); is {
			fmt.Sscan(after, &count)
		}
		return count >= 5 && strings.Contains(s, "name: w")
	})
	want := "name: x # kept\nseeds: 1-9\nnodes:\n  - {name: b, count: 5}\nworkloads:\n  - name: w\n"
	if err != nil || string(got) != want {
		t.Errorf("after %d tries, %v:\n%s\nwant\n%s", tries, err, got, want)
	}
	if _, err := YAML([]byte("a: ["), Keys{}, func([]byte) bool { return true }); err == nil {
		t.Error("broken YAML has no error")
	}
}

// TestRecording: of a recording, only the pod, its node and the needed change of it are left, with their times.
func TestRecording(t *testing.T) {
	pod := func(name string) engine.Event {
		return engine.PodSet{Pod: &cluster.Pod{UID: cluster.UID(name), Name: name, Spec: &cluster.PodSpec{}}}
	}
	node := func(name string, full bool) engine.Event {
		return engine.NodeSet{Node: &cluster.Node{Name: name, Unschedulable: full}}
	}
	events := []engine.Event{engine.Tick{Now: 1}, engine.Tick{Now: 2}, node("a", false), node("b", false), pod("p"), pod("q"),
		engine.Synced{}, engine.Cycle{}, engine.Tick{Now: 3}, node("b", true), engine.Tick{Now: 4}, node("b", false),
		engine.Tick{Now: 5}, engine.BindDone{}, node("a", true), engine.PodGone{Pod: record.PodRef{UID: "q"}}, engine.Tick{Now: 6}}
	got := Recording(events, func(list []engine.Event) bool {
		full, has := false, false
		for _, ev := range list {
			switch ev := ev.(type) {
			case engine.NodeSet:
				full = full || ev.Node.Name == "b" && ev.Node.Unschedulable
			case engine.PodSet:
				has = has || ev.Pod.Name == "q"
			}
		}
		return full && has
	})
	want := []engine.Event{engine.Tick{Now: 2}, events[5], engine.Synced{}, engine.Tick{Now: 3}, events[9]}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("left %v\nwant %v", got, want)
	}
}
