// SPDX-License-Identifier: Apache-2.0

package evict

import "github.com/kumiki-scheduler/kumiki/record"

// Backoff is a wait that doubles with each failure in a row.
type Backoff struct {
	// First is the wait after the first failure, Most the longest one.
	First, Most record.Time
}

// After returns the wait after n failures in a row; n is at least 1.
func (b Backoff) After(n int) record.Time {
	wait := b.First
	for i := 1; i < n && wait < b.Most; i++ {
		wait *= 2
	}
	return min(wait, b.Most)
}
