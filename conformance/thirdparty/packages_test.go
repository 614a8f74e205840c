// SPDX-License-Identifier: Apache-2.0

package thirdparty

import (
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// entry is a line of a list: what is done with a package, a test or a file, and why it is left out.
type entry struct{ what, pkg, why string }

// listed reads a list. Lines begin with one of some words, of which the first one needs no reason.
func listed(t *testing.T, file string, words ...string) []entry {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []entry
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		line, why, _ := strings.Cut(line, ": ")
		what, pkg, _ := strings.Cut(line, " ")
		if !slices.Contains(words, what) || (why == "") != (what == words[0]) {
			t.Errorf("line %q", line)
		}
		out = append(out, entry{what, pkg, why})
	}
	return out
}

func packages(t *testing.T) []entry {
	t.Helper()
	return listed(t, "testdata/packages.txt", "test", "broken", "leave")
}

// TestEachPackageIsListed compares the list with the module: each package outside of pkg/generated is in it once.
func TestEachPackageIsListed(t *testing.T) {
	entries := packages(t)
	err := fs.WalkDir(os.DirFS(copied), "pkg", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == "pkg/generated":
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go"):
			return nil
		}
		var by []string
		for _, e := range entries {
			tree, isTree := strings.CutSuffix(e.pkg, "/...")
			if dir := path.Dir(name); dir == tree || isTree && strings.HasPrefix(dir, tree+"/") {
				by = append(by, e.pkg)
			}
		}
		if len(by) != 1 {
			t.Errorf("%s is listed %d times: %v", name, len(by), by)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestBrokenPackagesAreBroken: a package that compiles again is no longer left out.
func TestBrokenPackagesAreBroken(t *testing.T) {
	for _, e := range packages(t) {
		if e.what != "broken" {
			continue
		}
		build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "sigs.k8s.io/scheduler-plugins/"+e.pkg)
		build.Env = append(os.Environ(), "GOWORK=off")
		out, err := build.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "# sigs.k8s.io/scheduler-plugins/"+e.pkg) {
			t.Errorf("%s: %v, want an error of the compiler:\n%s", e.pkg, err, out)
		}
		t.Logf("%s (%s):\n%s", e.pkg, e.why, out)
	}
}
