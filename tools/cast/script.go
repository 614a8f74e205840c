// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// line is one line of a script.
type line struct {
	number  int
	sign    byte
	until   string // text to wait for
	command string
}

// parse reads a script.
func parse(src string) ([]line, error) {
	var script []line
	for i, text := range strings.Split(src, "\n") {
		sign, rest, _ := strings.Cut(text, " ")
		l := line{number: i + 1, command: rest}
		switch sign {
		case "", "#":
			continue
		case "$", "!", "=":
		case "?", "&":
			var found bool
			if l.until, l.command, found = strings.Cut(rest, " :: "); !found {
				return nil, fmt.Errorf("line %d: want %s TEXT :: COMMAND", i+1, sign)
			}
		default:
			return nil, fmt.Errorf("line %d: begins with %q; see the package comment for the signs", i+1, sign)
		}
		l.sign = sign[0]
		script = append(script, l)
	}
	return script, nil
}

// step is a command with its output, as shown.
type step struct{ command, output string }

// patience bounds how long a text may take to appear.
const patience = time.Minute

// play runs a script and returns what it shows. Each command is announced to progress.
func play(script []line, progress io.Writer) (shown []step, err error) {
	env := os.Environ()
	var started []*exec.Cmd
	defer func() {
		for i := len(started) - 1; i >= 0; i-- {
			_ = syscall.Kill(-started[i].Process.Pid, syscall.SIGINT)
			_ = started[i].Wait() // interrupted
		}
	}()
	for _, l := range script {
		fmt.Fprintf(progress, "%c %s\n", l.sign, l.command)
		switch l.sign {
		case '=':
			env = append(env, os.Expand(l.command, func(name string) string { return lookup(env, name) }))
		case '&':
			cmd, out := shell(l.command, env), &watched{}
			cmd.Stdout, cmd.Stderr = out, out
			if err := cmd.Start(); err != nil {
				return nil, fmt.Errorf("line %d: %w", l.number, err)
			}
			started = append(started, cmd)
			if !wait(func() bool { return strings.Contains(out.String(), l.until) }) {
				return nil, fmt.Errorf("line %d: %q did not appear:\n%s", l.number, l.until, out)
			}
		case '?':
			var last []byte
			if !wait(func() bool {
				last, _ = shell(l.command, env).CombinedOutput()
				return bytes.Contains(last, []byte(l.until))
			}) {
				return nil, fmt.Errorf("line %d: %q did not appear:\n%s", l.number, l.until, last)
			}
		default:
			output, err := shell(l.command, env).CombinedOutput()
			if err != nil {
				return nil, fmt.Errorf("line %d: %w\n%s", l.number, err, output)
			}
			if l.sign == '$' {
				shown = append(shown, step{l.command, string(output)})
			}
		}
	}
	return shown, nil
}

// wait repeats a question until the answer is yes, and reports whether it was within the time.
func wait(done func() bool) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(300 * time.Millisecond) {
		if done() {
			return true
		}
	}
	return false
}

// shell prepares a command in a process group of its own.
func shell(command string, env []string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), "sh", "-c", command)
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// lookup returns the last value of a variable.
func lookup(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value
		}
	}
	return ""
}

// watched is the output of a command that still runs.
type watched struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}
