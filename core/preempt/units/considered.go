// SPDX-License-Identifier: Apache-2.0

package units

import "slices"

// considered lists units that are not evicted, with the reason: first those that may be evicted, the least important
// first, because users ask about them most; then those that may not. `room` says that there is enough capacity without
// them.
func (us *candidates) considered(list []int, room bool) (told []Considered) {
	most := MaxConsidered - min(len(us.excluded), MaxConsidered/2)
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
		told = append(told, Considered{Gang: u.gang, Pod: us.pods[u.lo].pod, Pods: int(u.hi - u.lo), Priority: u.priority, Why: why})
	}
	return append(told, us.excluded[:min(len(us.excluded), MaxConsidered-len(told))]...)
}

// notEnough is why a unit is not evicted if no set of units is enough.
const notEnough = "its going, and that of all others, would not be enough"

// protected replaces the reason of units if the sets that would be enough violate budgets.
func protected(stay []Considered) {
	for i := range stay {
		if stay[i].Why == notEnough {
			stay[i].Why = "those that would have to go with it, or it, are protected by disruption budgets"
		}
	}
}
