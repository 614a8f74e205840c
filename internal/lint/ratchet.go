// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// A ratchet is a rule that older code breaks: each tree of packages has a number of known violations, which may only
// fall. ratchetFile holds the numbers; a package that it does not cover has none.
const ratchetFile = "internal/lint/ratchet.txt"

const maxColumns = 120

// ratchets are the rules with known violations: name -> what counts them in one file, as lines with what is wrong.
var ratchets = []struct {
	name  string
	count func(t *Tree, f *File) []Finding
}{
	{"retired-words", retiredComments},
	{"reports-whether", boolDocs},
	{"long-lines", longLines},
	{"unexplained", unexplainedTypes},
}

// Violations returns what each ratchet counts: name of the rule -> package -> findings.
func Violations(t *Tree) map[string]map[string][]Finding {
	all := map[string]map[string][]Finding{}
	for _, r := range ratchets {
		all[r.name] = map[string][]Finding{}
		for _, f := range t.GoFiles(false) {
			if found := r.count(t, f); len(found) > 0 {
				all[r.name][f.Dir()] = append(all[r.name][f.Dir()], found...)
			}
		}
	}
	return all
}

// limit is one line of ratchetFile.
type limit struct {
	rule, tree string // tree is a package, or a/... for all packages below a without a line of their own
	most       int
}

// parseRatchet reads lines `rule tree number`; # begins a comment.
func parseRatchet(text string) ([]limit, error) {
	var limits []limit
	for i, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 3 {
			return nil, fmt.Errorf("lint: %s:%d: want rule, tree and number, got %q", ratchetFile, i+1, line)
		}
		most, err := strconv.Atoi(fields[2])
		if err != nil {
			return nil, fmt.Errorf("lint: %s:%d: %w", ratchetFile, i+1, err)
		}
		limits = append(limits, limit{fields[0], fields[1], most})
	}
	return limits, nil
}

// Ratchet returns the rules whose violations in a tree exceed their limit, and the limits lowered to what is counted.
func Ratchet(limits []limit, all map[string]map[string][]Finding) (found []Finding, lowered []limit) {
	const why = "the violations of this rule may only fall; write new and moved lines as the rule says"
	counted := make([][]Finding, len(limits))
	for _, r := range ratchets {
		dirs := make([]string, 0, len(all[r.name]))
		for dir := range all[r.name] {
			dirs = append(dirs, dir)
		}
		slices.Sort(dirs)
		for _, dir := range dirs {
			if i := limitOf(limits, r.name, dir); i >= 0 {
				counted[i] = append(counted[i], all[r.name][dir]...)
				continue
			}
			for _, f := range all[r.name][dir] {
				found = append(found, Finding{f.Where, r.name + ": " + f.What, f.Why})
			}
		}
	}
	for i, l := range limits {
		n := len(counted[i])
		if n > l.most {
			found = append(found, Finding{l.tree, fmt.Sprintf("%s: %d places, %d are allowed", l.rule, n, l.most), why})
			if l.most == 0 {
				found = append(found, counted[i]...)
			}
		}
		l.most = min(l.most, n)
		lowered = append(lowered, l)
	}
	return found, lowered
}

// limitOf returns the index of the most specific limit of a rule for a package, or -1.
func limitOf(limits []limit, rule, dir string) int {
	best := -1
	for i, l := range limits {
		if l.rule != rule || !covers([]string{l.tree}, dir) {
			continue
		}
		if l.tree == dir {
			return i
		}
		if best < 0 || len(l.tree) > len(limits[best].tree) {
			best = i
		}
	}
	return best
}

// retiredComments returns retired words in the comments of a Go file.
func retiredComments(t *Tree, f *File) []Finding {
	if f.In("internal/lint") {
		return nil // names the words
	}
	var found []Finding
	for _, group := range f.AST.Comments {
		for _, c := range group.List {
			first := t.Fset.Position(c.Pos()).Line
			for i, line := range strings.Split(c.Text, "\n") {
				for _, what := range retired(codeSpan.ReplaceAllString(line, "")) {
					found = append(found, Finding{fmt.Sprintf("%s:%d", f.Path, first+i), what, wordsWhy})
				}
			}
		}
	}
	return found
}

// boolDocs returns functions with one result, a bool, whose doc comment does not say "reports whether". Function
// values and functions without a comment do not count.
func boolDocs(t *Tree, f *File) []Finding {
	const why = "the standard library words it so, and a reader sees from the first words what true means"
	var found []Finding
	for _, d := range f.AST.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Doc == nil || fn.Type.Results == nil || fn.Type.Results.NumFields() != 1 {
			continue
		}
		result, ok := fn.Type.Results.List[0].Type.(*ast.Ident)
		if !ok || result.Name != "bool" || strings.Contains(strings.Join(strings.Fields(fn.Doc.Text()), " "), "reports whether") {
			continue
		}
		found = append(found, Finding{t.at(fn), fn.Name.Name + " returns a bool, and its comment does not say that it reports whether", why})
	}
	return found
}

// longLines returns lines of more than maxColumns columns. A tab counts as four.
func longLines(_ *Tree, f *File) []Finding {
	var found []Finding
	for i, line := range strings.Split(f.Src, "\n") {
		if n := len([]rune(line)) + 3*strings.Count(line, "\t"); n > maxColumns {
			found = append(found, Finding{fmt.Sprintf("%s:%d", f.Path, i+1), fmt.Sprintf("%d columns, more than %d", n, maxColumns),
				"a line that does not fit a window beside another is read in two pieces"})
		}
	}
	return found
}
