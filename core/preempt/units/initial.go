// SPDX-License-Identifier: Apache-2.0

package units

// initial finds the answer of the reference algorithm, or a smaller loss that another order of sparing leads to. All
// useful units must be removed in the capacity. It reports whether an answer was found.
func (sk *search) initial() bool {
	if len(sk.useful) == 0 || !sk.capacity.enoughFor() {
		return false
	}
	if sk.capacity.known && sk.byCapacity() {
		return true
	}
	if sk.q.Rows != nil && len(sk.useful) >= sk.many {
		if sk.found || sk.byPlacement() {
			return true
		}
	}
	sk.capacity.setRemoved(sk.useful)
	return sk.spareByDryRuns(sk.useful) || sk.found
}

// byCapacity chooses by the capacity and confirms each choice by a dry run. It reports whether the search is
// complete: the reference algorithm would find no other answer.
func (sk *search) byCapacity() bool {
	plain := sk.spareByCapacity(sk.useful)
	sk.capacity.setRemoved(nil)
	other := sk.spareByCapacity(sk.leastFreedFirst(sk.useful, plain))
	costs, less := sk.candidates.loss(plain), sk.candidates.loss(other)
	better := less.Compare(costs) < 0
	if better && sk.fitsWithout(other) {
		sk.offer(other, less)
		if sk.capacity.exact {
			return true
		}
	}
	if sk.fitsWithout(plain) {
		sk.offer(plain, costs)
		return true
	}
	sk.capacity.exact = false
	return false
}
