// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// threadClock returns a clock of the CPU time of the calling thread, or why there is none.
func threadClock() (clock func() time.Duration, why string) {
	var ts unix.Timespec // one for all calls: the clock belongs to one goroutine
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return nil, fmt.Sprintf("the kernel has no clock of the CPU time of a thread: %v", err)
	}
	return func() time.Duration {
		// It cannot fail any more: the clock and the address are valid.
		_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
		return time.Duration(ts.Nano())
	}, ""
}
