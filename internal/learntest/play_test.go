// SPDX-License-Identifier: Apache-2.0

package learntest

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kumiki-scheduler/kumiki/internal/probe"
)

const (
	// patience bounds how long something shown may take to appear.
	patience = time.Minute
	// reading is how long the reader looks at what is there before taking something of it away. Readers are slower;
	// but a first backoff (one second, and the second in which it ends) is over by then, as it is for them.
	reading = 2500 * time.Millisecond
)

// tester is the part of testing.T that the reader needs.
type tester interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// takesAway reports whether a command ends something that may have just begun.
func takesAway(command string) bool {
	return strings.HasPrefix(command, "kubectl delete ") || strings.HasPrefix(command, "kubectl patch ")
}

// play types all commands of a page in the directory of the repository.
func play(t tester, page Page, env []string, patience time.Duration) {
	t.Helper()
	playIn(t, page, root, env, patience)
}

// playIn types all commands of a page in a directory, and creates the files that it shows as new.
func playIn(t tester, page Page, root string, env []string, patience time.Duration) {
	t.Helper()
	// The thread that starts a process must outlive it: see command.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	open := map[string]*terminal{} // name -> terminal
	var order []*terminal
	defer func() {
		for _, w := range slices.Backward(order) {
			w.close()
		}
	}()
	for _, block := range page.Blocks {
		name, ok := block.Console()
		if !ok {
			block.create(t, root)
			continue
		}
		w := open[name]
		if w == nil {
			w = &terminal{t: t, name: name, root: root, env: env, patience: patience}
			open[name] = w
			order = append(order, w)
		}
		for _, step := range block.Steps() {
			if takesAway(step.Command) {
				time.Sleep(reading)
			}
			if testing.Verbose() {
				t.Logf("%s:%d: [%s] %s", page.Path, step.Line, name, step.Command)
			}
			w.do(step)
		}
	}
}

// shortPage is a chapter without a cluster.
const shortPage = "```console\n$ export WORD=two\n$ echo one; echo $WORD\none\ntwo\n```\n" +
	"```console other\n$ sh -c 'echo begins; exec sleep 600'\nbegins\n```\n" +
	"```console\n$ cat /dev/null\n```\n" +
	"```console other\n^C\n```\n"

// Each mutant is a chapter that shows something else than what happens, or does not clean up.
func TestTheReaderNoticesWhatIsNotAsShown(t *testing.T) {
	page, err := Parse("short.md", shortPage)
	if err != nil {
		t.Fatal(err)
	}
	play(t, page, os.Environ(), patience)
	for name, edit := range map[string][2]string{
		"another word":                {"\none\ntwo\n", "\none\nthree\n"},
		"a line less":                 {"\none\ntwo\n", "\none\n"},
		"a line more":                 {"\none\ntwo\n", "\none\ntwo\nthree\n"},
		"a line that never comes":     {"begins\n```", "begins\nends\n```"},
		"a command that fails":        {"cat /dev/null", "false"},
		"a command that is not there": {"sh -c 'echo begins; exec sleep 600'", "./not-there"},
		"no ^C":                       {"```console other\n^C\n```\n", ""},
		"^C without a command":        {"^C\n", "^C\n^C\n"},
		"output of nothing":           {"console other\n^C", "console third\nbegins"},
	} {
		text := strings.Replace(shortPage, edit[0], edit[1], 1)
		if text == shortPage {
			t.Fatalf("%s: nothing to edit", name)
		}
		page, err := Parse("short.md", text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !probe.Fails(func(p *probe.T) { play(p, page, os.Environ(), time.Second) }) {
			t.Errorf("%s: the reader notices nothing", name)
		}
	}
}
