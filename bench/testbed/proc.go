// SPDX-License-Identifier: Apache-2.0

package testbed

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

// parseCore reads the seconds in which one core did nothing, out of /proc/stat.
func parseCore(text []byte, core int) (idle float64, err error) {
	_, rest, found := bytes.Cut(text, fmt.Appendf(nil, "\ncpu%d ", core))
	if !found {
		return 0, fmt.Errorf("/proc/stat has no core %d", core)
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	_, idle, err = parseMachine(append([]byte("cpu "), line...))
	return idle, err
}

// CoreIdle is the seconds in which a core did nothing.
func CoreIdle(core int) (float64, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return parseCore(text, core)
}

// CPU is the CPU seconds that a process has used.
func CPU(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
	}
	return parseStat(text)
}

// Memory is the resident memory of a process in bytes.
func Memory(pid int) (now, peak int64, err error) {
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

// BytesRead is how many bytes a process has read.
func BytesRead(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return 0, fmt.Errorf("bytes read by process %d: %w", pid, err)
	}
	return parseRead(text)
}

// Usage is CPU seconds at one moment.
type Usage struct {
	Busy, Idle float64 // of the machine
	Scheduler  float64
	Servers    float64 // API server and etcd
	Self       float64 // this process, which creates and watches
}

// ReadUsage reads the clocks of all that takes part.
func ReadUsage(scheduler int, servers []int) (Usage, error) {
	var u Usage
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return u, err
	}
	if u.Busy, u.Idle, err = parseMachine(text); err != nil {
		return u, err
	}
	if scheduler == 0 { // no scheduler runs
	} else if u.Scheduler, err = CPU(scheduler); err != nil {
		return u, err
	}
	if u.Self, err = CPU(os.Getpid()); err != nil {
		return u, err
	}
	for _, pid := range servers {
		s, err := CPU(pid)
		if err != nil {
			return u, err
		}
		u.Servers += s
	}
	return u, nil
}

func (u Usage) Since(b Usage) Usage {
	return Usage{u.Busy - b.Busy, u.Idle - b.Idle, u.Scheduler - b.Scheduler, u.Servers - b.Servers, u.Self - b.Self}
}

// Plus adds the use of two times.
func (u Usage) Plus(b Usage) Usage {
	return Usage{u.Busy + b.Busy, u.Idle + b.Idle, u.Scheduler + b.Scheduler, u.Servers + b.Servers, u.Self + b.Self}
}

// IdleShare is the part of the machine that did nothing.
func (u Usage) IdleShare() float64 { return u.Idle / (u.Busy + u.Idle) }

// OthersShare is the part of the machine that other processes used. It spoils a measurement.
func (u Usage) OthersShare() float64 {
	return max(0, u.Busy-u.Scheduler-u.Servers-u.Self) / (u.Busy + u.Idle)
}
