// SPDX-License-Identifier: Apache-2.0

package call

import (
	"time"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Clock is the wall clock when it was made plus the monotonic time since: it never goes back, whatever happens to the
// clock of the machine. Times of one process are compared only if they are of one Clock.
type Clock struct {
	start time.Time
	wall  record.Time // of start
}

// NewClock returns a clock that starts now.
func NewClock() Clock {
	start := time.Now()
	return Clock{start, record.Time(start.UnixNano())}
}

// Now returns the time. It reads the monotonic clock alone, which takes half of the time of time.Now.
func (c Clock) Now() record.Time { return c.wall + record.Time(time.Since(c.start)) }

// At returns a moment that time.Now has returned in this process.
func (c Clock) At(t time.Time) record.Time { return c.wall + record.Time(t.Sub(c.start)) }

// Time returns a moment of this clock as time.Now would have returned it.
func (c Clock) Time(t record.Time) time.Time { return c.start.Add(time.Duration(t - c.wall)) }
