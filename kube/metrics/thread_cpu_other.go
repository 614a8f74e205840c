// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package metrics

import "time"

// threadClock returns why there is no clock.
func threadClock() (clock func() time.Duration, why string) {
	return nil, "the CPU time of a thread is read on Linux only"
}
