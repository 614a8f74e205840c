// SPDX-License-Identifier: Apache-2.0

package blocked

import (
	"testing"

	"github.com/kumiki-scheduler/kumiki/record"
)

// TestWholeSeconds: gangs that were blocked within one second are due together, so that one wake-up is enough.
func TestWholeSeconds(t *testing.T) {
	for at, want := range map[record.Time]record.Time{ // order: each case alone
		0: 0, record.Second: record.Second, record.Second + 1: 2 * record.Second,
		2*record.Second - 1: 2 * record.Second,
	} {
		if got := wholeSecond(at); got != want {
			t.Errorf("wholeSecond(%d) = %d, want %d", at, got, want)
		}
	}
}
