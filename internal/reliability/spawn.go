// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"runtime"
	"sync"
)

// spawner starts processes from one OS thread that lives as long as this process: the signal at the parent's death comes
// when the thread that forked ends.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

func onSpawner(start func() error) error {
	done := make(chan error, 1)
	spawner() <- func() { done <- start() }
	return <-done
}
