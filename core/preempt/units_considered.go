// SPDX-License-Identifier: Apache-2.0

package preempt

import "slices"

// considered tells of units that stay, and why: of those that might have gone the least important first, since of these it is
// asked most; then of those that may not go. room tells that there is enough without them.
func (us *units) considered(list []int, room bool) (told []ConsideredUnit) {
	most := MostConsidered - min(len(us.kept), MostConsidered/2)
	for i := len(us.all) - 1; i >= 0 && len(told) < most; i-- {
		if slices.Contains(list, i) {
			continue
		}
		u := &us.all[i]
		why := "there is room for all without its going"
		switch {
		case u.idle:
			why = "nothing that it holds is where it would help"
		case !room:
			why = notEnough
		}
		told = append(told, ConsideredUnit{Gang: u.gang, Pod: us.pods[u.lo].pod, Pods: int(u.hi - u.lo), Priority: u.priority, Why: why})
	}
	return append(told, us.kept[:min(len(us.kept), MostConsidered-len(told))]...)
}

// notEnough is why a unit stays if no set of units would do.
const notEnough = "its going, and that of all others, would not be enough"

// protected words why units stay where the sets that would do go against budgets.
func protected(stay []ConsideredUnit) {
	for i := range stay {
		if stay[i].Why == notEnough {
			stay[i].Why = "those that would have to go with it, or it, are protected by disruption budgets"
		}
	}
}
