// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"bytes"
	"runtime"
	"strings"
)

// callFrame is in the stack of a goroutine in which a plugin is called on the scheduling loop.
const callFrame = "host/framework.(*hosted)."

// states are the states of goroutines that wait for time or for each other, as the runtime names them.
var states = []string{"sleep", "select", "chan receive", "chan send", "sync.Cond.Wait", "sync.WaitGroup.Wait",
	"IO wait"}

// waits returns the state of a goroutine that is in a call of a plugin and waits, empty if there is none.
func waits() string {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for _, one := range bytes.Split(stacks, []byte("\n\n")) {
		head, rest, _ := strings.Cut(string(one), "\n")
		_, state, is := strings.Cut(head, "[")
		if !is || !strings.Contains(rest, callFrame) {
			continue
		}
		for _, s := range states {
			if strings.HasPrefix(state, s) {
				return s
			}
		}
	}
	return ""
}
