// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeGo makes a script the go command. It writes its arguments to a file beside itself, and
// runs body with them.
func fakeGo(t *testing.T, body string) (dir string) {
	dir = t.TempDir()
	script := filepath.Join(dir, "go")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"$@\" >> \"${0%/*}/calls\"\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GO", script)
	return dir
}

// TestABuildFailsWithWhatTheCompilerSays: packages and downloads are progress, the rest is why the build failed. Nothing
// is linked after that. Fault: complaints are dropped.
func TestABuildFailsWithWhatTheCompilerSays(t *testing.T) {
	dir := fakeGo(t, `echo "go: downloading a v1" >&2; echo example.com/a >&2; echo "# example.com/a" >&2
echo "a.go:3:5: undefined: x" >&2; exit 1`)
	var out bytes.Buffer
	err := Run(t.Context(), Plan{
		Packages: Command{Dir: dir},
		Compile:  []Command{{Dir: dir, Args: []string{"build", "-v"}}},
		Link:     []Command{{Dir: dir, Args: []string{"build", "-o", "x"}}},
	}, &out, false)
	if err == nil || !strings.HasSuffix(err.Error(), "\n# example.com/a\na.go:3:5: undefined: x") {
		t.Errorf("error %v", err)
	}
	if calls, _ := os.ReadFile(filepath.Join(dir, "calls")); strings.Contains(string(calls), "-o x") {
		t.Errorf("linked after a failure: %s", calls)
	}
}

// TestABuildWithNothingToDoIsSilent, and lists no packages: that would take longer than the build.
func TestABuildWithNothingToDoIsSilent(t *testing.T) {
	dir := fakeGo(t, "")
	var out bytes.Buffer
	link := Command{Dir: dir, Args: []string{"build", "-o", "x"}}
	if err := Run(t.Context(), Plan{Link: []Command{link}}, &out, false); err != nil {
		t.Fatal(err)
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil || string(calls) != "build -o x\n" || out.Len() > 0 {
		t.Errorf("calls %q, %v, output %q", calls, err, out.String())
	}
}

// TestTheTwoProgramsAreBuiltInTurn: each with the version that it reports, and linked once. The local cluster does not
// depend on the workspace.
func TestTheTwoProgramsAreBuiltInTurn(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "localcluster"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Everything(root); err == nil {
		t.Error("a directory without the source tree has a plan")
	}
	flags := filepath.Join(root, "localcluster", "ldflags.txt")
	if err := os.WriteFile(flags, []byte("-s -X v=1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	plan, err := Everything(root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range append(plan.Compile, plan.Link...) {
		got = append(got, strings.ReplaceAll(fmt.Sprintf("%s %q %q", c.Dir, c.Env, c.Args), root, "ROOT"))
	}
	want := []string{
		`ROOT [] ["build" "-v" "-buildvcs=false" "-ldflags" "-s -X v=1" "-o" "ROOT/bin/kumiki" "./cmd/kumiki"]`,
		`ROOT/localcluster ["GOWORK=off"] ["build" "-v" "-buildvcs=false" "-ldflags" "-s -X v=1" "-o" ` +
			`"ROOT/bin/kumiki-localcluster" "."]`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("commands:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
