// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"regexp"
	"strings"
)

// retiredWords are words and phrases that documents, commit subjects and comments do not use: pattern -> what to write
// instead. They are personifications, inversions and metaphors for which the field has a term.
var retiredWords = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\bnobody\b`), "name the component, or `no pod`, `no scheduler`"},
	{regexp.MustCompile(`(?i)\bwhoever\b`), "name the component or the reader"},
	{regexp.MustCompile(`(?i)\bwhom\b`), "name the component: `which pods are evicted`"},
	{regexp.MustCompile(`(?i)\btells? whether\b`), "reports whether"},
	{regexp.MustCompile(`(?i)\b(?:is|are|was|were|be|been|being) told\b`), "receives, is notified of"},
	{regexp.MustCompile(`(?i)\bin vain\b`), "without effect, wasted"},
	{regexp.MustCompile(`(?i)\bfor ever\b`), "without limit"},
	{regexp.MustCompile(`(?i)\broom\b`), "capacity"},
	{regexp.MustCompile(`(?i)\bbarren\b`), "negative-result cache"},
	{regexp.MustCompile(`(?i)\b(?:knock(?:s|ed)?|hearknocks)\b`), "deferred wake-up"},
	{regexp.MustCompile(`(?i)\bclearances?\b`), "gang preemption"},
	{regexp.MustCompile(`(?i)\b(?:departures?|departing|doom(?:ed)?)\b`), "eviction of a gang, eviction pending"},
	{regexp.MustCompile(`(?i)\b(?:robbed|robs?|robbing)\b`), "capacity lost to another scheduler"},
	{regexp.MustCompile(`(?i)\b(?:lobby|usher)\b`), "waiting pods, Permit plugin"},
	{regexp.MustCompile(`(?i)\b(?:shelf|shelves)\b`), "victim index per node"},
	{regexp.MustCompile(`(?i)\bkin\b`), "equivalence class"},
	{regexp.MustCompile(`(?i)\bwings\b`), "superblocks of a max tree"},
	{regexp.MustCompile(`(?i)\bstrangers?\b`), "another scheduler"},
	{regexp.MustCompile(`(?i)\bpictures?\b`), "cluster snapshot"},
	{regexp.MustCompile(`(?i)\bcomes? to\b`), "effective, results in"},
	{regexp.MustCompile(`(?i)\b(?:full|plain) looks?\b`), "full scan"},
	{regexp.MustCompile(`(?i)\bdear(?:er|est)?\b`), "expensive"},
	{regexp.MustCompile(`(?i)\b(?:is|are|were|was|be) of (?:no )?use\b`), "is useful, does not help"},
	{regexp.MustCompile(`(?i)\btaken back\b`), "rolled back, undone, withdrawn"},
	{regexp.MustCompile(`(?i)\bin the place of\b`), "instead of, replaces"},
	{regexp.MustCompile(`(?i)\bwounds?\b`), "known failure"},
	{regexp.MustCompile(`(?i)\bhighest priority that goes\b`), "maximum victim priority"},
}

const wordsWhy = "people who know Kubernetes and Go read this; a private word is one more thing to learn before the subject"

// Words returns retired words in the prose of documents: outside of code blocks, code spans and generated sections.
func Words(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		if !strings.HasSuffix(f.Path, ".md") {
			continue
		}
		for i, line := range prose(f.Src) {
			for _, what := range retired(line) {
				found = append(found, Finding{fmt.Sprintf("%s:%d", f.Path, i+1), what, wordsWhy})
			}
		}
	}
	return found
}

// retired returns what is retired in a line, and what to write instead.
func retired(line string) []string {
	var list []string
	for _, rule := range retiredWords {
		if m := rule.pattern.FindString(line); m != "" {
			list = append(list, fmt.Sprintf("says %q; instead: %s", m, rule.instead))
		}
	}
	return list
}

var codeSpan = regexp.MustCompile("`[^`]*`")

// prose returns the lines of a Markdown page with code blocks, code spans and generated sections blanked. A section
// between `<!-- NAME begins -->` and `<!-- NAME ends -->` is generated.
func prose(src string) []string {
	lines := strings.Split(src, "\n")
	inFence, generated := false, false
	for i, line := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence {
			inFence = !inFence
		}
		if strings.HasPrefix(line, "<!-- ") {
			generated = strings.HasSuffix(line, " begins -->")
		}
		if fence || inFence || generated || strings.HasPrefix(line, "    ") {
			lines[i] = ""
			continue
		}
		lines[i] = codeSpan.ReplaceAllString(line, "")
	}
	return lines
}

// subjectsSince is the newest commit whose subject is older than the rules about subjects.
const subjectsSince = "c58c7d66c4"

const maxSubject = 72

var subjectForm = regexp.MustCompile(`^[a-z0-9_.*/{}-]+(?:, [a-z0-9_.*/{}-]+)*: [^ ].*[^.]$`)

// Subjects returns what is wrong with the subjects of commits, given as subject lines.
func Subjects(subjects []string) []Finding {
	const why = "a log is read as a list: path, what changes, on one line"
	var found []Finding
	for _, s := range subjects {
		if n := len([]rune(s)); n > maxSubject {
			found = append(found, Finding{"commit " + s, fmt.Sprintf("the subject has %d characters, more than %d", n, maxSubject), why})
		}
		if !subjectForm.MatchString(s) {
			found = append(found, Finding{"commit " + s, "the subject is not `path: imperative phrase` without a full stop", why})
		}
		for _, what := range retired(s) {
			found = append(found, Finding{"commit " + s, what, wordsWhy})
		}
	}
	return found
}
