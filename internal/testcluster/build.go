// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/kumiki-scheduler/kumiki/internal/build"
)

// BinaryName is the file name of the local cluster's program.
const BinaryName = "kumiki-localcluster"

// BinaryEnv names a ready-made binary that is used instead of building one, for the matched release.
const BinaryEnv = "KUMIKI_LOCALCLUSTER_BINARY"

// moduleDir is the nested module below the root of the repository, and
// ldflagsFile the files in it, one for each release, that hold the linker's
// flags for everyone who builds it.
const (
	moduleDir   = "localcluster"
	ldflagsFile = "ldflags"
)

// ErrNotFound says that neither the source tree nor a binary was found.
var ErrNotFound = errors.New("this command starts a local cluster with another program, which was not found")

// Build returns the path of an up-to-date binary of a release, building it if needed: some minutes the first time, a
// second when nothing changed. Lines about the progress go to progress, which may be nil.
//
// The binary is that of BinaryEnv; or it is built into bin/ of the source tree around this program; or it is beside
// this program, as an installation has it; or it is built in the source tree around the working directory, as tests
// need it; or it is in PATH.
func Build(ctx context.Context, r Release, progress io.Writer) (string, error) {
	if progress == nil {
		progress = io.Discard
	}
	if path := os.Getenv(BinaryEnv); path != "" && r == Matched {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s: %w", BinaryEnv, err)
		}
		return path, nil
	}
	self, err := os.Executable()
	if err == nil {
		if self, err = filepath.EvalSymlinks(self); err != nil {
			return "", err
		}
		if root, ok := sourceRoot(filepath.Dir(self)); ok {
			return buildIn(ctx, root, r, progress)
		}
		beside := filepath.Join(filepath.Dir(self), r.binary())
		if _, err := os.Stat(beside); err == nil {
			return beside, nil
		}
	}
	if wd, err := os.Getwd(); err == nil {
		if root, ok := sourceRoot(wd); ok {
			return buildIn(ctx, root, r, progress)
		}
	}
	if path, err := exec.LookPath(r.binary()); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("%w: %s is neither in %s, where this program is, nor in PATH. Put it there from the "+
		"archive of the same version, or give its directory with --localcluster-dir",
		ErrNotFound, r.binary(), filepath.Dir(self))
}

// sourceRoot finds the repository above a directory.
func sourceRoot(dir string) (string, bool) {
	for {
		if _, err := os.Stat(filepath.Join(dir, moduleDir, ldflagsFile+".txt")); err == nil {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}

// buildIn builds into bin/ of the source tree, or into the user's cache when
// the tree cannot be written.
func buildIn(ctx context.Context, root string, r Release, progress io.Writer) (string, error) {
	out := filepath.Join(root, "bin")
	if err := os.MkdirAll(out, 0o755); err != nil {
		cache, cacheErr := os.UserCacheDir()
		if cacheErr != nil {
			return "", errors.Join(err, cacheErr)
		}
		out = filepath.Join(cache, "kumiki")
		if err := os.MkdirAll(out, 0o755); err != nil {
			return "", fmt.Errorf("make directory for %s: %w", BinaryName, err)
		}
	}
	unlock, err := lock(ctx, nil, filepath.Join(out, "."+r.binary()+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	binary := filepath.Join(out, r.binary())
	return binary, compile(ctx, filepath.Join(root, moduleDir), r, binary, progress)
}

// compile runs the go command, as make build does.
func compile(ctx context.Context, module string, r Release, binary string, progress io.Writer) error {
	ldflags, err := os.ReadFile(filepath.Join(module, ldflagsFile+r.suffix()+".txt"))
	if err != nil {
		return fmt.Errorf("build %s: %w", BinaryName, err)
	}
	plan := build.Cluster(module, strings.TrimSpace(string(ldflags)), r.buildFlags(), binary)
	if err := build.Run(ctx, plan, progress, false); err != nil {
		return fmt.Errorf("build %s: %w", BinaryName, err)
	}
	return nil
}

// lastLines keeps the last lines of a program's output.
type lastLines struct {
	mu    sync.Mutex
	lines []string
}

const keptLines = 40

// copyLines passes lines on to each of the writers and keeps the last ones.
func (l *lastLines) copyLines(from io.Reader, to io.Writer) {
	scan := bufio.NewScanner(from)
	for scan.Scan() {
		l.mu.Lock()
		l.lines = append(l.lines, scan.Text())
		if len(l.lines) > keptLines {
			l.lines = l.lines[1:]
		}
		l.mu.Unlock()
		// Progress output that cannot be written must not stop the cluster.
		_, _ = fmt.Fprintln(to, scan.Text())
	}
}

func (l *lastLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}
