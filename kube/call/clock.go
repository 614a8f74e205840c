// SPDX-License-Identifier: Apache-2.0

package call

import (
	"time"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Clock is the wall clock when it was made plus the monotonic time since: it never goes back, whatever happens to the
// clock of the machine. Times of one process are compared only if they are of one Clock.
type Clock struct{ start time.Time }

// NewClock returns a clock that starts now.
func NewClock() Clock { return Clock{time.Now()} }

// Now returns the time.
func (c Clock) Now() record.Time { return c.At(time.Now()) }

// At returns a moment that time.Now has returned in this process.
func (c Clock) At(t time.Time) record.Time {
	return record.Time(c.start.UnixNano() + int64(t.Sub(c.start)))
}
