// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// pinning reports whether this system can give a process a core of its own.
const pinning = true

// coresOf returns the cores that this process may use.
func coresOf() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("which cores this process may use: %w", err)
	}
	var cores []int
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			cores = append(cores, i)
		}
	}
	return cores, nil
}

// onCore runs start, which starts a process, so that the process has this core and no other. A process inherits the
// cores of the thread that starts it.
func onCore(core int, start func() error) error {
	runtime.LockOSThread()
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("which cores this thread may use: %w", err)
	}
	one.Set(core)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("use core %d only: %w", core, err)
	}
	err := start()
	if undo := unix.SchedSetaffinity(0, &before); undo != nil {
		// The thread stays locked, so that nothing else of this program runs on the core of the process.
		return errors.Join(err, fmt.Errorf("use all cores again: %w", undo))
	}
	runtime.UnlockOSThread()
	return err
}

// siblings reports whether two cores are threads of one physical core, which then share its units of execution.
func siblings(a, b int) bool {
	read := func(core int) string {
		text, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", core))
		if err != nil {
			return fmt.Sprint(core) // not known: a core of its own
		}
		return strings.TrimSpace(string(text))
	}
	return read(a) == read(b)
}
