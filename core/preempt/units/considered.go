// SPDX-License-Identifier: Apache-2.0

package units

import "slices"

// considered lists units that are not evicted, with the reason: first those that may be evicted, the least important
// first, because users ask about them most; then those that may not. whyStays is the reason of a unit that holds
// something where it would help.
func (us *candidates) considered(list []int, whyStays string) (told []Considered) {
	most := MaxConsidered - min(len(us.excluded), MaxConsidered/2)
	for i := len(us.all) - 1; i >= 0 && len(told) < most; i-- {
		if slices.Contains(list, i) {
			continue
		}
		u := &us.all[i]
		why := whyStays
		if u.idle {
			why = "nothing that it holds is where it would help"
		}
		told = append(told, Considered{Gang: u.gang, Pod: us.pods[u.lo].pod, Pods: int(u.hi - u.lo),
			Priority: u.priority, Why: why})
	}
	return append(told, us.excluded[:min(len(us.excluded), MaxConsidered-len(told))]...)
}

// Why a unit is not evicted.
const (
	notNeeded = "there is room for all without its going"
	notEnough = "its going, and that of all others, would not be enough" // no set of units is enough
)

// protected replaces the reason of units if the sets that would be enough violate budgets.
func protected(stay []Considered) {
	for i := range stay {
		if stay[i].Why == notEnough {
			stay[i].Why = "those that would have to go with it, or it, are protected by disruption budgets"
		}
	}
}
