// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Preemption is the preemption settings of a profile beyond DefaultPreemptionArgs.
type Preemption struct {
	// Budgets is how disruption budgets count.
	Budgets Budgets
	// VictimTimeout is how long after the end of its grace period the capacity of a terminating pod is counted on, if
	// gangs take part; 0 means as long as the pod exists, as in kube-scheduler.
	VictimTimeout time.Duration
	// After is how long a pod or gang must have been unschedulable before pods are evicted for it, so that an
	// autoscaler can create nodes first; 0 means no time, as in kube-scheduler.
	After time.Duration
}

// Budgets is how disruption budgets count.
type Budgets string

// The values of Budgets.
const (
	// BestEffort violates a budget if there is no other capacity, as kube-scheduler does. It is the default.
	BestEffort Budgets = "BestEffort"
	// Strict never violates a budget.
	Strict Budgets = "Strict"
)

// BudgetModes returns the values of Budgets.
func BudgetModes() []Budgets { return []Budgets{BestEffort, Strict} }

const (
	// DefaultVictimTimeout is the default time that pods stay on a node that does not respond.
	DefaultVictimTimeout = 5 * time.Minute
	longestVictimTimeout = 24 * time.Hour
	longestAfter         = 24 * time.Hour
)

// UsualPreemption returns the defaults.
func UsualPreemption() Preemption {
	return Preemption{Budgets: BestEffort, VictimTimeout: DefaultVictimTimeout}
}

// PreemptionArgs is the form of Preemption in a file.
type PreemptionArgs struct {
	Budgets       *Budgets         `json:"budgets,omitempty"`
	VictimTimeout *metav1.Duration `json:"victimTimeout,omitempty"`
	After         *metav1.Duration `json:"after,omitempty"`
}

// preemption resolves the preemption settings of a profile.
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
	switch {
	case args.After == nil:
	case args.After.Duration < 0 || args.After.Duration > longestAfter:
		r.add(path+".after", "must be at least 0s and at most %v, got %v", longestAfter, args.After.Duration)
	default:
		out.After = args.After.Duration
	}
	return out
}

func (p Preemption) wire() *PreemptionArgs {
	return &PreemptionArgs{Budgets: &p.Budgets, VictimTimeout: &metav1.Duration{Duration: p.VictimTimeout},
		After: &metav1.Duration{Duration: p.After}}
}
