// SPDX-License-Identifier: Apache-2.0

package learntest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// root is the directory of the repository, in which a reader types.
const root = "../.."

// notRunHere are the commands of the README that this test does not run -> why.
var notRunHere = map[string]string{
	"make up":   "make test would wait for it; internal/e2e runs kumiki up --once",
	"make test": "runs this test",
}

func readPage(t *testing.T, path string) (Page, string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	page, err := Parse(path, string(text))
	if err != nil {
		t.Fatal(err)
	}
	return page, string(text)
}

// chapters lists the pages of docs/learn in the order of their numbers.
func chapters(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "docs/learn/[0-9]*.md"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no chapters found: %v", err)
	}
	for i := range found {
		found[i] = "docs/learn/" + filepath.Base(found[i])
	}
	return found
}

// played are the pages that promise what a chapter promises: the chapters, the way from kube-scheduler to kumiki, and
// the pages of docs/tasks that have commands to type.
func played(t *testing.T) []string {
	t.Helper()
	return append(append(chapters(t), "docs/migration.md"), tasks(t)...)
}

// untested begins a page of docs/tasks whose commands no test runs.
const untested = "> **Untested.**"

// tasks lists the pages of docs/tasks with blocks of a terminal. Any other page shows manifests of components that do
// not run here, and says so at its top.
func tasks(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "docs/tasks/*.md"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no tasks found: %v", err)
	}
	var run []string
	for _, f := range found {
		path := "docs/tasks/" + filepath.Base(f)
		page, text := readPage(t, path)
		console, manifest := false, false
		for _, block := range page.Blocks {
			_, typed := block.Console()
			console = console || typed
			manifest = manifest || len(block.Info) > 0 && block.Info[0] == "yaml"
		}
		switch says := strings.Contains(text, untested); {
		case console && says:
			t.Errorf("%s says that it is untested, and has commands that are run", path)
		case console:
			run = append(run, path)
		case manifest && !says:
			t.Errorf("%s shows manifests that nothing runs, and does not say %q", path, untested)
		}
	}
	return run
}

// The pages run one after the other, each with a cluster that it starts and stops itself.
func TestEveryCommandOfTheChaptersShowsWhatTheChapterSays(t *testing.T) {
	for _, path := range played(t) {
		page, _ := readPage(t, path)
		if len(page.components()) > 0 {
			continue // TestPagesWithComponents
		}
		t.Run(strings.TrimSuffix(filepath.Base(path), ".md"), func(t *testing.T) {
			testcluster.Reserve(t)
			play(t, page, readerEnv(t), patience)
		})
	}
}

// components lists the controllers of other projects that a page builds. `make ecosystem` plays such pages, because
// the builds take minutes.
func (p Page) components() []string {
	var names []string
	for _, block := range p.Blocks {
		if _, console := block.Console(); !console {
			continue
		}
		for _, step := range block.Steps() {
			if name, ok := strings.CutPrefix(step.Command, "make component COMPONENT="); ok {
				names = append(names, name)
			}
		}
	}
	return names
}

// A page with a component that is not there would be played by no test.
func TestComponentsOfPagesAreThere(t *testing.T) {
	for _, path := range played(t) {
		page, _ := readPage(t, path)
		for _, name := range page.components() {
			if _, err := os.Stat(filepath.Join(root, "ecosystem", name, "go.mod")); err != nil {
				t.Errorf("%s runs component %q: %v", path, name, err)
			}
		}
	}
}

func TestFilesThatAChapterShowsAreAsShown(t *testing.T) {
	shown := map[string]bool{} // path -> a chapter shows it
	for _, path := range played(t) {
		page, _ := readPage(t, path)
		for _, block := range page.Blocks {
			if _, console := block.Console(); console || len(block.Info) == 0 || block.Info[0] == "text" {
				continue
			}
			comment, name, _ := strings.Cut(block.Lines[0], " ")
			if comment != "#" && comment != "//" {
				t.Errorf("%s:%d: the first line of a block with a file is a comment with its path", path, block.Line)
				continue
			}
			shown[name] = true
			content, err := os.ReadFile(filepath.Join(root, name))
			if err != nil {
				t.Errorf("%s:%d: %v", path, block.Line, err)
				continue
			}
			if want := strings.Join(block.Lines, "\n") + "\n"; string(content) != want {
				t.Errorf("%s:%d: %s is not as shown:\n%s", path, block.Line, name, difference(block.Lines, Lines(string(content))))
			}
		}
	}
	for _, dir := range []string{"docs/learn/files/", "docs/tasks/files/"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if name := dir + filepath.Base(f); !shown[name] {
				t.Errorf("no page shows %s", name)
			}
		}
	}
}

func TestTheIndexLeadsToEveryChapter(t *testing.T) {
	_, index := readPage(t, "docs/learn/README.md")
	_, readme := readPage(t, "README.md")
	for _, path := range chapters(t) {
		if name := filepath.Base(path); !strings.Contains(index, "("+name+")") {
			t.Errorf("docs/learn/README.md does not lead to %s", name)
		}
	}
	if !strings.Contains(readme, "(docs/learn/README.md)") {
		t.Error("README.md does not lead to docs/learn/README.md")
	}
}

// A command of the README is in a fenced block, with or without a prompt.
func TestCommandsOfTheReadmeAreRunSomewhere(t *testing.T) {
	page, _ := readPage(t, "README.md")
	run := map[string]bool{} // command -> a chapter runs it
	for _, path := range played(t) {
		chapter, _ := readPage(t, path)
		for _, block := range chapter.Blocks {
			if _, ok := block.Console(); !ok {
				continue
			}
			for _, s := range block.Steps() {
				run[s.Command] = true
			}
		}
	}
	for _, block := range page.Blocks {
		for i, line := range block.Lines {
			command, _, _ := strings.Cut(strings.TrimPrefix(line, prompt), " #")
			command = strings.TrimSpace(command)
			first, _, _ := strings.Cut(command, " ")
			program := strings.TrimPrefix(first, "bin/")
			if program != "make" && program != "kubectl" && !strings.HasPrefix(program, "kumiki") && !strings.HasPrefix(line, prompt) {
				continue // not a command
			}
			if !run[command] && notRunHere[command] == "" {
				t.Errorf("README.md:%d: nothing runs %q: show it in a chapter, or say in notRunHere why not", block.Line+i, command)
			}
		}
	}
}
