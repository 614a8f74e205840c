// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"errors"
	"fmt"
	"slices"
)

// Unit is what is dispatched: a pod, or a whole gang.
type Unit struct {
	ID    string // of one unit: the UID of a pod, or namespace and name of a gang
	Owner string // of what created it: the gang, else the controller, else the pod
	Pods  int    // how many pods it has. Invariant: Pods >= 1

	Scheduler string // its schedulerName
	Namespace string
	Labels    map[string]string // key -> value; of a gang, those of its first pod
	Priority  int32

	Foreign   bool // its decision runs code that is not native: extenders, hosted plugins
	Expensive bool // its decision is estimated to cost three times the arbiter's check of a proposal
}

// Rule sends units to instances by their labels. Empty fields match everything.
type Rule struct {
	Scheduler   string
	Namespaces  []string
	Pods        map[string]string // label -> value, each of which a unit must have
	MinPriority *int32
	MaxPriority *int32
	Instances   map[string]string // label -> value, each of which an instance must have
}

func (r *Rule) matches(u Unit) bool {
	return (r.Scheduler == "" || r.Scheduler == u.Scheduler) &&
		(len(r.Namespaces) == 0 || slices.Contains(r.Namespaces, u.Namespace)) &&
		hasAll(u.Labels, r.Pods) &&
		(r.MinPriority == nil || *r.MinPriority <= u.Priority) &&
		(r.MaxPriority == nil || u.Priority <= *r.MaxPriority)
}

// Lending states which units go to planners.
type Lending string

const (
	// LendAuto lends units with foreign code, expensive units, and everything while the arbiter's loop is busy.
	LendAuto Lending = "Auto"
	// LendAlways lends every unit for which there is a planner.
	LendAlways Lending = "Always"
	// LendNever lends nothing.
	LendNever Lending = "Never"
)

// Policy is how units are dispatched.
type Policy struct {
	Lend  Lending
	Rules []Rule // the first that matches a unit decides
}

// Validate returns what is wrong with p; nil if nothing is.
func (p *Policy) Validate() error {
	var errs []error
	switch p.Lend {
	case LendAuto, LendAlways, LendNever:
	default:
		errs = append(errs, fmt.Errorf("lend: %q: must be %s, %s or %s", p.Lend, LendAuto, LendAlways, LendNever))
	}
	for i, r := range p.Rules {
		if len(r.Instances) == 0 {
			errs = append(errs, fmt.Errorf("dispatch[%d].instances: required: without it the rule selects nothing", i))
		}
		if r.MinPriority != nil && r.MaxPriority != nil && *r.MinPriority > *r.MaxPriority {
			errs = append(errs, fmt.Errorf("dispatch[%d]: minPriority %d is above maxPriority %d",
				i, *r.MinPriority, *r.MaxPriority))
		}
	}
	return errors.Join(errs...)
}

// Outcome is where a unit goes, and why.
type Outcome string

const (
	Lent Outcome = "Lent" // it goes to a planner
	// The arbiter decides it itself:
	KeptByPolicy  Outcome = "KeptByPolicy"  // its decision is cheap, or nothing is lent
	KeptNoPlanner Outcome = "KeptNoPlanner" // no planner is a member, or all drain
	KeptNoMatch   Outcome = "KeptNoMatch"   // no planner has the labels that the unit's rule asks for
	KeptRefused   Outcome = "KeptRefused"   // its proposals were refused too often
)

// Choice is the result of a dispatch.
type Choice struct {
	Outcome Outcome
	To      Ordinal // if Outcome is Lent
	Rule    int     // the index of the rule that matched; -1 for none
}

// The load of a member is bounded by this fraction of its share of all loans (Mirrokni, Thorup and Zadimoghaddam
// 2018).
const (
	boundNumerator   = 5
	boundDenominator = 4
)

// Dispatch chooses who decides a unit. self is the arbiter, which never gets a loan; busy reports whether its loop is
// at 60 % of its time or above. Nothing changes: Loans.Lend records a loan.
//
// A gang goes whole to one member, whatever its size. The units of one owner go to the same member as far as the
// bound of the load permits: what exceeds it goes to the owner's next one.
func Dispatch(p *Policy, m *Members, l *Loans, self Ordinal, busy bool, u Unit) Choice {
	rule := slices.IndexFunc(p.Rules, func(r Rule) bool { return r.matches(u) })
	kept := func(o Outcome) Choice { return Choice{Outcome: o, Rule: rule} }
	if p.Lend == LendNever || p.Lend == LendAuto && !u.Foreign && !u.Expensive && !busy {
		return kept(KeptByPolicy)
	}
	if l.Refusals(u.ID) >= MaxRefusals && !u.Foreign {
		return kept(KeptRefused)
	}
	eligible := m.available(nil) &^ (1 << self)
	if eligible == 0 {
		return kept(KeptNoPlanner)
	}
	if rule >= 0 {
		if eligible &= m.available(p.Rules[rule].Instances); eligible == 0 {
			return kept(KeptNoMatch)
		}
	}
	return Choice{Outcome: Lent, Rule: rule, To: withinBound(m, l, m.Rank(u.Owner, eligible), u.Pods)}
}

// withinBound returns the first member of ranked whose load stays within its bound with so many pods more. If there
// is none, as for a gang that is larger than each bound, it is the one with the least load by its weight.
func withinBound(m *Members, l *Loans, ranked []Ordinal, pods int) Ordinal {
	total, weights := uint64(pods), uint64(0)
	for _, o := range ranked {
		total += uint64(l.load[o])
		weights += uint64(m.of[o].Weight)
	}
	least := ranked[0]
	for _, o := range ranked {
		load, weight := uint64(l.load[o]+pods), uint64(m.of[o].Weight)
		// load <= ceil(bound * total * weight / weights)
		share := boundNumerator * total * weight
		if (load-1)*boundDenominator*weights < share {
			return o
		}
		if load*uint64(m.of[least].Weight) < uint64(l.load[least]+pods)*weight {
			least = o
		}
	}
	return least
}
