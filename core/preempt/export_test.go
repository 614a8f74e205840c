// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/preempt/victim"
)

// CheckInvariants returns the first invariant of the finder's fields that does not hold, nil if all hold.
func (f *Finder) CheckInvariants() error {
	if len(f.protected) != 0 && len(f.protected) < len(f.victims) {
		return fmt.Errorf("%d victims on a row of which %d pods may go", len(f.victims), len(f.protected))
	}
	if !f.index.known {
		return nil
	}
	for n := range f.index.nodes {
		row := &f.index.nodes[n]
		if !slices.IsSortedFunc(row.pods, victim.CompareImportance) {
			return fmt.Errorf("the pods of row %d are not in the order of their importance", n)
		}
		for i := range row.pods {
			e := &row.pods[i]
			if e.Priority < f.index.floor {
				return fmt.Errorf("pod %s has priority %d, below the floor %d", e.Pod.Key(), e.Priority, f.index.floor)
			}
			if victim.TooLarge(&e.Pod.Spec.Held) && !row.tooLarge {
				return fmt.Errorf("pod %s holds an amount that is not safe to add up; row %d does not know", e.Pod.Key(), n)
			}
		}
	}
	return nil
}
