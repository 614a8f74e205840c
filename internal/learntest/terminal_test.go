// SPDX-License-Identifier: Apache-2.0

package learntest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// lookAgain is the pause between two looks.
const lookAgain = 200 * time.Millisecond

// terminal is one window of the reader: a shell that remembers what is exported, and at most one command that runs on.
type terminal struct {
	t    tester
	name string // empty is the first, in which every command runs to its end
	root string // the directory it is opened in
	env  []string
	// patience bounds how long something shown may take to appear.
	patience time.Duration
	// prelude holds the lines that change the shell itself. Every command is given to a new shell behind them.
	prelude string
	running *exec.Cmd
	ended   chan error
	screen  *screen
	seen    int // lines of the screen that a chapter has shown
}

// screen collects what a command prints.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// whole are the lines that are complete.
func (s *screen) whole() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.text.String()
	return Lines(text[:strings.LastIndex(text, "\n")+1])
}

// changesShell reports whether a command is about the shell and not a program.
func changesShell(command string) bool {
	for _, word := range []string{"export ", "alias ", ". "} {
		if strings.HasPrefix(command, word) {
			return true
		}
	}
	return false
}

// onlyLooks reports whether a command can be repeated without changing anything: each command of the pipe only reads.
func onlyLooks(command string) bool {
	for part := range strings.SplitSeq(command, "|") {
		part = strings.TrimSpace(part) + " "
		reads := false
		for _, p := range []string{"kubectl get ", "kubectl describe ", "kubectl events ", "kumiki why ", "kumiki queue ",
			"kumiki replay ", "kumiki-localcluster status ", "grep ", "head ", "tail ", "cat ", "sort ", "printf ", "yes "} {
			reads = reads || strings.HasPrefix(part, p)
		}
		if !reads || strings.Contains(part, ">") {
			return false
		}
	}
	return true
}

// do types a step and waits until its output is as shown.
func (w *terminal) do(s Step) {
	w.t.Helper()
	switch {
	case s.Stop:
		w.stop(s)
	case s.Command == "":
		w.expect(s)
	case changesShell(s.Command):
		w.prelude += s.Command + "\n"
		// Once alone, so that a mistake shows here. Its output must be as shown.
		w.finish(Step{Line: s.Line, Command: ":", Want: s.Want})
	case w.name == "":
		w.finish(s)
	default:
		w.start(s)
		w.expect(s)
	}
}

// command prepares a shell. It gets a group of its own, and a signal when this process dies.
func (w *terminal) command(text string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", w.prelude+text)
	cmd.Dir, cmd.Env = w.root, w.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.WaitDelay = w.patience
	return cmd
}

// finish runs a command to its end.
func (w *terminal) finish(s Step) {
	w.t.Helper()
	var output []byte
	var err error
	for begin := time.Now(); ; time.Sleep(lookAgain) {
		output, err = w.command(s.Command).CombinedOutput()
		if err == nil && MatchAll(s.Want, Lines(string(output))) {
			return
		}
		if !onlyLooks(s.Command) || time.Since(begin) > w.patience {
			break
		}
	}
	if err != nil {
		w.t.Fatalf("line %d: $ %s\n%v\n%s", s.Line, s.Command, err, output)
	}
	w.t.Fatalf("line %d: $ %s\n%s", s.Line, s.Command, difference(s.Want, Lines(string(output))))
}

// start runs a command that goes on.
func (w *terminal) start(s Step) {
	w.t.Helper()
	if w.running != nil {
		w.t.Fatalf("line %d: terminal %s is busy with %q", s.Line, w.name, w.running.Args[2])
	}
	w.running, w.screen, w.seen = w.command("exec "+s.Command), &screen{}, 0
	w.running.Stdout, w.running.Stderr = w.screen, w.screen
	if err := w.running.Start(); err != nil {
		w.t.Fatalf("line %d: $ %s: %v", s.Line, s.Command, err)
	}
	w.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan<- error) { ended <- cmd.Wait() }(w.running, w.ended)
}

// expect waits until what is shown has appeared behind what was shown before.
func (w *terminal) expect(s Step) {
	w.t.Helper()
	if w.screen == nil {
		w.t.Fatalf("line %d: nothing runs in terminal %s", s.Line, w.name)
	}
	for begin := time.Now(); ; time.Sleep(lookAgain) {
		lines := w.screen.whole()[w.seen:]
		if n := Match(s.Want, lines); n >= 0 {
			w.seen += n
			return
		}
		select {
		case err := <-w.ended:
			w.ended <- err
			if n := Match(s.Want, w.screen.whole()[w.seen:]); n < 0 {
				w.t.Fatalf("line %d: the command in terminal %s ended (%v)\n%s", s.Line, w.name, err, difference(s.Want, lines))
			}
		default:
		}
		if time.Since(begin) > w.patience {
			w.t.Fatalf("line %d: terminal %s\n%s", s.Line, w.name, difference(s.Want, lines))
		}
	}
}

// stop types ^C and waits until the command is gone.
func (w *terminal) stop(s Step) {
	w.t.Helper()
	if w.running == nil {
		w.t.Fatalf("line %d: nothing runs in terminal %s", s.Line, w.name)
	}
	if err := syscall.Kill(-w.running.Process.Pid, syscall.SIGINT); err != nil {
		w.t.Fatalf("line %d: ^C in terminal %s: %v", s.Line, w.name, err)
	}
	select {
	case err := <-w.ended:
		if err != nil && !diedOf(err, syscall.SIGINT) { // a program may leave the signal to the system
			w.t.Fatalf("line %d: ^C in terminal %s: %v\n%s", s.Line, w.name, err, strings.Join(w.screen.whole(), "\n"))
		}
	case <-time.After(w.patience):
		w.t.Fatalf("line %d: ^C in terminal %s: it does not end", s.Line, w.name)
	}
	w.running = nil
	w.expect(s)
}

// diedOf reports whether a program was ended by a signal.
func diedOf(err error, signal syscall.Signal) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == signal
}

// close ends what a failed chapter left running, and gives it time to clean up.
func (w *terminal) close() {
	if w.running == nil {
		return
	}
	w.t.Errorf("the chapter leaves %q running in terminal %s", w.running.Args[2], w.name)
	w.t.Logf("terminal %s ends with\n%s", w.name, strings.Join(tail(w.screen.whole(), 40), "\n"))
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := syscall.Kill(-w.running.Process.Pid, signal); err != nil {
			return
		}
		select {
		case <-w.ended:
			return
		case <-time.After(w.patience):
		}
	}
}

func tail(lines []string, n int) []string { return lines[max(0, len(lines)-n):] }

// difference shows what was expected beside what came.
func difference(want, got []string) string {
	first := 0
	for first < min(len(want), len(got)) && SameLine(want[first], got[first]) {
		first++
	}
	mark := func(lines []string) string {
		var b strings.Builder
		for i, l := range lines {
			sign := "  "
			if i == first {
				sign = "> "
			}
			b.WriteString(sign + l + "\n")
		}
		return b.String()
	}
	return "the chapter shows\n" + mark(want) + "and this came\n" + mark(got)
}

// readerEnv is the environment of a reader: directories for what is temporary are the test's own.
func readerEnv(t *testing.T) []string {
	t.Helper()
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "KUBECONFIG", "KUMIKI_LOCALCLUSTER", "TMPDIR", "KUBECACHEDIR", "MAKEFLAGS", "MFLAGS", "MAKELEVEL":
		default:
			env = append(env, v)
		}
	}
	return append(env, "TMPDIR="+t.TempDir(), "KUBECACHEDIR="+t.TempDir())
}
