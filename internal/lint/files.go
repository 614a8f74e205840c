// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"regexp"
	"strings"
)

const (
	spdx     = "// SPDX-License-Identifier: Apache-2.0"
	maxLines = 700
)

// GoFileForm finds Go files without the licence line, and files too long to hold in mind.
func GoFileForm(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		if !strings.HasSuffix(f.Path, ".go") {
			continue
		}
		if first, _, _ := strings.Cut(f.Src, "\n"); first != spdx {
			found = append(found, Finding{f.Path, "first line is not " + spdx,
				"whoever copies one file must still know its licence"})
		}
		if n := strings.Count(f.Src, "\n"); n > maxLines {
			found = append(found, Finding{f.Path, fmt.Sprintf("%d lines, more than %d", n, maxLines),
				"a file is about one thing; split it along the nouns"})
		}
	}
	return found
}

// Formatted finds Go files that gofmt would write otherwise.
func Formatted(t *Tree) []Finding {
	const why = "files are compared line by line, and a line that only gofmt has moved hides the one that matters; run gofmt -w on it"
	var found []Finding
	var out bytes.Buffer
	for _, f := range t.GoFiles(true) {
		out.Reset()
		if err := format.Node(&out, t.Fset, f.AST); err != nil {
			found = append(found, Finding{f.Path, "cannot be formatted: " + err.Error(), why})
		} else if out.String() != f.Src {
			found = append(found, Finding{f.Path, "is not as gofmt writes it", why})
		}
	}
	return found
}

var owns = regexp.MustCompile(`\bowns?\b`)

// PackageComments finds packages without exactly one package comment, and comments that do not say what the package
// owns. Commands say what they do instead.
func PackageComments(t *Tree) []Finding {
	const why = "one comment per package says what it owns; a reader finds the package by it, and two comments drift apart"
	comments := map[string][]*File{} // package directory -> files with a package comment
	sources := map[string]int{}      // package directory -> files that are not tests
	var dirs []string                // package directories in order of path
	for _, f := range t.GoFiles(true) {
		if _, seen := comments[f.Dir()]; !seen && !f.IsTest() {
			comments[f.Dir()] = nil
			dirs = append(dirs, f.Dir())
		}
		if !f.IsTest() {
			sources[f.Dir()]++
		}
		if f.AST.Doc != nil {
			comments[f.Dir()] = append(comments[f.Dir()], f)
		}
	}
	var found []Finding
	for _, dir := range dirs {
		switch files := comments[dir]; len(files) {
		case 0:
			found = append(found, Finding{dir, "no package comment", why})
		case 1:
			if what := judgeComment(files[0], sources[dir] == 1); what != "" {
				found = append(found, Finding{files[0].Path, what, why})
			}
		default:
			for _, f := range files[1:] {
				found = append(found, Finding{f.Path, "a second package comment, beside " + files[0].Path, why})
			}
		}
	}
	return found
}

// judgeComment says what is wrong with the only package comment of a package. A package of one file needs no doc.go.
func judgeComment(f *File, alone bool) string {
	text, name := f.AST.Doc.Text(), f.AST.Name.Name
	switch {
	case strings.HasPrefix(text, "SPDX-"):
		return "the licence line stands directly above the package clause and became its comment; leave a line free"
	case name == "main":
		if !strings.HasPrefix(text, "Command ") {
			return "the comment of a command starts with `Command <name>`"
		}
	case !strings.HasPrefix(text, "Package "+name+" "):
		return fmt.Sprintf("the comment does not start with `Package %s`", name)
	case !owns.MatchString(text):
		return "the comment does not say what the package owns"
	case !alone && !strings.HasSuffix(f.Path, "/doc.go"):
		return "the package comment is not in doc.go"
	}
	return ""
}

// forbiddenText are patterns that no file of the repository may hold, each with its reason.
var forbiddenText = []struct {
	pattern *regexp.Regexp
	why     string
}{
	{regexp.MustCompile(`(?:^|[\s"'` + "`" + `=:(\[,])/(?:root|home|work|Users)/`),
		"a path of one machine works on no other; build it from the working directory, a flag or a temporary directory"},
	{regexp.MustCompile(`(?i)\b(?:proxy\.golang\.org|sum\.golang\.org|goproxy\.(?:io|cn)|registry\.npmjs\.org|pypi\.org|crates\.io)\b`),
		"where modules come from is the setting of the person who builds"},
	{regexp.MustCompile(`\b(?:TO[D]O|FIX[M]E|X[X]X)\b`),
		"what is missing stands in an issue or in the package comment as a decision, where people look for it"},
}

// Text finds text that no file may hold.
func Text(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		if strings.HasSuffix(f.Path, ".sum") || f.Path == "LICENSE" {
			continue
		}
		for i, line := range strings.Split(f.Src, "\n") {
			for _, rule := range forbiddenText {
				if m := rule.pattern.FindString(line); m != "" {
					found = append(found, Finding{fmt.Sprintf("%s:%d", f.Path, i+1), fmt.Sprintf("holds %q", strings.TrimSpace(m)), rule.why})
				}
			}
		}
	}
	return found
}

// Skips finds tests that can leave themselves out. Generators (rapid.T) may discard a case, and count it.
func Skips(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.GoFiles(true) {
		names := localNames(f.AST)
		var visit func(n ast.Node, ofTesting map[string]bool)
		visit = func(n ast.Node, ofTesting map[string]bool) {
			ast.Inspect(n, func(m ast.Node) bool {
				switch m := m.(type) {
				case *ast.FuncDecl:
					if m.Body != nil {
						visit(m.Body, withParams(names, ofTesting, m.Type))
					}
					return false
				case *ast.FuncLit:
					visit(m.Body, withParams(names, ofTesting, m.Type))
					return false
				case *ast.CallExpr:
					if recv, method, ok := methodCall(m); ok && ofTesting[recv] && strings.HasPrefix(method, "Skip") && method != "Skipped" {
						found = append(found, Finding{t.at(m), recv + "." + method,
							"a test that may skip itself is green where it protects nothing; make it run everywhere, or remove it"})
					}
				}
				return true
			})
		}
		for _, d := range f.AST.Decls {
			visit(d, nil)
		}
	}
	return found
}

// withParams is the set of names that stand for a testing.T, B, F or TB inside a function.
func withParams(names map[string]string, outer map[string]bool, fn *ast.FuncType) map[string]bool {
	inner := map[string]bool{} // name -> of package testing
	for name, is := range outer {
		inner[name] = is
	}
	for _, field := range fn.Params.List {
		typ := field.Type
		if star, ok := typ.(*ast.StarExpr); ok {
			typ = star.X
		}
		pkg, _, ok := selected(names, typ)
		for _, name := range field.Names {
			inner[name.Name] = ok && pkg == "testing"
		}
	}
	return inner
}

func methodCall(call *ast.CallExpr) (recv, method string, ok bool) {
	sel, isSel := call.Fun.(*ast.SelectorExpr)
	if !isSel {
		return "", "", false
	}
	x, isIdent := sel.X.(*ast.Ident)
	if !isIdent {
		return "", "", false
	}
	return x.Name, sel.Sel.Name, true
}
