// SPDX-License-Identifier: Apache-2.0

package bound

import "slices"

// LeastDifference returns the smallest difference between the domains with most and fewest pods after so many equal
// pods were added (bound B6, exact): each goes to a domain with the fewest pods that has capacity. counts are the pods
// that are there, most the pods that each domain can have. It returns false if the pods do not fit.
func LeastDifference(counts, most []int, pods int) (difference int, fits bool) {
	if len(counts) == 0 {
		return 0, pods == 0
	}
	now := slices.Clone(counts)
	for range pods {
		low := -1
		for d, n := range now {
			if n < most[d] && (low < 0 || n < now[low]) {
				low = d
			}
		}
		if low < 0 {
			return 0, false
		}
		now[low]++
	}
	return slices.Max(now) - slices.Min(now), true
}
