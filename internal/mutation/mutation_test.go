// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// TestFaultsApply detects a patch that no longer applies, that does not parse, or whose instrumented copy does not
// compile.
func TestFaultsApply(t *testing.T) {
	faults, err := LoadAll(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(faults) < 680 {
		t.Errorf("%d faults, want the 680 that there were when they became patches", len(faults))
	}
	overlay, err := Overlay(root, t.TempDir(), faults)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"build", "-overlay", overlay}
	for _, dir := range packagesOf(faults) {
		args = append(args, "./"+dir)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("compiling the instrumented copies: %v\n%s", err, out)
	}
}

// TestNamedTestsExist: each patch names a test function of its package that exists.
func TestNamedTestsExist(t *testing.T) {
	faults, err := LoadAll(root)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{} // directory of a package -> text of its test files
	for _, f := range faults {
		for _, by := range f.DetectedBy {
			if _, read := tests[by.Dir]; !read {
				tests[by.Dir] = testFiles(t, by.Dir)
			}
			name, _, _ := strings.Cut(by.Name, "/")
			if !regexp.MustCompile(`(?m)^func ` + name + `\(`).MatchString(tests[by.Dir]) {
				t.Errorf("fault %s: there is no test %s in %s", f.ID(), name, by.Dir)
			}
		}
	}
}

// testFiles is the text of all test files of a package.
func testFiles(t *testing.T, dir string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(raw)
	}
	return b.String()
}

const sample = `package p

import "fmt"

type box[T any] struct{ v T }

func (b *box[T]) get(_ int, more ...string) (T, error) {
	if len(more) > 1 {
		return b.v, fmt.Errorf("too many")
	}
	return b.v, nil
}

func twice[T ~int](n T) T {
	return 2 * n
}
`

// TestInstrument runs instrumented packages, two of them with one name: each fault changes what they say, and without a
// fault nothing changes.
func TestInstrument(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	head := func(name string) string {
		return "Fault: " + name + "\nBreaks: a number\nDetected by: TestAll\n\n--- p.go\n+++ p.go\n"
	}
	write("go.mod", "module p\n\ngo 1.26\n")
	write("p/p.go", sample)
	write("p/p_test.go", `package p

import "testing"

func TestAll(t *testing.T) {
	_, err := (&box[int]{3}).get(1, "a", "b")
	t.Log(twice(4), err)
	if twice(4) != 8 || err == nil {
		t.Fail()
	}
}
`)
	write("p/testdata/faults/thrice.patch", head("thrice")+"@@ -15,3 +15,3 @@\n func twice[T ~int](n T) T {\n-\treturn 2 * n\n+\treturn 3 * n\n }\n")
	write("p/testdata/faults/noError.patch", head("noError")+
		"@@ -1,3 +1,6 @@\n package p\n \n-import \"fmt\"\n+import (\n+\t\"fmt\"\n+\t\"math\"\n+)\n"+
		"@@ -40,3 +40,3 @@\n func (b *box[T]) get(_ int, more ...string) (T, error) {\n-\tif len(more) > 1 {\n+\tif len(more) > math.MaxInt32 {\n \t\treturn b.v, fmt.Errorf(\"too many\")\n")
	write("p/testdata/faults/harmless.patch", head("harmless")+"@@ -15,3 +15,3 @@\n func twice[T ~int](n T) T {\n-\treturn 2 * n\n+\treturn n + n\n }\n")
	write("q/p/p.go", "package p\n\nfunc one() int {\n\treturn 1\n}\n")
	write("q/p/p_test.go", "package p\n\nimport \"testing\"\n\n"+
		"func TestOne(t *testing.T) {\n\tif one() != 1 {\n\t\tt.Fail()\n\t}\n}\n")
	write("q/p/testdata/faults/two.patch", strings.Replace(head("two"), "TestAll", "TestOne", 1)+
		"@@ -3,3 +3,3 @@\n func one() int {\n-\treturn 1\n+\treturn 2\n }\n")
	faults, err := LoadAll(dir)
	if err != nil || len(faults) != 4 {
		t.Fatal(faults, err)
	}
	got := map[string]bool{} // fault -> it was detected
	r := Runner{Root: dir, Temp: t.TempDir(), Timeout: 60e9, Workers: 2, Report: func(r Result) { got[r.Name] = r.Detected() }}
	if err := r.Build(t.Context(), faults); err != nil {
		t.Fatal(err)
	}
	if err := r.Baseline(t.Context(), faults); err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context(), faults); err != nil {
		t.Fatal(err)
	}
	if !got["thrice"] || !got["noError"] || got["harmless"] || !got["two"] || len(got) != 4 {
		t.Errorf("detected: %v, want thrice, noError and two", got)
	}
}

// TestPatchesAreRefused: what the header and the hunks of a patch must say.
func TestPatchesAreRefused(t *testing.T) {
	const diff = "\n--- p.go\n+++ p.go\n@@ -1 +1 @@\n-a\n+b\n"
	for want, text := range map[string]string{
		"is no name of a fault":             "Breaks: x\nDetected by: T\n" + diff,
		"does not say what it breaks":       "Fault: x\nDetected by: T\n" + diff,
		"does not say which test":           "Fault: x\nBreaks: x\n" + diff,
		"changes nothing":                   "Fault: x\nBreaks: x\nDetected by: T\n",
		"a positive number of checks":       "Fault: x\nBreaks: x\nDetected by: T\nChecks: 0\n" + diff,
		"ends too early":                    "Fault: x\nBreaks: x\nDetected by: T\n\n--- p.go\n+++ p.go\n@@ -1,2 +1 @@\n-a\n",
		"want Fault, Breaks, Detected by, ": "Fault: x\nAuthor: x\n",
	} {
		if _, err := parse("p", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	f, err := parse("p", "Fault: x\nBreaks: x\nDetected by: T, q:U/v\n"+diff)
	if err != nil || len(f.DetectedBy) != 2 || f.DetectedBy[0] != (Test{"p", "T"}) || f.DetectedBy[1] != (Test{"q", "U/v"}) {
		t.Fatal(f, err)
	}
	if _, err := f.Files[0].Apply("b\n"); err == nil {
		t.Error("applies to another text")
	}
	near := FilePatch{Name: "p.go", Hunks: []Hunk{{Line: 1, Old: []string{"1", "2", "3", "x"}, New: []string{"1", "2", "y", "x"}}}}
	if got, err := near.Apply("one\n2\n3\nx"); err != nil || got != "one\n2\ny\nx" {
		t.Errorf("a changed line of context: %q, %v", got, err)
	}
	if got, err := near.Apply("1\n2\nthree\nx"); err == nil {
		t.Errorf("a line to replace that has changed: %q", got)
	}
	src, err := newSchema("p.go", "package p\n\nvar a = 1\n")
	if err != nil {
		t.Fatal(err)
	}
	p := FilePatch{Name: "p.go", Hunks: []Hunk{{Line: 3, Old: []string{"var a = 1"}, New: []string{"var a = 2"}}}}
	if err := src.add(1, p); err == nil || !strings.Contains(err.Error(), "outside of the bodies") {
		t.Error("a patch of a variable:", err)
	}
}
