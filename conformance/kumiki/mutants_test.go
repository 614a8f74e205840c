// SPDX-License-Identifier: Apache-2.0

//go:build kumiki_mutants

package kumiki

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	_ "unsafe" // for go:linkname

	"github.com/kumiki-scheduler/kumiki/conformance/diff"
	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/queue"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/host/devices"
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

// inOracle asks up to 5000 questions.
func inOracle(up diff.Upstream) func() string {
	return func() string {
		r, err := diff.Run(up, Subject{}, diff.Options{Seed: 1, Cases: 5000, Sizes: gen.Sizes{Pods: 12}})
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

// inHistories plays up to 60 histories; the difference is not shrunk.
func inHistories() string {
	for n := range 60 {
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

// leastSeen is the share of the plugins' faults that this comparison with upstream must
// see by itself, in percent, in the little time that it gets for each. What is written
// and waited for is compared in packages volumebinding and devices, and every fault,
// without exception, is seen by a test beside its plugin (TestMutants there).
const leastSeen = 75

// TestMutantsOfPlugins puts each fault of core/plugin and host/devices into the
// plugins: the oracle, the hints, the queue or a kept file must see it.
func TestMutantsOfPlugins(t *testing.T) {
	if !plugin.MutantsBuilt || !devices.MutantsBuilt {
		t.Fatal("built without the faults")
	}
	up := upstream(t)
	seen, total := 0, 0
	try := func(name, breaks string, set func() (restore func())) {
		restore := set()
		defer restore()
		checks := []func() string{
			func() string { return caught("oracle", inOracle(up)) },
			func() string { return caught("hints", inHints) },
			func() string { return caught("kept file", inRegressions(t, up)) },
			func() string { return caught("queue", inHistories) },
			func() string { return caught("engine", inStories(up)) },
		}
		if strings.Contains(name, "hint") || strings.Contains(name, "wake") {
			checks[0], checks[1] = checks[1], checks[0]
		}
		total++
		if found := firstOf(checks...); found != "" {
			seen++
			t.Logf("%-32s %.150s", name, found)
			return
		}
		t.Logf("%-32s NOT SEEN: %s", name, breaks)
	}
	for i, m := range plugin.Mutants {
		try(m.Name, m.Breaks, func() func() { return plugin.SetMutant(i) })
	}
	for i, m := range devices.Mutants {
		try("devices "+m.Name, m.Breaks, func() func() { return devices.SetMutant(i) })
	}
	t.Logf("%d of %d faults are seen, %.1f %%", seen, total, 100*float64(seen)/float64(total))
	if 100*seen < leastSeen*total {
		t.Errorf("%d of %d faults are seen, wanted %d %%", seen, total, leastSeen)
	}
}

// The faults in force in the packages of the core. The variables are theirs: the
// switches are for their tests, and these are tests of theirs that stand
// elsewhere because of what they compare with.
//
//go:linkname queueMutant github.com/kumiki-scheduler/kumiki/core/queue.mutant
var queueMutant uint8

//go:linkname placeMutant github.com/kumiki-scheduler/kumiki/core/place.mutant
var placeMutant int

//go:linkname engineMutant github.com/kumiki-scheduler/kumiki/core/engine.mutant
var engineMutant int

// inStories plays up to 60 runs of the whole engine.
func inStories(up diff.Upstream) func() string {
	return func() string { return stories(up.Oracle, 1, 60, &Story{}) }
}

// TestMutantsOfCore puts the faults of core/queue, core/place and core/engine in
// force, one after the other. Each must be seen, or be listed with the reason why
// a comparison with upstream cannot show it.
func TestMutantsOfCore(t *testing.T) {
	up := upstream(t)
	for _, p := range []struct {
		pkg    string
		set    func(i int)
		checks map[string]func() string // what -> check
		hidden map[string]string        // fault -> why it cannot show here
	}{
		{"queue", func(i int) { queueMutant = uint8(i) }, map[string]func() string{"queue": inHistories}, map[string]string{
			"gateForgotten": "upstream asks gates in map order, so no pod is put under two",
			"panicSkips":    "upstream's hints do not panic on these objects",
			"asideWakes":    "upstream sets no pod aside",
		}},
		{"place", func(i int) { placeMutant = i }, map[string]func() string{"oracle": inOracle(up)}, map[string]string{
			"budgetIgnored": "costs memory only",
		}},
		{"engine", func(i int) { engineMutant = i }, map[string]func() string{"engine": inStories(up)}, map[string]string{
			"conditionAlways": "the stories do not show the condition back to the engine",
			"timeRunsBack":    "the stories never turn the clock back",
			"neverDone":       "costs memory, and wakes in vain",
		}},
	} {
		names := faults(t, p.pkg)
		for i, name := range names {
			if i == 0 {
				continue // none
			}
			p.set(i)
			found := ""
			for what, check := range p.checks { // order: one entry
				found = caught(what, check)
			}
			p.set(0)
			if why := p.hidden[name]; why != "" && found == "" {
				t.Logf("%-28s cannot show: %s", name, why)
				continue
			}
			report(t, p.pkg+" "+name, "see core/"+p.pkg+"/mutant.go", found)
		}
	}
}

// faults reads the names from the source, in the order of their values.
func faults(t *testing.T, pkg string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../core/"+pkg+"/mutant.go", nil, 0)
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
	if len(names) < 5 {
		t.Fatalf("core/%s/mutant.go: found only %v", pkg, names)
	}
	return names
}
