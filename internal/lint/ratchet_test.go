// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "lower the limits of "+ratchetFile+" to what is counted")

// TestViolationsFall holds ratchetFile. After a clean-up, go test ./internal/lint -run Fall -update lowers the limits;
// -v lists what is left.
func TestViolationsFall(t *testing.T) {
	tree := load(t)
	file := filepath.Join(tree.Root, filepath.FromSlash(ratchetFile))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	limits, err := parseRatchet(string(text))
	if err != nil {
		t.Fatal(err)
	}
	all := Violations(tree)
	found, lowered := Ratchet(limits, all)
	report(t, found)
	var after strings.Builder
	for _, line := range strings.SplitAfter(string(text), "\n") {
		if strings.HasPrefix(line, "#") {
			after.WriteString(line)
		}
	}
	for i, l := range lowered {
		fmt.Fprintf(&after, "%-16s %-22s %d\n", l.rule, l.tree, l.most)
		if l.most < limits[i].most {
			t.Logf("%s %s: %d, %d are allowed; lower it with -update", l.rule, l.tree, l.most, limits[i].most)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(after.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range ratchets {
		for dir, places := range all[r.name] {
			t.Logf("%-16s %-30s %d", r.name, dir, len(places))
		}
	}
}

func TestDocumentsUseTermsOfTheField(t *testing.T) { report(t, Words(load(t))) }

// TestSubjectsOfCommits reads the log of git. A clone without the history, and a directory without git, have no log:
// then there is nothing to judge, and Subjects is tested with samples all the same.
func TestSubjectsOfCommits(t *testing.T) {
	cmd := exec.Command("git", "log", "--no-merges", "--format=%s", subjectsSince+"..HEAD")
	cmd.Dir = load(t).Root
	out, err := cmd.Output()
	if err != nil {
		t.Logf("no log since %s: %v", subjectsSince, err)
		return
	}
	report(t, Subjects(strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")))
}

func TestSampleSubjects(t *testing.T) {
	expect(t, Subjects([]string{"core/queue: wake pods on node add", "kube, host: rename the observer", "docs/design: record the decision"}))
	expect(t, Subjects([]string{"Fix it"}), "is not `path: imperative phrase`")
	expect(t, Subjects([]string{"core/queue: wake pods."}), "is not `path: imperative phrase`")
	expect(t, Subjects([]string{"core/queue: " + strings.Repeat("x", maxSubject)}), "84 characters")
	expect(t, Subjects([]string{"core/queue: let nobody wait"}), "nobody")
}

func TestSampleWords(t *testing.T) {
	page := func(text string) []Finding { return Words(sample(t, "docs/a.md", text)) }
	expect(t, page("No pod waits; capacity is reserved.\n"))
	expect(t, page("Nobody waits.\n"), "docs/a.md:1 says \"Nobody\"")
	expect(t, page("It waits for ever\nin vain.\n"), "docs/a.md:1", "docs/a.md:2")
	expect(t, page("The message is `nobody is evicted`.\n"))
	expect(t, page("```\nEVICTS nobody\n```\n"))
	expect(t, page("    nobody\n"))
	expect(t, page("<!-- table begins -->\nroom\n<!-- table ends -->\nroom\n"), "docs/a.md:4")
	expect(t, Words(sample(t, "a.txt", "nobody\n")))
}

func TestSampleRatchet(t *testing.T) {
	const doc = "package p\n\n// f tells whether nobody waits.\nfunc f() bool { return true }\n"
	tree := sample(t, "core/p/a.go", doc, "core/p/a_test.go", "package p\n\n// nobody\n", "core/q/a.go",
		"package q\n\n// f reports whether x.\nfunc f() bool { return true }\n\nvar x = `"+strings.Repeat("x", maxColumns)+"`\n")
	all := Violations(tree)
	if got := len(all["retired-words"]["core/p"]); got != 2 {
		t.Errorf("%d retired words in core/p, expected 2: %v", got, all["retired-words"])
	}
	try := func(text string, want ...string) []limit {
		t.Helper()
		limits, err := parseRatchet(text)
		if err != nil {
			t.Fatal(err)
		}
		found, lowered := Ratchet(limits, all)
		expect(t, found, want...)
		return lowered
	}
	const enough = "retired-words core/... 2\nreports-whether core/p 1\nlong-lines core/q 1\n"
	try("# known\n" + enough)
	try(strings.Replace(enough, "... 2", "... 1", 1), "retired-words: 2 places, 1 are allowed")
	try(strings.Replace(enough, "core/q", "core/p", 1), "core/q/a.go:6 long-lines")
	try(enough+"retired-words core/p 0\n", "core/p/a.go:3 says \"nobody\"", "core/p/a.go:3 says \"tells whether\"", "core/p retired-words: 2 places")
	if l := try(strings.Replace(enough, "... 2", "... 5", 1)); l[0].most != 2 {
		t.Errorf("the limit is lowered to %d, expected 2", l[0].most)
	}
	if _, err := parseRatchet("retired-words core\n"); err == nil {
		t.Error("a line without a number is accepted")
	}
}

func TestSampleUnexplainedTypes(t *testing.T) {
	judge := func(src string) []Finding {
		tree := sample(t, "core/p/a.go", "package p\n\n"+src, glossaryPage, "- **relief**, **dry run**: a check.\n")
		return Violations(tree)["unexplained"]["core/p"]
	}
	expect(t, judge("type Relief struct{}\n\ntype PodUIDs []string\n\ntype UIDSet map[string]bool\n"))
	expect(t, judge("type GangParty struct{}\n"), "the type GangParty has the word party")
	expect(t, judge("type party struct{}\n"))
}
