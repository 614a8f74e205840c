// SPDX-License-Identifier: Apache-2.0

//go:build kumiki_mutants

package kumiki

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
	_ "unsafe" // for go:linkname

	"github.com/kumiki-scheduler/kumiki/conformance/diff"
	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/queue"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// caught runs one check and says what it found; a fault that makes kumiki panic
// is found, too.
func caught(what string, check func() string) (found string) {
	defer func() {
		if r := recover(); r != nil {
			found = fmt.Sprintf("%s: panic: %v", what, r)
		}
	}()
	if d := check(); d != "" {
		return what + ": " + d
	}
	return ""
}

// inOracle asks up to 6000 questions.
func inOracle(up diff.Upstream) func() string {
	return func() string {
		r, err := diff.Run(up, Subject{}, diff.Options{Seed: 1, Cases: 6000, Sizes: gen.Sizes{Pods: 12}})
		if err != nil {
			return err.Error()
		}
		if len(r.Failures) == 0 {
			return ""
		}
		return fmt.Sprintf("after %d cases: %s", r.Cases, r.Failures[0].Difference)
	}
}

// inRegressions plays the kept files.
func inRegressions(t *testing.T, up diff.Upstream) func() string {
	return func() string {
		files, err := filepath.Glob(filepath.Join(regressions, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if d := replayFile(t, up, path); d != "" {
				return filepath.Base(path) + ": " + d
			}
		}
		return ""
	}
}

// inHistories plays up to 300 histories; the difference is not shrunk.
func inHistories() string {
	for n := range 300 {
		if d := queue.Play(NewQueue, 1, n, 300); d != "" {
			return fmt.Sprintf("in history %d: %s", n, d)
		}
	}
	return ""
}

// inHints asks about changes in up to 150 worlds.
func inHints() string { return hints(1, 150, map[string]int{}) }

// firstOf runs checks until one finds something.
func firstOf(found ...func() string) string {
	for _, f := range found {
		if d := f(); d != "" {
			return d
		}
	}
	return ""
}

func report(t *testing.T, name, breaks, found string) {
	t.Helper()
	if found == "" {
		t.Errorf("%s is not seen: %s", name, breaks)
		return
	}
	const width = 150
	if len(found) > width {
		found = found[:width] + "…"
	}
	t.Logf("%-28s %s", name, found)
}

// TestMutantsOfPlugins puts each fault of core/plugin/mutants.go into the
// plugins: the oracle, the hints, the queue or a kept file must see it.
func TestMutantsOfPlugins(t *testing.T) {
	if !plugin.MutantsBuilt {
		t.Fatal("built without the faults")
	}
	up := upstream(t)
	for i, m := range plugin.Mutants {
		restore := plugin.SetMutant(i)
		found := firstOf(
			func() string { return caught("oracle", inOracle(up)) },
			func() string { return caught("hints", inHints) },
			func() string { return caught("kept file", inRegressions(t, up)) },
			func() string { return caught("queue", inHistories) },
		)
		restore()
		report(t, m.Name, m.Breaks, found)
	}
}

// queueMutant is the fault in force in core/queue. It is that package's own
// variable: the switch is for its tests, and this is one of them that stands
// elsewhere because of what it compares with.
//
//go:linkname queueMutant github.com/kumiki-scheduler/kumiki/core/queue.mutant
var queueMutant uint8

// outsideQueue are faults of the queue that this comparison cannot show.
var outsideQueue = map[string]string{
	"panicSkips":          "upstream's hints do not panic on these objects",
	"gateForgotten":       "upstream asks gates in map order, so no pod is put under two",
	"asideWakes":          "upstream sets no pod aside",
	"asideTimesOut":       "upstream sets no pod aside",
	"doneKeepsEvents":     "costs memory only",
	"eventsWithoutFlight": "costs memory only",
}

// TestMutantsOfQueue puts each fault of core/queue/mutant.go into the queue: the
// histories must see it.
func TestMutantsOfQueue(t *testing.T) {
	names := queueMutants(t)
	if len(names) < 10 {
		t.Fatalf("found only %v", names)
	}
	defer func() { queueMutant = 0 }()
	for i, name := range names {
		if i == 0 {
			continue // sound
		}
		queueMutant = uint8(i)
		found := caught("queue", inHistories)
		queueMutant = 0
		if why := outsideQueue[name]; why != "" && found == "" {
			t.Logf("%-28s cannot show: %s", name, why)
			continue
		}
		report(t, name, "see core/queue/mutant.go", found)
	}
}

// queueMutants reads the names from the source, in the order of their values.
func queueMutants(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../core/queue/mutant.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			for _, n := range s.(*ast.ValueSpec).Names {
				if n.Name != "mutations" {
					names = append(names, n.Name)
				}
			}
		}
	}
	return names
}
