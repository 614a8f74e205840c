// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/record"
)

// MaxRefusals is how many proposals for a unit may be refused before the arbiter decides the unit itself or, if its
// decision runs foreign code, promises it capacity. It bounds how often a unit goes back and forth.
const MaxRefusals = 3

// Loan is a unit that a planner has.
type Loan struct {
	Unit    string
	Pods    int
	To      Ordinal
	Session Session
	Since   record.Time
}

// Loans are the units that planners have. The zero value has none and is ready.
type Loans struct {
	of map[string]*Loan // unit -> its loan. Invariant: a unit has at most one.
	// Invariant: load[o] is the sum of Pods of the loans to o.
	load     [MaxMembers]int
	refusals map[string]int // unit -> proposals for it that were refused since it came. Invariant: value > 0.
}

// Lend records a loan. The unit must not be lent: a unit at two planners could be placed twice.
func (l *Loans) Lend(loan Loan) {
	if old := l.of[loan.Unit]; old != nil {
		panic(fmt.Sprintf("shard: lend %s to %d: it is lent to %d", loan.Unit, loan.To, old.To))
	}
	if loan.Pods < 1 {
		panic(fmt.Sprintf("shard: lend %s: it has %d pods", loan.Unit, loan.Pods))
	}
	if l.of == nil {
		l.of = map[string]*Loan{}
	}
	l.of[loan.Unit] = &loan
	l.load[loan.To] += loan.Pods
}

// Of returns the loan of a unit.
func (l *Loans) Of(unit string) (Loan, bool) {
	if loan := l.of[unit]; loan != nil {
		return *loan, true
	}
	return Loan{}, false
}

// Len returns how many units are lent.
func (l *Loans) Len() int { return len(l.of) }

// Load returns how many pods a member has on loan.
func (l *Loans) Load(o Ordinal) int { return l.load[o] }

// Return ends a loan: its planner gave the unit back, or the arbiter recalls it. The result reports whether the unit
// was lent in that session; if not, it stays as it is, since the message is older than the loan.
func (l *Loans) Return(unit string, s Session) bool {
	loan := l.of[unit]
	if loan == nil || loan.Session != s {
		return false
	}
	l.end(loan)
	return true
}

func (l *Loans) end(loan *Loan) {
	l.load[loan.To] -= loan.Pods
	delete(l.of, loan.Unit)
}

// Reclaim ends all loans to a member that left or is expelled, and returns them, the oldest first.
func (l *Loans) Reclaim(o Ordinal) []Loan {
	var ended []Loan
	for _, loan := range l.of { // order: sorted below
		if loan.To == o {
			ended = append(ended, *loan)
		}
	}
	slices.SortFunc(ended, func(a, b Loan) int {
		switch {
		case a.Since != b.Since && a.Since < b.Since, a.Since == b.Since && a.Unit < b.Unit:
			return -1
		}
		return 1
	})
	for i := range ended {
		l.end(l.of[ended[i].Unit])
	}
	return ended
}

// AfterRefusal is what follows the refusal of a proposal.
type AfterRefusal string

const (
	// DecideHere: the arbiter decides the unit in the same iteration of its loop.
	DecideHere AfterRefusal = "DecideHere"
	// GiveBack: the planner gets the verdict and decides anew.
	GiveBack AfterRefusal = "GiveBack"
	// Promise: the nodes of the proposal that are still free are promised to the unit for PromiseFor.
	Promise AfterRefusal = "Promise"
)

// PromiseFor is how long capacity is promised to a unit whose proposals were refused MaxRefusals times.
const PromiseFor = record.Second

// smallUnit is the largest unit, in pods, that the arbiter decides itself at once after a refusal.
const smallUnit = 16

// Refused counts a refusal and returns what follows. A native unit that is small never goes back, so that a conflict
// costs one decision and no round trip.
func (l *Loans) Refused(u Unit) AfterRefusal {
	if l.refusals == nil {
		l.refusals = map[string]int{}
	}
	l.refusals[u.ID]++
	switch {
	case !u.Foreign && (u.Pods <= smallUnit || l.refusals[u.ID] >= MaxRefusals):
		return DecideHere
	case u.Foreign && l.refusals[u.ID] >= MaxRefusals:
		return Promise
	}
	return GiveBack
}

// Refusals returns how many proposals for a unit were refused.
func (l *Loans) Refusals(unit string) int { return l.refusals[unit] }

// Gone forgets a unit that has its placement, or does not exist any more.
func (l *Loans) Gone(unit string) {
	if loan := l.of[unit]; loan != nil {
		l.end(loan)
	}
	delete(l.refusals, unit)
}
