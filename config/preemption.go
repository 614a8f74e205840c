// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Preemption is what a profile's evictions keep to, beyond what DefaultPreemptionArgs say.
type Preemption struct {
	// Budgets is what disruption budgets count for.
	Budgets Budgets
	// VictimTimeout is for how long after the end of its grace period a pod that is being deleted is counted on as
	// room to come, where gangs take part; 0 for as long as it is there, as kube-scheduler does everywhere.
	VictimTimeout time.Duration
}

// Budgets is what disruption budgets count for.
type Budgets string

// What they may count for.
const (
	// BestEffort evicts against a budget where there is no other room, as kube-scheduler does. It is the default.
	BestEffort Budgets = "BestEffort"
	// Strict never does.
	Strict Budgets = "Strict"
)

// BudgetModes lists what budgets may count for.
func BudgetModes() []Budgets { return []Budgets{BestEffort, Strict} }

const (
	// DefaultVictimTimeout is as long as pods stay by default on a node that does not answer.
	DefaultVictimTimeout = 5 * time.Minute
	longestVictimTimeout = 24 * time.Hour
)

// UsualPreemption is what holds where nothing is said.
func UsualPreemption() Preemption {
	return Preemption{Budgets: BestEffort, VictimTimeout: DefaultVictimTimeout}
}

// PreemptionArgs is how Preemption stands in a file.
type PreemptionArgs struct {
	Budgets       *Budgets         `json:"budgets,omitempty"`
	VictimTimeout *metav1.Duration `json:"victimTimeout,omitempty"`
}

// preemption resolves what a profile's evictions keep to.
func (r *report) preemption(path string, args *PreemptionArgs) Preemption {
	out := UsualPreemption()
	if args == nil {
		return out
	}
	switch {
	case args.Budgets == nil:
	case slices.Contains(BudgetModes(), *args.Budgets):
		out.Budgets = *args.Budgets
	default:
		r.add(path+".budgets", "must be one of %v, got %q", BudgetModes(), *args.Budgets)
	}
	switch {
	case args.VictimTimeout == nil:
	case (args.VictimTimeout.Duration < 0 || args.VictimTimeout.Duration > longestVictimTimeout):
		r.add(path+".victimTimeout", "must be at least 0s and at most %v, got %v", longestVictimTimeout,
			args.VictimTimeout.Duration)
	default:
		out.VictimTimeout = args.VictimTimeout.Duration
	}
	return out
}

func (p Preemption) wire() *PreemptionArgs {
	return &PreemptionArgs{Budgets: &p.Budgets, VictimTimeout: &metav1.Duration{Duration: p.VictimTimeout}}
}
