// SPDX-License-Identifier: Apache-2.0

package learntest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// notCopied are what is built, and what belongs to git.
var notCopied = map[string]bool{".git": true, "bin": true, "out": true}

// TestEveryCommandOfContributing runs CONTRIBUTING.md as a chapter, in a copy of the repository: its commands, and the
// files that it creates.
func TestEveryCommandOfContributing(t *testing.T) {
	playCopy(t, "CONTRIBUTING.md")
}

// TestEveryCommandOfThePluginExample runs the page of the example with a custom plugin in the same way.
func TestEveryCommandOfThePluginExample(t *testing.T) { playCopy(t, "examples/plugin/README.md") }

// playCopy runs a page in a copy of the repository. The copy has the same place in every run, and pages are played in
// it one after the other: the go command knows what it has compiled by its directory, so in a new one it would compile
// all packages again.
func playCopy(t *testing.T, path string) {
	t.Helper()
	page, _ := readPage(t, path)
	place := filepath.Join(os.TempDir(), fmt.Sprintf("kumiki-learntest-%d", os.Getuid()))
	lock, err := os.OpenFile(place+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(place)
	// A run that was killed leaves its copy.
	if err := errors.Join(os.RemoveAll(place), os.Mkdir(place, 0o700), copyTree(place, root)); err != nil {
		t.Fatal(err)
	}
	playIn(t, page, place, readerEnv(t), patience)
}

// copyTree copies the files of a repository.
func copyTree(to, from string) error {
	return fs.WalkDir(os.DirFS(from), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case notCopied[name] && d.IsDir():
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		case !d.Type().IsRegular() || notCopied[name]:
			return nil
		}
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), text, 0o644)
	})
}

// create writes the file that a block shows, if its second word is `new`: its first line is a comment with the path.
func (b Block) create(t tester, root string) {
	t.Helper()
	if len(b.Info) < 2 || b.Info[1] != "new" {
		return
	}
	comment, name, _ := strings.Cut(b.Lines[0], " ")
	if comment != "#" && comment != "//" {
		t.Fatalf("line %d: the first line of a new file is a comment with its path", b.Line)
	}
	file := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatalf("line %d: %v", b.Line, err)
	}
	if err := os.WriteFile(file, []byte(strings.Join(b.Lines[1:], "\n")+"\n"), 0o644); err != nil {
		t.Fatalf("line %d: %v", b.Line, err)
	}
}

// The mutant is a page that shows a file which is not created.
func TestTheReaderCreatesNewFiles(t *testing.T) {
	page, err := Parse("new.md", "```text new\n# a/b.txt\none\n```\n```console\n$ cat a/b.txt\none\n```\n")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	playIn(t, page, dir, os.Environ(), patience)
	if text, err := os.ReadFile(filepath.Join(dir, "a", "b.txt")); err != nil || string(text) != "one\n" {
		t.Errorf("the file is %q, %v", text, err)
	}
}
