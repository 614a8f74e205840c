// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Loans against a list of them. Fault staleReturn: a message of an ended session ends no loan of a newer one.
func TestLoans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Loans
		var twin []Loan
		unit := rapid.Custom(func(t *rapid.T) string { return fmt.Sprint("u", rapid.IntRange(0, 5).Draw(t, "unit")) })
		find := func(u string) int {
			for i := range twin {
				if twin[i].Unit == u {
					return i
				}
			}
			return -1
		}
		remove := func(i int) { twin = append(twin[:i:i], twin[i+1:]...) }
		for step := range rapid.IntRange(1, 40).Draw(t, "steps") {
			u := unit.Draw(t, "unit")
			to, s := Ordinal(rapid.IntRange(1, 3).Draw(t, "to")), Session(rapid.IntRange(1, 2).Draw(t, "session"))
			switch i := find(u); rapid.SampledFrom([]string{"lend", "lend", "return", "reclaim", "gone"}).Draw(t, "what") {
			case "lend":
				if i < 0 {
					loan := Loan{Unit: u, Pods: 1 + step%3, To: to, Session: s, Since: record.Time(step)}
					l.Lend(loan)
					twin = append(twin, loan)
				}
			case "return":
				want := i >= 0 && twin[i].Session == s
				if got := l.Return(u, s); got != want {
					t.Fatalf("return %s in session %d: %v, want %v", u, s, got, want)
				}
				if want {
					remove(i)
				}
			case "reclaim":
				for _, loan := range l.Reclaim(to) { // in the order of the list
					for i = 0; twin[i].To != to; {
						i++
					}
					if twin[i] != loan {
						t.Fatalf("reclaimed %v, want %v", loan, twin[i])
					}
					remove(i)
				}
			case "gone":
				l.Gone(u)
				if i >= 0 {
					remove(i)
				}
			}
			var load [MaxMembers]int
			for _, loan := range twin {
				load[loan.To] += loan.Pods
				if got, lent := l.Of(loan.Unit); !lent || got != loan {
					t.Fatalf("loan of %s: %v, want %v", loan.Unit, got, loan)
				}
			}
			if l.Len() != len(twin) || l.load != load {
				t.Fatalf("%d loans with load %v, want %d with %v", l.Len(), l.load[:4], len(twin), load[:4])
			}
		}
	})
}

// Fault endlessExchange: M9, at most three refusals, then the exchange ends.
func TestRefusalsEnd(t *testing.T) {
	for _, c := range []struct {
		unit Unit
		want []AfterRefusal
	}{
		{Unit{ID: "small", Pods: 16}, []AfterRefusal{DecideHere}},
		{Unit{ID: "large", Pods: 17}, []AfterRefusal{GiveBack, GiveBack, DecideHere}},
		{Unit{ID: "foreign", Pods: 1, Foreign: true}, []AfterRefusal{GiveBack, GiveBack, Promise}},
	} {
		var l Loans
		for i, want := range c.want {
			if got := l.Refused(c.unit); got != want {
				t.Errorf("%s: after refusal %d %s, want %s", c.unit.ID, i+1, got, want)
			}
		}
		l.Gone(c.unit.ID)
		if n := l.Refusals(c.unit.ID); n != 0 {
			t.Errorf("%s has %d refusals after it is gone", c.unit.ID, n)
		}
	}
}

// M4: a unit is lent at most once.
func TestLendingTwicePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("the second loan of a unit must panic")
		}
	}()
	var l Loans
	l.Lend(Loan{Unit: "u", Pods: 1, To: 1})
	l.Lend(Loan{Unit: "u", Pods: 1, To: 2})
}
