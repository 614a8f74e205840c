// SPDX-License-Identifier: Apache-2.0

package build

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

const gib = 1 << 30

// gcSettings returns the variables by which the compiler and the linker, one process for each CPU, collect no garbage
// while they need less than half of their share of the memory; none if the share is too small for that. Compilation
// takes about a sixth less CPU time so.
func gcSettings(memory uint64, cpus int) []string {
	share := memory / uint64(cpus)
	if share < 3*gib {
		return nil
	}
	return []string{"GOGC=off", fmt.Sprintf("GOMEMLIMIT=%dMiB", min(share/2, 2*gib)>>20)}
}

// environment returns the environment of a go command. What the user has set stays.
func environment() []string {
	env := os.Environ()
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return env
	}
	return append(env, gcSettings(memory(), runtime.NumCPU())...)
}

// memory returns how much memory is available, 0 if that is unknown.
func memory() uint64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	available := availableOf(string(text))
	if limit, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if bytes, err := strconv.ParseUint(strings.TrimSpace(string(limit)), 10, 64); err == nil {
			available = min(available, bytes)
		}
	}
	return available
}

// availableOf returns MemAvailable of /proc/meminfo in bytes, 0 if there is none.
func availableOf(meminfo string) uint64 {
	for line := range strings.Lines(meminfo) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "MemAvailable:" {
			kib, _ := strconv.ParseUint(fields[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}
