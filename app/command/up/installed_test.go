// SPDX-License-Identifier: Apache-2.0

package up

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// TestUpFromAnInstallation runs `kumiki up` as a user does who unpacked the archives of a release: both programs are in a
// directory without a source tree, and the environment is empty. It catches a start that needs go, HOME, PATH or the
// repository, and a missing program that the message does not name.
func TestUpFromAnInstallation(t *testing.T) {
	installed, elsewhere, empty := t.TempDir(), t.TempDir(), t.TempDir()
	kumiki := filepath.Join(installed, "kumiki")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", kumiki, "github.com/kumiki-scheduler/kumiki/cmd/kumiki")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building kumiki: %v\n%s", err, out)
	}
	run := func(args ...string) (string, int) {
		c := exec.CommandContext(t.Context(), kumiki, append([]string{"up", "--nodes", "5", "--once"}, args...)...)
		c.Dir, c.Env = empty, []string{}
		out, err := c.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return string(out), c.ProcessState.ExitCode()
	}

	out, code := run()
	for _, part := range []string{testcluster.BinaryName, installed, "PATH", "--localcluster-dir"} {
		if code != 1 || !strings.Contains(out, part) {
			t.Errorf("without the local cluster: exit code %d, and nothing about %q:\n%s", code, part, out)
		}
	}

	built, err := testcluster.Build(t.Context(), testcluster.Matched, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	there := filepath.Join(elsewhere, testcluster.BinaryName)
	if err := os.WriteFile(there, program, 0o755); err != nil {
		t.Fatal(err)
	}
	testcluster.Reserve(t)
	if out, code := run("--localcluster-dir", elsewhere); code != 0 {
		t.Errorf("with the directory named: exit code %d:\n%s", code, out)
	}
	if err := os.Rename(there, filepath.Join(installed, testcluster.BinaryName)); err != nil {
		t.Fatal(err)
	}
	if out, code := run(); code != 0 || !strings.Contains(out, "every pod that can run does") {
		t.Errorf("with both programs in one directory: exit code %d:\n%s", code, out)
	}
}
