// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"os"
	"testing"
)

func TestParseStat(t *testing.T) {
	// The name of a program may look like the fields after it.
	got, err := parseStat([]byte("4711 (a) S 1 (b) S 1 4711 4711 0 -1 4194560 5 6 7 8 250 75 3 4 20 0 9 0 100 1 2 3\n"))
	if err != nil || got != 3.25 {
		t.Errorf("got %g s and %v, want 3.25 s", got, err)
	}
	for _, bad := range []string{"", "4711 (a) S 1 2", "4711 (a) S 1 4711 4711 0 -1 4194560 5 6 7 8 x 75 3"} {
		if got, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q gives %g s, want an error", bad, got)
		}
	}
}

func TestParseStatus(t *testing.T) {
	now, peak, err := parseStatus([]byte("Name:\tVmRSS: 7 kB\nVmPeak:\t  900 kB\nVmHWM:\t    300 kB\nVmRSS:\t    200 kB\nThreads:\t4\n"))
	if err != nil || now != 200<<10 || peak != 300<<10 {
		t.Errorf("got %d now, %d at most and %v, want 200 and 300 KiB", now, peak, err)
	}
	for _, bad := range []string{"", "Name:\tx\nVmHWM:\t300 kB\n", "Name:\tx\nVmHWM:\t300 MB\nVmRSS:\t200 kB\n", "Name:\tx\nVmHWM:\t-\nVmRSS:\t200 kB\n"} {
		if now, peak, err := parseStatus([]byte(bad)); err == nil {
			t.Errorf("%q gives %d and %d, want an error", bad, now, peak)
		}
	}
}

func TestParseMachine(t *testing.T) {
	busy, idle, err := parseMachine([]byte("cpu  100 10 30 500 60 5 15 20 100 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n"))
	if err != nil || busy != 1.8 || idle != 5.6 {
		t.Errorf("got %g s busy, %g s idle and %v, want 1.8 and 5.6: time of guests is counted in the time of users", busy, idle, err)
	}
	if _, _, err := parseMachine([]byte("intr 1 2 3\n")); err == nil {
		t.Error("no error for a file without the line")
	}
}

// TestParseCore takes the line of the core, not of one whose number begins alike.
func TestParseCore(t *testing.T) {
	text := []byte("cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu10 1 2 3 100 5 6 7 8 0 0\n" +
		"cpu1 1 2 3 400 50 6 7 8 0 0\nintr 1\n")
	if idle, err := parseCore(text, 1); err != nil || idle != 4.5 {
		t.Errorf("core 1: %g s idle and %v, want 4.5", idle, err)
	}
	if _, err := parseCore(text, 2); err == nil {
		t.Error("no error for a core that is not there")
	}
}

func TestSharesOfTheMachine(t *testing.T) {
	used := Usage{Busy: 9, Idle: 11, Scheduler: 2, Servers: 4, Self: 1}.Since(Usage{Busy: 1, Idle: 9, Scheduler: 1, Servers: 1, Self: 0})
	if used.IdleShare() != 0.2 || used.OthersShare() != 0.3 {
		t.Errorf("idle %g, others %g, want 0.2 and 0.3", used.IdleShare(), used.OthersShare())
	}
	// The clocks are not read at one moment; a share must not be negative.
	if got := (Usage{Busy: 1, Idle: 1, Servers: 1.5}).OthersShare(); got != 0 {
		t.Errorf("others used %g, want 0", got)
	}
}

// The files of this very process can be read.
func TestThisProcess(t *testing.T) {
	u, err := ReadUsage(os.Getpid(), []int{os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	if u.Scheduler > u.Busy || u.Busy <= 0 {
		t.Errorf("this process used %g s of the %g s of the machine", u.Scheduler, u.Busy)
	}
	now, peak, err := Memory(os.Getpid())
	if err != nil || now <= 0 || now > peak {
		t.Errorf("memory is %d now and %d at most: %v", now, peak, err)
	}
}

func TestBytesReadOfAProcess(t *testing.T) {
	n, err := parseRead([]byte("rchar: 1234\nwchar: 5\nsyscr: 6\n"))
	if err != nil || n != 1234 {
		t.Errorf("%d, %v", n, err)
	}
	for _, text := range []string{"", "wchar: 5\n", "rchar: x\n"} {
		if _, err := parseRead([]byte(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
