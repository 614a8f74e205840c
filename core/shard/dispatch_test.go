// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func number(n int32) *int32 { return &n }

// Each case is a unit and where it goes. Member 0 is the arbiter, 1 is of pool cpu, 2 and 3 are of pool gpu, 3 drains.
func TestDispatch(t *testing.T) {
	var m Members
	for i, pool := range []string{"cpu", "cpu", "gpu", "gpu"} {
		if _, err := m.Join(fmt.Sprint("m", i), map[string]string{"pool": pool}, DefaultWeight); err != nil {
			t.Fatal(err)
		}
	}
	m.Drain("m3", true)
	gpu, cpu := map[string]string{"pool": "gpu"}, map[string]string{"pool": "cpu"}
	rules := []Rule{
		{Scheduler: "gpu", Instances: gpu},
		{Namespaces: []string{"web", "api"}, MaxPriority: number(10), Instances: cpu},
		{Pods: map[string]string{"tenant": "red"}, Instances: map[string]string{"pool": "red"}},
		{MinPriority: number(1000), Instances: gpu},
	}
	for _, c := range []struct {
		name string
		lend Lending
		busy bool
		unit Unit
		want string
	}{
		{"a cheap native unit stays", LendAuto, false, Unit{}, "KeptByPolicy"},
		{"a foreign one goes", LendAuto, false, Unit{Foreign: true, Scheduler: "gpu"}, "Lent to 2 by rule 0"},
		{"an expensive one goes", LendAuto, false, Unit{Expensive: true, Scheduler: "gpu"}, "Lent to 2 by rule 0"},
		{"everything goes while the arbiter is busy", LendAuto, true, Unit{Namespace: "web"}, "Lent to 1 by rule 1"},
		{"nothing goes", LendNever, true, Unit{Foreign: true}, "KeptByPolicy"},
		{"the priority is above the rule's", LendAlways, false, Unit{Namespace: "web", Priority: 1000},
			"Lent to 2 by rule 3"},
		{"no instance has the labels", LendAlways, false, Unit{Labels: map[string]string{"tenant": "red"}},
			"KeptNoMatch by rule 2"},
		{"refused three times", LendAlways, false, Unit{ID: "refused"}, "KeptRefused"},
		{"refused three times, foreign", LendAlways, false, Unit{ID: "refused", Foreign: true, Scheduler: "gpu"},
			"Lent to 2 by rule 0"},
	} {
		var l Loans
		for range MaxRefusals {
			l.Refused(Unit{ID: "refused", Pods: 1})
		}
		c.unit.Pods = 1
		p := &Policy{Lend: c.lend, Rules: rules}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		got := Dispatch(p, &m, &l, 0, c.busy, c.unit)
		text := string(got.Outcome)
		if got.Outcome == Lent {
			text += fmt.Sprint(" to ", got.To)
		}
		if got.Rule >= 0 && got.Outcome != KeptByPolicy {
			text += fmt.Sprint(" by rule ", got.Rule)
		}
		if text != c.want {
			t.Errorf("%s: %s, want %s", c.name, text, c.want)
		}
	}
	for i := range 50 {
		u := Unit{Owner: fmt.Sprint(i), Scheduler: "gpu", Pods: 1}
		if got := Dispatch(&Policy{Lend: LendAlways, Rules: rules}, &m, &Loans{}, 0, false, u); got.To != 2 {
			t.Errorf("owner %d goes to %d, which drains or is of another pool", i, got.To)
		}
	}
	alone := Members{}
	join(t, &alone, "a", DefaultWeight)
	if got := Dispatch(&Policy{Lend: LendAlways}, &alone, &Loans{}, 0, true, Unit{Pods: 1}); got.Outcome != KeptNoPlanner {
		t.Errorf("with the arbiter alone: %v", got)
	}
}

func TestPolicyIsChecked(t *testing.T) {
	never := Rule{Instances: map[string]string{"a": "b"}, MinPriority: number(2), MaxPriority: number(1)}
	p := Policy{Lend: "Sometimes", Rules: []Rule{{}, never}}
	err := p.Validate()
	for _, want := range []string{`lend: "Sometimes"`, "dispatch[0].instances: required",
		"dispatch[1]: minPriority 2 is above maxPriority 1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// Fault unbounded: one owner with a thousand pods does not go to one planner alone. Fault wholeUnits: the load counts
// pods, not units.
func TestLoadIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Members
		var l Loans
		n := rapid.IntRange(2, 8).Draw(t, "members")
		weights := uint64(0)
		for i := range n {
			w := Weight(rapid.IntRange(500, 3000).Draw(t, "weight"))
			if _, err := m.Join(fmt.Sprint("m", i), nil, w); err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				weights += uint64(w)
			}
		}
		p := &Policy{Lend: LendAlways}
		total := 0
		for i := range rapid.IntRange(1, 200).Draw(t, "units") {
			u := Unit{ID: fmt.Sprint("u", i), Owner: rapid.SampledFrom([]string{"a", "a", "a", "b"}).Draw(t, "owner"),
				Pods: rapid.IntRange(1, 3).Draw(t, "pods")}
			c := Dispatch(p, &m, &l, 0, false, u)
			if c.Outcome != Lent || c.To == 0 {
				t.Fatalf("unit %d: %+v", i, c)
			}
			total += u.Pods
			// over is how far a member's load would be above 1.25 of its share of all loans, rounded up.
			over := func(o Ordinal) int {
				share := uint64(boundNumerator*total) * uint64(m.of[o].Weight)
				bound := (share + boundDenominator*weights - 1) / (boundDenominator * weights)
				return l.Load(o) + u.Pods - int(bound)
			}
			for o := Ordinal(1); int(o) < n && over(c.To) > 0; o++ {
				if over(o) <= 0 {
					t.Fatalf("unit %d of %d pods goes to %d, which is over its bound; %d is not", i, u.Pods, c.To, o)
				}
				if (l.Load(o)+u.Pods)*int(m.of[c.To].Weight) < (l.Load(c.To)+u.Pods)*int(m.of[o].Weight) {
					t.Fatalf("unit %d of %d pods goes to %d, which has more load for its weight than %d", i, u.Pods, c.To, o)
				}
			}
			l.Lend(Loan{Unit: u.ID, Pods: u.Pods, To: c.To})
		}
	})
}
