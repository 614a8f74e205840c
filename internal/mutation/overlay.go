// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Env is the environment variable that selects the fault of a process, by its ID. It works in instrumented builds only.
const Env = "KUMIKI_FAULT"

// addedFile is the name of the file that an instrumented package gets besides its own.
const addedFile = "kumiki_faults.go"

// Overlay writes instrumented copies of all files that the faults change to dir, and the file for `go test -overlay`,
// whose path it returns. root is the root of the repository.
func Overlay(root, dir string, faults []Fault) (string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	replace := map[string]string{} // path of a file -> path of its copy
	for _, pkg := range packagesOf(faults) {
		mine := slices.DeleteFunc(slices.Clone(faults), func(f Fault) bool { return f.Dir != pkg })
		files, err := instrument(root, pkg, mine)
		if err != nil {
			return "", fmt.Errorf("instrumenting %s: %w", pkg, err)
		}
		for _, name := range sortedKeys(files) {
			to := filepath.Join(dir, strings.ReplaceAll(pkg, "/", "-")+"-"+name)
			if err := os.WriteFile(to, files[name], 0o600); err != nil {
				return "", err
			}
			replace[filepath.Join(root, pkg, name)] = to
		}
	}
	raw, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, raw, 0o600)
}

// packagesOf are the directories of the packages that the faults change, sorted.
func packagesOf(faults []Fault) []string {
	dirs := map[string]bool{}
	for _, f := range faults {
		dirs[f.Dir] = true
	}
	return sortedKeys(dirs)
}

// instrument merges the faults of one package. It returns the contents of the files that change, by their names.
func instrument(root, dir string, faults []Fault) (map[string][]byte, error) {
	files := map[string]*schema{} // name of a file -> its instrumented copy in the making
	for n, f := range faults {
		for _, p := range f.Files {
			s := files[p.Name]
			if s == nil {
				src, err := os.ReadFile(filepath.Join(root, dir, p.Name))
				if err != nil {
					return nil, fmt.Errorf("fault %s: %w", f.Name, err)
				}
				if s, err = newSchema(p.Name, string(src)); err != nil {
					return nil, err
				}
				files[p.Name] = s
			}
			if err := s.add(n+1, p); err != nil {
				return nil, fmt.Errorf("fault %s: %w", f.Name, err)
			}
		}
	}
	out := map[string][]byte{}
	var name string
	for file, s := range files {
		text, err := format.Source([]byte(s.text()))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out[file], name = text, s.of.file.Name.Name
	}
	out[addedFile] = activation(name, faults)
	return out, nil
}

// activation is the file that knows which fault is active.
func activation(pkg string, faults []Fault) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n\nimport \"os\"\n\n// activeFault is the number of the active fault, 0 for none.\n", pkg)
	fmt.Fprintf(&b, "var activeFault = map[string]int{\n")
	for n, f := range faults {
		fmt.Fprintf(&b, "\t%q: %d,\n", f.ID(), n+1)
	}
	fmt.Fprintf(&b, "}[os.Getenv(%q)]\n", Env)
	return []byte(b.String())
}

// schema is one file with the second versions of its functions.
type schema struct {
	name  string
	of    source
	calls map[string][]int // function -> faults that change it
	added []string         // second versions of functions
	paths []string         // imports that only faults need
}

// source is a parsed file.
type source struct {
	src  string
	fset *token.FileSet
	file *ast.File
	funs map[string]*ast.FuncDecl // receiver and name -> function
}

func newSource(name, src string) (source, error) {
	s := source{src: src, fset: token.NewFileSet(), funs: map[string]*ast.FuncDecl{}}
	var err error
	if s.file, err = parser.ParseFile(s.fset, name, src, parser.ParseComments); err != nil {
		return s, err
	}
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			s.funs[s.key(f)] = f
		}
	}
	return s, nil
}

func newSchema(name, src string) (*schema, error) {
	of, err := newSource(name, src)
	return &schema{name: name, of: of, calls: map[string][]int{}}, err
}

// key names a function within its package.
func (s source) key(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	return s.text(f.Recv.List[0].Type) + "." + f.Name.Name
}

func (s source) text(n ast.Node) string {
	return s.src[s.offset(n.Pos()):s.offset(n.End())]
}

func (s source) offset(p token.Pos) int { return s.fset.Position(p).Offset }

// outside is the file without its imports and the bodies of its functions.
func (s source) outside() string {
	var b strings.Builder
	at := 0
	cut := func(from, to token.Pos) {
		b.WriteString(s.src[at:s.offset(from)])
		at = s.offset(to)
	}
	for _, d := range s.file.Decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				cut(d.Pos(), d.End())
			}
		case *ast.FuncDecl:
			if d.Body != nil {
				cut(d.Body.Pos(), d.Body.End())
			}
		}
	}
	return b.String() + s.src[at:]
}

// imports are the paths that a file imports, as they are written, with names.
func (s source) imports() []string {
	var out []string
	for _, i := range s.file.Imports {
		out = append(out, s.text(i))
	}
	return out
}

// add merges what fault number n changes.
func (s *schema) add(n int, p FilePatch) error {
	text, err := p.Apply(s.of.src)
	if err != nil {
		return err
	}
	with, err := newSource(s.name, text)
	if err != nil {
		return err
	}
	if squeeze(with.outside()) != squeeze(s.of.outside()) {
		return fmt.Errorf("changes %s outside of the bodies of functions", s.name)
	}
	for _, path := range with.imports() {
		if !slices.Contains(s.of.imports(), path) && !slices.Contains(s.paths, path) {
			s.paths = append(s.paths, path)
		}
	}
	for _, key := range sortedKeys(with.funs) {
		f := with.funs[key]
		if old := s.of.funs[key]; f.Body == nil || with.text(f.Body) == s.of.text(old.Body) {
			continue
		}
		if f.Name.Name == "init" {
			return fmt.Errorf("changes a function init of %s", s.name)
		}
		head := with.src[with.offset(f.Pos()):with.offset(f.Name.Pos())]
		tail := with.src[with.offset(f.Name.End()):with.offset(f.End())]
		s.added = append(s.added, head+second(f, n)+tail)
		s.calls[key] = append(s.calls[key], n)
	}
	return nil
}

// squeeze drops blanks, which a diff may change with the imports.
func squeeze(text string) string { return strings.Join(strings.Fields(text), " ") }

// second names the version of f with fault n.
func second(f *ast.FuncDecl, n int) string { return fmt.Sprintf("%s__fault%d", f.Name.Name, n) }

// text is the instrumented file.
func (s *schema) text() string {
	var b strings.Builder
	at := 0
	if len(s.paths) > 0 {
		at = s.of.offset(s.of.file.Name.End())
		fmt.Fprintf(&b, "%s\n\nimport (\n\t%s\n)\n", s.of.src[:at], strings.Join(s.paths, "\n\t"))
	}
	for _, d := range s.of.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || len(s.calls[s.of.key(f)]) == 0 {
			continue
		}
		sig, args := s.named(f)
		b.WriteString(s.of.src[at:s.of.offset(f.Pos())])
		b.WriteString(sig + " {\n\tswitch activeFault {\n")
		for _, n := range s.calls[s.of.key(f)] {
			b.WriteString(s.call(f, n, args))
		}
		b.WriteString("\t}\n")
		at = s.of.offset(f.Body.Lbrace) + 1
	}
	b.WriteString(s.of.src[at:])
	for _, f := range s.added {
		b.WriteString("\n" + f + "\n")
	}
	return b.String()
}

// call is the case that calls the second version of f.
func (s *schema) call(f *ast.FuncDecl, n int, args []string) string {
	callee := second(f, n)
	switch {
	case f.Recv != nil:
		callee = args[0] + "." + callee
		args = args[1:]
	case f.Type.TypeParams != nil:
		var params []string
		for _, field := range f.Type.TypeParams.List {
			for _, name := range field.Names {
				params = append(params, name.Name)
			}
		}
		callee += "[" + strings.Join(params, ", ") + "]"
	}
	result := fmt.Sprintf("%s(%s)", callee, strings.Join(args, ", "))
	if f.Type.Results == nil {
		return fmt.Sprintf("\tcase %d:\n\t\t%s\n\t\treturn\n", n, result)
	}
	return fmt.Sprintf("\tcase %d:\n\t\treturn %s\n", n, result)
}

// named is the signature of f with a name for its receiver and each parameter, and these names as arguments.
func (s *schema) named(f *ast.FuncDecl) (sig string, args []string) {
	list := func(fields *ast.FieldList) string {
		var out []string
		for _, field := range fields.List {
			typ, dots := s.of.text(field.Type), ""
			if _, variadic := field.Type.(*ast.Ellipsis); variadic {
				dots = "..."
			}
			names := []string{"_"}
			if len(field.Names) > 0 {
				names = names[:0]
				for _, n := range field.Names {
					names = append(names, n.Name)
				}
			}
			for _, n := range names {
				if n == "_" {
					n = fmt.Sprintf("arg%d__", len(args))
				}
				args = append(args, n+dots)
				out = append(out, n+" "+typ)
			}
		}
		return "(" + strings.Join(out, ", ") + ")"
	}
	sig = "func "
	if f.Recv != nil {
		sig += list(f.Recv) + " "
	}
	sig += f.Name.Name
	if f.Type.TypeParams != nil {
		sig += s.of.text(f.Type.TypeParams)
	}
	sig += list(f.Type.Params)
	if f.Type.Results != nil {
		sig += " " + s.of.text(f.Type.Results)
	}
	return sig, args
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
