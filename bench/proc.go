// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ticksPerSecond is USER_HZ, the unit of CPU times in /proc, which is 100 on every platform of Linux that Go runs on.
const ticksPerSecond = 100

// parseStat reads the CPU seconds of a process, user and system, out of /proc/PID/stat. The name of the program stands
// in parentheses and may hold anything, parentheses too.
func parseStat(text []byte) (seconds float64, err error) {
	end := bytes.LastIndexByte(text, ')')
	if end < 0 {
		return 0, fmt.Errorf("no program name in %q", text)
	}
	const utime, stime = 11, 12 // fields 14 and 15 of proc(5), counted after the name
	fields := strings.Fields(string(text[end+1:]))
	if len(fields) <= stime {
		return 0, fmt.Errorf("only %d fields after the program name in %q", len(fields), text)
	}
	for _, i := range []int{utime, stime} {
		ticks, err := strconv.ParseUint(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("CPU time in %q: %w", text, err)
		}
		seconds += float64(ticks) / ticksPerSecond
	}
	return seconds, nil
}

// parseStatus reads the resident memory of a process, now and at its peak, in bytes, out of /proc/PID/status.
func parseStatus(text []byte) (now, peak int64, err error) {
	for _, field := range []struct {
		name string
		into *int64
	}{{"VmRSS:", &now}, {"VmHWM:", &peak}} {
		_, rest, found := bytes.Cut(text, []byte("\n"+field.name))
		if !found {
			return 0, 0, fmt.Errorf("no %s in the status of the process", field.name)
		}
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		words := strings.Fields(string(line))
		if len(words) != 2 || words[1] != "kB" {
			return 0, 0, fmt.Errorf("%s reads %q, want a number of kB", field.name, line)
		}
		kb, err := strconv.ParseInt(words[0], 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("%s: %w", field.name, err)
		}
		*field.into = kb << 10
	}
	return now, peak, nil
}

// parseMachine reads the CPU seconds of the whole machine, busy and idle, out of /proc/stat.
func parseMachine(text []byte) (busy, idle float64, err error) {
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, 0, fmt.Errorf("first line of /proc/stat is %q", line)
	}
	for i, field := range fields[1:9] { // guest times, which follow, are part of user and nice
		ticks, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("CPU time in %q: %w", line, err)
		}
		if i == 3 || i == 4 { // idle, waiting for a disk
			idle += float64(ticks) / ticksPerSecond
		} else {
			busy += float64(ticks) / ticksPerSecond
		}
	}
	return busy, idle, nil
}

// cpuOf is the CPU seconds that a process has used.
func cpuOf(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
	}
	return parseStat(text)
}

// memoryOf is the resident memory of a process in bytes.
func memoryOf(pid int) (now, peak int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, fmt.Errorf("memory of process %d: %w", pid, err)
	}
	return parseStatus(text)
}

// parseRead reads how many bytes a process has read, from the network and elsewhere, out of /proc/PID/io.
func parseRead(text []byte) (int64, error) {
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "rchar: "); found {
			n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("rchar: %w", err)
			}
			return n, nil
		}
	}
	return 0, fmt.Errorf("no rchar in %q", text)
}

// readBytesOf is how many bytes a process has read.
func readBytesOf(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return 0, fmt.Errorf("bytes read by process %d: %w", pid, err)
	}
	return parseRead(text)
}

// usage is CPU seconds at one moment.
type usage struct {
	busy, idle float64 // of the machine
	scheduler  float64
	servers    float64 // API server and etcd
	self       float64 // this process, which creates and watches
}

// usageNow reads the clocks of all that takes part.
func usageNow(scheduler int, servers []int) (usage, error) {
	var u usage
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return u, err
	}
	if u.busy, u.idle, err = parseMachine(text); err != nil {
		return u, err
	}
	if scheduler == 0 { // nobody schedules
	} else if u.scheduler, err = cpuOf(scheduler); err != nil {
		return u, err
	}
	if u.self, err = cpuOf(os.Getpid()); err != nil {
		return u, err
	}
	for _, pid := range servers {
		s, err := cpuOf(pid)
		if err != nil {
			return u, err
		}
		u.servers += s
	}
	return u, nil
}

func (u usage) since(b usage) usage {
	return usage{u.busy - b.busy, u.idle - b.idle, u.scheduler - b.scheduler, u.servers - b.servers, u.self - b.self}
}

// plus adds the use of two times.
func (u usage) plus(b usage) usage {
	return usage{u.busy + b.busy, u.idle + b.idle, u.scheduler + b.scheduler, u.servers + b.servers, u.self + b.self}
}

// idleShare is the part of the machine that did nothing.
func (u usage) idleShare() float64 { return u.idle / (u.busy + u.idle) }

// othersShare is the part of the machine that somebody else used. It spoils a measurement.
func (u usage) othersShare() float64 {
	return max(0, u.busy-u.scheduler-u.servers-u.self) / (u.busy + u.idle)
}
