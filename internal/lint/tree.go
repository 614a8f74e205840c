// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Module is the import path of the root module; the paths of the nested modules start with it.
const Module = "github.com/kumiki-scheduler/kumiki"

// Finding is one place that breaks a rule.
type Finding struct {
	Where string // path from the root of the repository, with a line where there is one
	What  string
	Why   string // what the rule protects, for a reader who does not know it
}

func (f Finding) String() string { return fmt.Sprintf("%s: %s\n\twhy: %s", f.Where, f.What, f.Why) }

// File is one text file of the repository.
type File struct {
	Path string // from the root, with slashes
	Src  string
	AST  *ast.File // nil unless a Go file outside testdata
}

// IsTest reports whether the file is compiled into tests only.
func (f *File) IsTest() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Dir is the directory of the file. For Go files it names the package.
func (f *File) Dir() string { return path.Dir(f.Path) }

// In reports whether the file is below a directory.
func (f *File) In(dir string) bool { return strings.HasPrefix(f.Path, dir+"/") }

// Tree is the text of the repository, sorted by path.
type Tree struct {
	Root  string
	Fset  *token.FileSet
	Files []*File
}

// skippedDirs hold what is built or what belongs to git.
var skippedDirs = map[string]bool{".git": true, "bin": true, "out": true} // path from the root -> left out

// NewTree returns a tree without files.
func NewTree() *Tree { return &Tree{Fset: token.NewFileSet()} }

// Load reads the repository that the working directory is in. It walks the disk and does not ask git, which refuses
// to work in a clone that another user owns.
func Load() (*Tree, error) {
	root, err := findRoot()
	if err != nil {
		return nil, err
	}
	t := NewTree()
	t.Root = root
	err = fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skippedDirs[name]:
			return fs.SkipDir
		case !d.Type().IsRegular(), name == ".git": // a file in a worktree
			return nil
		}
		src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		if strings.ContainsRune(string(src), 0) {
			return nil // not text
		}
		return t.Add(name, string(src))
	})
	return t, err
}

// findRoot looks for go.work upwards; go test runs in the directory of the package.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, statErr := os.Stat(filepath.Join(dir, "go.work")); statErr == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("lint: no go.work above the working directory")
		}
		dir = up
	}
	return "", fmt.Errorf("lint: working directory: %w", err)
}

// Add puts one file into the tree.
func (t *Tree) Add(name, src string) error {
	f := &File{Path: name, Src: src}
	if strings.HasSuffix(name, ".go") && !slices.Contains(strings.Split(name, "/"), "testdata") {
		parsed, err := parser.ParseFile(t.Fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("lint: %w", err)
		}
		f.AST = parsed
	}
	t.Files = append(t.Files, f)
	return nil
}

// GoFiles are the files with syntax; with tests or without.
func (t *Tree) GoFiles(tests bool) []*File {
	var files []*File
	for _, f := range t.Files {
		if f.AST != nil && (tests || !f.IsTest()) {
			files = append(files, f)
		}
	}
	return files
}

// at is where a piece of syntax stands.
func (t *Tree) at(n ast.Node) string {
	p := t.Fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// importPath is the path that an import names.
func importPath(spec *ast.ImportSpec) string { return strings.Trim(spec.Path.Value, "`\"") }

// localNames maps the names under which a file knows packages to import paths.
func localNames(f *ast.File) map[string]string {
	names := map[string]string{} // local name -> import path
	for _, spec := range f.Imports {
		p := importPath(spec)
		name := path.Base(p)
		if strings.HasPrefix(name, "v") && len(name) == 2 && path.Dir(p) == "math/rand" {
			name = "rand"
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = p
	}
	return names
}

// selected returns the import path and name that a selector such as time.Now stands for.
func selected(names map[string]string, e ast.Expr) (pkg, name string, ok bool) {
	sel, isSel := e.(*ast.SelectorExpr)
	if !isSel {
		return "", "", false
	}
	x, isIdent := sel.X.(*ast.Ident)
	if !isIdent {
		return "", "", false
	}
	pkg, ok = names[x.Name]
	return pkg, sel.Sel.Name, ok
}
