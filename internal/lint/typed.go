// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Package is one type-checked package.
type Package struct {
	Fset  *token.FileSet
	Files []*ast.File
	Info  *types.Info
}

func (p *Package) at(n ast.Node) string {
	pos := p.Fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", pos.Filename, pos.Line)
}

func (p *Package) atLine(f *ast.File, line int) string {
	return fmt.Sprintf("%s:%d", p.Fset.Position(f.Package).Filename, line)
}

// callee returns the package path and name of the package-level function that a call goes to.
func (p *Package) callee(call *ast.CallExpr) (pkg, name string) {
	fun := ast.Unparen(call.Fun)
	if index, ok := fun.(*ast.IndexExpr); ok {
		fun = index.X
	}
	sel, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	obj := p.Info.Uses[sel.Sel]
	if f, ok := obj.(*types.Func); ok && f.Pkg() != nil && f.Signature().Recv() == nil {
		return f.Pkg().Path(), f.Name()
	}
	return "", ""
}

// goList runs go list in the root of the repository and returns what it prints. It knows more packages than ours, so
// it goes on where one of them is broken (-e).
func goList(root string, args ...string) ([]Dep, error) {
	cmd := exec.Command("go", append([]string{"list", "-e", "-buildvcs=false"}, args...)...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("lint: %s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.String())
	}
	var deps []Dep
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var d Dep
		if err := dec.Decode(&d); errors.Is(err, io.EOF) {
			return deps, nil
		} else if err != nil {
			return nil, fmt.Errorf("lint: reading go list: %w", err)
		}
		deps = append(deps, d)
	}
}

// Checker type-checks packages against the compiled form of what they import.
type Checker struct {
	fset    *token.FileSet
	exports map[string]string // import path -> file with the compiled types
	imp     types.Importer
}

// NewChecker learns where the compiled forms of deps are.
func NewChecker(deps []Dep) *Checker {
	c := &Checker{fset: token.NewFileSet(), exports: map[string]string{}}
	for _, d := range deps {
		c.exports[d.ImportPath] = d.Export
	}
	c.imp = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) {
		file := c.exports[path]
		if file == "" {
			return nil, fmt.Errorf("lint: %s has not been compiled", path)
		}
		return os.Open(file)
	})
	return c
}

// Check type-checks files, given as name -> source, as one package.
func (c *Checker) Check(path string, files map[string]string) (*Package, error) {
	p := &Package{Fset: c.fset, Info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}}
	for name, src := range files {
		f, err := parser.ParseFile(c.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("lint: %w", err)
		}
		p.Files = append(p.Files, f)
	}
	conf := types.Config{Importer: c.imp}
	if _, err := conf.Check(path, c.fset, p.Files, p.Info); err != nil {
		return nil, fmt.Errorf("lint: %w", err)
	}
	return p, nil
}

// CheckDep type-checks a package as go list found it, and names its files from the root of the repository.
func (c *Checker) CheckDep(root string, d Dep) (*Package, error) {
	files := map[string]string{} // path from the root -> source
	for _, name := range d.GoFiles {
		full := filepath.Join(d.Dir, name)
		src, err := os.ReadFile(full)
		if err != nil {
			return nil, fmt.Errorf("lint: %w", err)
		}
		rel, err := filepath.Rel(root, full)
		if err != nil {
			return nil, fmt.Errorf("lint: %w", err)
		}
		files[filepath.ToSlash(rel)] = string(src)
	}
	return c.Check(d.ImportPath, files)
}
