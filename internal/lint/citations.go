// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"regexp"
	"strings"
)

// rulesPage defines the numbered rules that code, tests and documents cite.
const rulesPage = "docs/preemption-rules.md"

var (
	ruleCitation   = regexp.MustCompile(`\b[RAHI][0-9]{1,2}\b`)
	ruleDefinition = regexp.MustCompile(`^\| ([RAHI][0-9]{1,2}) \|`)
)

// Citations returns the citations of numbered rules (R5, A15, H22, I7) that rulesPage does not define, and rules that
// are defined twice there. Go files and their test data are searched below core, kube, host and internal, and all
// documents.
func Citations(t *Tree) []Finding {
	var found []Finding
	defined := map[string]bool{} // number of a rule -> rulesPage defines it
	for _, f := range t.Files {
		if f.Path != rulesPage {
			continue
		}
		for i, line := range strings.Split(f.Src, "\n") {
			m := ruleDefinition.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			if defined[m[1]] {
				found = append(found, Finding{fmt.Sprintf("%s:%d", f.Path, i+1), "defines " + m[1] + " again",
					"a citation must lead to one definition"})
			}
			defined[m[1]] = true
		}
	}
	for _, f := range t.Files {
		if !citesRules(f) {
			continue
		}
		for i, line := range strings.Split(f.Src, "\n") {
			for _, rule := range ruleCitation.FindAllString(line, -1) {
				if !defined[rule] {
					found = append(found, Finding{fmt.Sprintf("%s:%d", f.Path, i+1), "cites " + rule + ", which is not defined",
						"a reader has the repository and nothing else; define the rule in " + rulesPage + ", or write the reason instead"})
				}
			}
		}
	}
	return found
}

// citesRules reports whether f is a document, or a Go file or test data of the scheduler. Samples of lint's own tests
// and the bench's data are not.
func citesRules(f *File) bool {
	switch {
	case strings.HasSuffix(f.Path, ".md"):
		return true
	case f.In("internal/lint"):
		return false
	case strings.HasSuffix(f.Path, ".go"), strings.HasSuffix(f.Path, ".txt"):
		return f.In("core") || f.In("kube") || f.In("host") || f.In("internal")
	}
	return false
}
