// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"context"
	"fmt"
	"time"
)

// eventually polls until nothing is wrong or ctx ends. wrong returns what is wrong, empty if nothing is.
func eventually(ctx context.Context, what string, wrong func() string) error {
	for {
		w := wrong()
		if w == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("timed out waiting until %s: %s", what, w)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// pause waits, or returns early when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
