// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"go/ast"
	"go/doc"
	"regexp"
	"slices"
	"strings"
)

const (
	// ArchitecturePage is the page with the diagram that Diagram writes.
	ArchitecturePage = "docs/architecture.md"

	diagramBegins = "<!-- packages begins -->\n"
	diagramEnds   = "<!-- packages ends -->\n"
)

// shownApart are the trees whose packages the diagram shows one by one. Of other trees it shows the first element.
var shownApart = []string{"core"}

// notShown are trees that no package of the scheduler imports.
var notShown = []string{"internal", "examples", "localcluster", "conformance", "kubescheduler", "tools", "deploy"}

// box returns the name under which the diagram shows a package, empty if it does not.
func box(dir string) string {
	first, _, _ := strings.Cut(dir, "/")
	switch {
	case slices.Contains(notShown, first):
		return ""
	case slices.Contains(shownApart, first):
		return dir
	}
	return first
}

// Diagram returns the packages of the scheduler, which of them imports which, and what each owns, as Markdown: a
// Mermaid diagram without the arrows that follow from others, and a table of the first sentences of package comments.
func Diagram(t *Tree) string {
	imports := map[string]map[string]bool{} // box -> boxes that it imports
	for _, f := range t.GoFiles(false) {
		from := box(f.Dir())
		if from == "" {
			continue
		}
		if imports[from] == nil {
			imports[from] = map[string]bool{}
		}
		for _, spec := range f.AST.Imports {
			dir, ours := strings.CutPrefix(importPath(spec), Module+"/")
			if to := box(dir); ours && to != "" && to != from {
				imports[from][to] = true
			}
		}
	}
	var out strings.Builder
	out.WriteString("```mermaid\nflowchart TD\n")
	for _, from := range sorted(imports) {
		for _, to := range sorted(imports[from]) {
			if !follows(imports, from, to) {
				fmt.Fprintf(&out, "  %s --> %s\n", from, to)
			}
		}
	}
	out.WriteString("```\n\n| package | owns |\n|---|---|\n")
	for _, f := range t.GoFiles(false) {
		if box(f.Dir()) == "" || f.AST.Doc == nil {
			continue
		}
		fmt.Fprintf(&out, "| `%s` | %s |\n", f.Dir(), owned(f.AST))
	}
	return out.String()
}

// follows reports whether an arrow follows from two or more others.
func follows(imports map[string]map[string]bool, from, to string) bool {
	seen := map[string]bool{from: true}
	var reaches func(at string) bool
	reaches = func(at string) bool {
		for _, next := range sorted(imports[at]) {
			if next == to && at != from {
				return true
			}
			if next != to && !seen[next] {
				seen[next] = true
				if reaches(next) {
					return true
				}
			}
		}
		return false
	}
	return reaches(from)
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

var commentStart = regexp.MustCompile(`^(?:Package|Command) \S+ (?:owns )?`)

// owned returns the first sentence of a package comment, without its standard beginning.
func owned(f *ast.File) string {
	sentence := strings.TrimSuffix(new(doc.Package).Synopsis(f.Doc.Text()), ".")
	return strings.ReplaceAll(commentStart.ReplaceAllString(sentence, ""), "|", `\|`)
}

// WithDiagram returns the page with its generated section replaced.
func WithDiagram(page, diagram string) (string, error) {
	before, rest, ok := strings.Cut(page, diagramBegins)
	_, after, ends := strings.Cut(rest, diagramEnds)
	if !ok || !ends {
		return "", fmt.Errorf("lint: %s has no section between %q and %q", ArchitecturePage, diagramBegins, diagramEnds)
	}
	return before + diagramBegins + diagram + diagramEnds + after, nil
}

var (
	pathSpan     = regexp.MustCompile(`^[\w./-]+/[\w.-]*\w$`)
	functionSpan = regexp.MustCompile(`^(?:([A-Za-z]\w*)\.)?([A-Za-z]\w*)\(\)$`)
)

// Walk returns what the architecture page names and the code does not have: paths in code spans, and functions in
// code spans (`Engine.Step()`) that the Go file named before them does not declare.
func Walk(t *Tree, pages ...string) []Finding {
	const why = "the page leads a reader through the code; a name that is gone leads nowhere. Follow the code and correct the page"
	var found []Finding
	exists := map[string]bool{}    // path of a file or a directory -> exists
	declared := map[string]*File{} // path of a Go file -> the file
	for _, f := range t.Files {
		exists[f.Path] = true
		for dir := f.Dir(); dir != "."; dir = dirOf(dir) {
			exists[dir] = true
		}
		if f.AST != nil {
			declared[f.Path] = f
		}
	}
	for _, f := range t.Files {
		if !slices.Contains(pages, f.Path) {
			continue
		}
		in := "" // the Go file named last
		for i, line := range strings.Split(f.Src, "\n") {
			for _, span := range codeSpan.FindAllString(line, -1) {
				span = strings.Trim(span, "`")
				where := fmt.Sprintf("%s:%d", f.Path, i+1)
				if m := functionSpan.FindStringSubmatch(span); m != nil {
					if declared[in] == nil || !declares(declared[in].AST, m[1], m[2]) {
						found = append(found, Finding{where, fmt.Sprintf("names %s, which %s does not declare", span, orNoFile(in)), why})
					}
					continue
				}
				first, _, _ := strings.Cut(span, "/")
				if !pathSpan.MatchString(span) || !exists[first] {
					continue
				}
				if !exists[span] {
					found = append(found, Finding{where, "names " + span + ", which does not exist", why})
				} else if declared[span] != nil {
					in = span
				}
			}
		}
	}
	return found
}

func orNoFile(name string) string {
	if name == "" {
		return "no file named before"
	}
	return name
}

func dirOf(path string) string {
	i := strings.LastIndex(path, "/")
	if i < 0 {
		return "."
	}
	return path[:i]
}

// declares reports whether a file declares a function, or a method if recv is not empty.
func declares(f *ast.File, recv, name string) bool {
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Name.Name != name || (fn.Recv == nil) != (recv == "") {
			continue
		}
		if recv == "" || receiver(fn) == recv {
			return true
		}
	}
	return false
}

// receiver returns the name of the type of a method's receiver.
func receiver(fn *ast.FuncDecl) string {
	typ := fn.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	switch index := typ.(type) {
	case *ast.IndexExpr:
		typ = index.X
	case *ast.IndexListExpr:
		typ = index.X
	}
	if id, ok := typ.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}
