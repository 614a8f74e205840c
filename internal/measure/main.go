// SPDX-License-Identifier: Apache-2.0

// Command measure prints how the code is structured: sizes of packages and types, dependencies between files that point
// upward, and how far one value travels. Call it in the root of the repository; docs/design/0009 has the figures before
// and after a change of structure.
package main

import (
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

// row is one line of the table.
type row struct{ what, value, detail string }

func run() error {
	files, err := sources(".")
	if err != nil {
		return err
	}
	pkgs, err := typed("./core/...", "./kube/...")
	if err != nil {
		return err
	}
	var rows []row
	rows = append(rows, engineType(pkgs)...)
	rows = append(rows, largest(files))
	for _, dir := range []string{"core/engine", "core/place", "kube"} {
		up, all := 0, 0
		for d, p := range pkgs { // order: a sum is the same in any
			if d == dir || dir == "kube" && strings.HasPrefix(d, "kube/") {
				u, a := upward(p)
				up, all = up+u, all+a
			}
		}
		rows = append(rows, row{"upward dependencies between files of " + dir, fmt.Sprint(up), fmt.Sprintf("of %d", all)})
	}
	rows = append(rows, travel(pkgs), boolParameters(pkgs), faultWords(files))
	rows = append(rows, lines(files)...)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MEASURE\tVALUE\tDETAIL")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.what, r.value, r.detail)
	}
	return w.Flush()
}

// left are directories that hold no production files of the root module.
var left = []string{"testdata", "conformance", "localcluster", "tools"}

// support are packages that only tests import.
var support = []string{"core/preempt/simulated", "kube/kubetest"}

// sources reads the production files of the root module, by their paths.
func sources(root string) (map[string]string, error) {
	files := map[string]string{} // path with slashes -> text
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains(left, name) || slices.Contains(support, filepath.ToSlash(path)) ||
			path != root && strings.HasPrefix(name, ".")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		raw, err := os.ReadFile(path)
		files[filepath.ToSlash(path)] = string(raw)
		return err
	})
	return files, err
}

// engineType counts the fields and methods of Engine.
func engineType(pkgs map[string]*pkg) []row {
	p := pkgs["core/engine"]
	fields, methods := 0, 0
	for _, f := range p.files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok && n.Name.Name == "Engine" {
					for _, field := range s.Fields.List {
						fields += max(len(field.Names), 1)
					}
				}
			case *ast.FuncDecl:
				if receiver(n) == "Engine" {
					methods++
				}
			}
			return true
		})
	}
	return []row{{"fields of Engine", fmt.Sprint(fields), ""}, {"methods of Engine", fmt.Sprint(methods), ""}}
}

// receiver names the type of a method's receiver, without a pointer; it is empty for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	t := f.Recv.List[0].Type
	if s, ok := t.(*ast.StarExpr); ok {
		t = s.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// largest is the package of core with the most lines.
func largest(files map[string]string) row {
	count := map[string]int{} // directory -> lines
	best := ""
	for path, text := range files {
		if strings.HasPrefix(path, "core/") {
			count[filepath.Dir(path)] += strings.Count(text, "\n")
		}
	}
	for dir, n := range count { // order: ties go to the smaller name
		if best == "" || n > count[best] || n == count[best] && dir < best {
			best = dir
		}
	}
	return row{"lines of the largest package of core", fmt.Sprint(count[best]), best}
}

// boolParameters counts functions of core with a parameter of type bool.
func boolParameters(pkgs map[string]*pkg) row {
	n := 0
	for dir, p := range pkgs { // order: a sum is the same in any
		if !strings.HasPrefix(dir, "core/") {
			continue
		}
		for _, f := range p.files {
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if ok && slices.ContainsFunc(fn.Type.Params.List, func(f *ast.Field) bool {
					id, ok := f.Type.(*ast.Ident)
					return ok && id.Name == "bool"
				}) {
					n++
				}
			}
		}
	}
	return row{"functions of core with a bool parameter", fmt.Sprint(n), ""}
}

var faultWord = regexp.MustCompile(`(?i)\bmutants?\b|\bmutated\(|\bmutations?\b`)

// faultWords counts what is left of fault injection in production files.
func faultWords(files map[string]string) row {
	n := 0
	for path, text := range files { // order: a sum is the same in any
		if !strings.HasPrefix(path, "internal/") {
			n += len(faultWord.FindAllString(text, -1))
		}
	}
	return row{"fault words in production files", fmt.Sprint(n), "mutant, mutated, mutation"}
}

// lines counts lines of core and kube, and long lines of the module.
func lines(files map[string]string) []row {
	all, long := 0, 0
	for path, text := range files { // order: a sum is the same in any
		mine := strings.HasPrefix(path, "core/") || strings.HasPrefix(path, "kube/")
		for _, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			if mine {
				all++
			}
			if mine && len([]rune(l))+3*strings.Count(l, "\t") > 120 {
				long++
			}
		}
	}
	return []row{
		{"production lines of core and kube", fmt.Sprint(all), ""},
		{"lines above 120 columns in core and kube", fmt.Sprint(long), "a tab is 4"},
	}
}
