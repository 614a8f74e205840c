// SPDX-License-Identifier: Apache-2.0

package build

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// chain is a program that imports two libraries, both of which import base; big has most of the source.
func chain(t *testing.T) *Work {
	list, err := ParsePackages(strings.NewReader("base\t1000000\t\n" +
		"small\t0\tbase\n" + "big\t9000000\tbase unknown\n" + "main\t1000\tbase small big\n"))
	if err != nil {
		t.Fatal(err)
	}
	return NewWork(list)
}

// TestLinesOfTheGoCommand: packages, downloads and complaints are distinguished. Fault: an error counts as a package.
func TestLinesOfTheGoCommand(t *testing.T) {
	for text, want := range map[string]Line{
		"k8s.io/api/core/v1":                      {Package: "k8s.io/api/core/v1"},
		"runtime":                                 {Package: "runtime"},
		"go: downloading k8s.io/api v0.37.1":      {Module: "k8s.io/api v0.37.1"},
		"go: added golang.org/x/net v0.1.0":       {},
		"":                                        {},
		"# example.com/a":                         {Complaint: "# example.com/a"},
		"a.go:3:5:undefined":                      {Complaint: "a.go:3:5:undefined"},
		"go: updates to go.mod needed":            {Complaint: "go: updates to go.mod needed"},
		"\tcannot use x (variable of type int)":   {Complaint: "\tcannot use x (variable of type int)"},
		"link: running gcc failed: exit status 1": {Complaint: "link: running gcc failed: exit status 1"},
	} {
		if got := ParseLine(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

// TestWorkCountsWhatAPackageImports: when a package begins, what it imports is done, compiled or found in the cache. A
// package counts once, and one that is not in the list not at all. Fault: a package counts each time that another one
// imports it.
func TestWorkCountsWhatAPackageImports(t *testing.T) {
	w := chain(t)
	w.Begun("base")
	if w.Ready() != 0 {
		t.Errorf("ready %v when the first package begins", w.Ready())
	}
	w.Begun("small")
	base := w.Ready()
	if base <= 0 {
		t.Error("nothing is ready when base is compiled")
	}
	w.Begun("big")
	w.Begun("not listed")
	if w.Ready() != base {
		t.Errorf("ready %v, want base alone, %v", w.Ready(), base)
	}
	w.Begun("main")
	if last := w.Total() - w.Ready(); last <= 0 || last > base {
		t.Errorf("%v of %v left when the program itself begins", last, w.Total())
	}
}

// TestPackagesWithMoreSourceCostMore, and those that import more. Fault: all packages cost the same.
func TestPackagesWithMoreSourceCostMore(t *testing.T) {
	w := chain(t)
	base, small, big := w.cost[0], w.cost[1], w.cost[2]
	if !(small < base && base < big) {
		t.Errorf("base %v, small %v, big %v", base, small, big)
	}
	if alone := NewWork([]Package{{Path: "small"}}); !(alone.Total() < small) {
		t.Errorf("small costs %v, and %v without imports", small, alone.Total())
	}
}

// TestPackageLists: a list that cannot be read is an error.
func TestPackageLists(t *testing.T) {
	for _, text := range []string{"a\n", "a\tx\t\n"} {
		if _, err := ParsePackages(strings.NewReader(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// TestTheLineOfProgress follows a build from empty caches: downloads, then the compilation, at first with the speed of
// the processors and then as measured, then the linkers. Faults: what was in the cache counts for the speed; the
// downloads that are left are forgotten.
func TestTheLineOfProgress(t *testing.T) {
	downloading := State{Part: Downloading, CPUs: 2, Modules: 50, MissingModules: 200, Downloading: 100 * time.Second}
	compiling := State{Part: Compiling, CPUs: 2, MissingModules: 200, Total: 1000, Ready: 400,
		Compiling: 400 * time.Second}
	half := State{Part: Compiling, CPUs: 2, Total: 1000, Ready: 600, Found: 500, Compiling: 100 * time.Second}
	for _, c := range []struct {
		state State
		want  string
	}{
		{State{Part: Compiling, CPUs: 2}, "building: 0 %, about 8 min left (compiling)"},
		{downloading, "building: 0 %, about 13 min left (downloading modules, 50 of up to 200)"},
		// 600 s of CPU time are left, at about 1 s in a second.
		{compiling, "building: 40 %, about 11 min left (compiling)"},
		// 400 s are left; 100 s took 100 s, and 500 s were in the cache.
		{half, "building: 58 %, about 7 min left (compiling)"},
		{State{Part: Linking, CPUs: 2, Total: 1000, Ready: 990, Compiling: time.Hour},
			"building: 97 %, about 40 s left (linking)"},
	} {
		if got := c.state.String(); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.state, got, c.want)
		}
	}
}

// TestProgressOnlyGrows with the compiled packages, and the time left shrinks if the speed stays.
func TestProgressOnlyGrows(t *testing.T) {
	before := State{Part: Compiling, CPUs: 2, Total: 1000}
	for i := range 100 {
		next := before
		next.Ready, next.Compiling = float64(10*i), time.Duration(5*i)*time.Second
		if next.Fraction() < before.Fraction() || next.Left() > before.Left() {
			t.Fatalf("%v after %v", next, before)
		}
		before = next
	}
}

// TestModulesOfSums: modules with source count, lines of go.mod files do not, and capital letters are escaped as in the
// module cache.
func TestModulesOfSums(t *testing.T) {
	got := Sums("github.com/Azure/x v1.0.0 h1:abc=\ngithub.com/Azure/x v1.0.0/go.mod h1:abc=\nb v2.0.0/go.mod h1:c=\n")
	if !slices.Equal(got, []string{"github.com/Azure/x v1.0.0"}) {
		t.Errorf("modules %q", got)
	}
	if name := CacheName(got[0]); name != "github.com/!azure/x@v1.0.0" {
		t.Errorf("directory %s", name)
	}
}

// TestTheCompilerGetsMemoryThatIsThere: garbage collection is put off only if there is enough memory for all
// processes. Fault: it is put off on small machines.
func TestTheCompilerGetsMemoryThatIsThere(t *testing.T) {
	for _, c := range []struct {
		memory uint64
		cpus   int
		want   string
	}{
		{0, 2, ""}, {4 * gib, 2, ""}, {16 * gib, 8, ""},
		{8 * gib, 2, "GOGC=off GOMEMLIMIT=2048MiB"}, {256 * gib, 4, "GOGC=off GOMEMLIMIT=2048MiB"},
	} {
		if got := strings.Join(gcSettings(c.memory, c.cpus), " "); got != c.want {
			t.Errorf("%d GiB, %d CPUs: %q, want %q", c.memory/gib, c.cpus, got, c.want)
		}
	}
	if got := availableOf("MemTotal: 10 kB\nMemAvailable:    2048 kB\n"); got != 2<<20 {
		t.Errorf("available %d", got)
	}
}
