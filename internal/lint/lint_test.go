// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The repository is read once for all rules.
var repository = sync.OnceValues(Load)

func load(t *testing.T) *Tree {
	t.Helper()
	tree, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.GoFiles(false)) < 10 {
		t.Fatalf("read only %d Go files below %s: the rules would judge nothing", len(tree.GoFiles(false)), tree.Root)
	}
	return tree
}

func report(t *testing.T, found []Finding) {
	t.Helper()
	for _, f := range found {
		t.Error(f)
	}
}

func TestImportsPointDown(t *testing.T) { report(t, ImportGraph(load(t))) }

func TestCoreIsPure(t *testing.T) { report(t, Pure(load(t))) }

func TestOnePackageCommentThatSaysWhatThePackageOwns(t *testing.T) {
	report(t, PackageComments(load(t)))
}

func TestGoFilesCarryTheirLicenceAndStayShort(t *testing.T) { report(t, GoFileForm(load(t))) }

func TestGoFilesAreAsGofmtWritesThem(t *testing.T) { report(t, Formatted(load(t))) }

func TestNoTextOfOneMachineOrOneDay(t *testing.T) { report(t, Text(load(t))) }

func TestCitedRulesAreDefined(t *testing.T) { report(t, Citations(load(t))) }

func TestDocumentsAreListedDatedAndLinked(t *testing.T) { report(t, Documents(load(t))) }

func TestPathsInDocumentsExist(t *testing.T) { report(t, Paths(load(t))) }

func TestOnePageListsWhatIsNotImplemented(t *testing.T) { report(t, Unimplemented(load(t))) }

func TestNoTestSkipsItself(t *testing.T) { report(t, Skips(load(t))) }

func TestFieldsOfStateAreKeptOrDerived(t *testing.T) { report(t, Facts(load(t))) }

func TestGoroutinesStartInFewPlaces(t *testing.T) {
	found, counts := Goroutines(load(t))
	report(t, found)
	for _, entry := range sortedKeys(counts) {
		t.Logf("%-24s %2d of %2d: %s", entry, counts[entry], goroutines[entry].most, goroutines[entry].why)
	}
}

// TestNothingForeignIsCompiledIn looks at every package of the root module outside internal/, so at least at
// everything in the closure of cmd/kumiki.
func TestNothingForeignIsCompiledIn(t *testing.T) {
	tree := load(t)
	var pkgs []string
	for _, f := range tree.GoFiles(false) {
		dir := "./" + f.Dir()
		nested := f.In("localcluster") || f.In("conformance") || f.In("kubescheduler") || f.In("tools") || f.In("internal") ||
			f.In("app/apptest") || f.In("host/framework/plugintest") // for tests of other modules
		if !nested && !slices.Contains(pkgs, dir) {
			pkgs = append(pkgs, dir)
		}
	}
	deps, err := goList(tree.Root, append([]string{"-deps", "-json=ImportPath,Imports"}, pkgs...)...)
	if err != nil {
		t.Fatal(err)
	}
	if len(deps) < 50 {
		t.Fatalf("go list knows only %d packages below %v: the rule would judge nothing", len(deps), pkgs)
	}
	report(t, Closure(deps))
}

// forSamples are the packages that the samples of this package's own tests import.
var forSamples = []string{"maps", "slices"}

var compiledCore = sync.OnceValues(func() ([]Dep, error) {
	tree, err := repository()
	if err != nil {
		return nil, err
	}
	args := append([]string{"-deps", "-export", "-json=ImportPath,Export,Dir,GoFiles,Standard", "./core/..."}, forSamples...)
	return goList(tree.Root, args...)
})

func TestNoDecisionFollowsMapOrder(t *testing.T) {
	tree := load(t)
	deps, err := compiledCore()
	if err != nil {
		t.Fatal(err)
	}
	checker := NewChecker(deps)
	judged := 0
	for _, d := range deps {
		if !strings.HasPrefix(d.ImportPath, path.Join(Module, "core")+"/") {
			continue
		}
		p, err := checker.CheckDep(tree.Root, d)
		if err != nil {
			t.Error(err)
			continue
		}
		judged++
		report(t, MapOrder(p))
	}
	if judged < 4 {
		t.Errorf("judged only %d packages of core", judged)
	}
}
