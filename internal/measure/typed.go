// SPDX-License-Identifier: Apache-2.0

package main

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
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/kumiki-scheduler/kumiki/"

// pkg is a type-checked package.
type pkg struct {
	fset  *token.FileSet
	files []*ast.File
	info  *types.Info
}

// file names the file that a position is in, without its directory.
func (p *pkg) file(pos token.Pos) string { return filepath.Base(p.fset.Position(pos).Filename) }

// typed type-checks packages of the module, by their directories.
func typed(patterns ...string) (map[string]*pkg, error) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-export", "-json=ImportPath,Export,Dir,GoFiles"}, patterns...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	type dep struct {
		ImportPath, Export, Dir string
		GoFiles                 []string
	}
	exports, mine := map[string]string{}, []dep{} // import path -> file with the compiled types
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var d dep
		if err := dec.Decode(&d); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("reading go list: %w", err)
		}
		exports[d.ImportPath] = d.Export
		if strings.HasPrefix(d.ImportPath, module) {
			mine = append(mine, d)
		}
	}
	fset := token.NewFileSet()
	imp := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	pkgs := map[string]*pkg{}
	for _, d := range mine {
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
		p := &pkg{fset: fset, info: info}
		for _, name := range d.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(d.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			p.files = append(p.files, f)
		}
		conf := types.Config{Importer: imp}
		if _, err := conf.Check(d.ImportPath, fset, p.files, p.info); err != nil {
			return nil, err
		}
		pkgs[strings.TrimPrefix(d.ImportPath, module)] = p
	}
	return pkgs, nil
}

// upward counts the dependencies between files of a package (one file uses a function, method, type, variable, constant
// or field that another declares) that point against the best order of the files found, and all of them.
func upward(p *pkg) (up, all int) {
	uses := map[[2]string]bool{} // user and declarer -> true
	for _, f := range p.files {
		from := p.file(f.Pos())
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			obj := p.info.Uses[id]
			if obj == nil || obj.Pkg() == nil || !declared(p, obj) {
				return true
			}
			if to := p.file(obj.Pos()); to != from {
				uses[[2]string{from, to}] = true
			}
			return true
		})
	}
	var names []string
	for _, f := range p.files {
		names = append(names, p.file(f.Pos()))
	}
	slices.Sort(names)
	return against(order(names, uses), uses), len(uses)
}

// declared reports whether the package declares obj outside of functions.
func declared(p *pkg, obj types.Object) bool {
	v, isVar := obj.(*types.Var)
	if isVar && v.IsField() {
		return p.owns(obj)
	}
	if f, ok := obj.(*types.Func); ok {
		return p.owns(f)
	}
	return p.owns(obj) && obj.Parent() == obj.Pkg().Scope()
}

// owns reports whether obj was declared in these files, rather than read from compiled types.
func (p *pkg) owns(obj types.Object) bool {
	return slices.ContainsFunc(p.files, func(f *ast.File) bool { return f.FileStart <= obj.Pos() && obj.Pos() < f.FileEnd })
}

// against counts the uses of files that stand above their user.
func against(list []string, uses map[[2]string]bool) int {
	at := map[string]int{} // file -> position, users first
	for i, name := range list {
		at[name] = i
	}
	n := 0
	for use := range uses { // order: a sum is the same in any
		if at[use[0]] > at[use[1]] {
			n++
		}
	}
	return n
}

// order puts files so that few use one above them: it moves single files as long as that helps (a local optimum of the
// minimum feedback arc set).
func order(names []string, uses map[[2]string]bool) []string {
	degree := func(name string) int { // how many more files it uses than use it
		d := 0
		for use := range uses { // order: a sum is the same in any
			if use[0] == name {
				d++
			}
			if use[1] == name {
				d--
			}
		}
		return d
	}
	rank := map[string]int{}
	for _, n := range names {
		rank[n] = degree(n)
	}
	list := slices.Clone(names)
	slices.SortStableFunc(list, func(a, b string) int { return rank[b] - rank[a] })
	best := against(list, uses)
	for moved := true; moved; {
		moved = false
		for i := range list {
			for j := range list {
				if i == j {
					continue
				}
				try := slices.Delete(slices.Clone(list), i, i+1)
				try = slices.Insert(try, j, list[i])
				if n := against(try, uses); n < best {
					list, best, moved = try, n, true
				}
			}
		}
	}
	return list
}

// travel follows the unit through the gang cycle: each place where it is read or passed, into the functions of core
// that receive it. It counts the files, how often the reader returns to a file, and the names that the unit has.
func travel(pkgs map[string]*pkg) row {
	t := &traveller{pkgs: pkgs, bodies: map[string]body{}, seen: map[string]bool{}, files: map[string]bool{},
		names: map[string]bool{}}
	for _, dir := range slices.Sorted(maps.Keys(pkgs)) {
		for _, f := range pkgs[dir].files {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && strings.HasPrefix(dir, "core/") {
					t.bodies[dir+"."+receiver(fn)+"."+fn.Name.Name] = body{pkgs[dir], fn}
				}
			}
		}
	}
	start := "core/engine.Engine.gangCycle"
	b, ok := t.bodies[start]
	if !ok {
		return row{"following the unit through the gang cycle", "-", "there is no " + start}
	}
	t.follow(start, b, 0)
	return row{"following the unit through the gang cycle", fmt.Sprintf("%d; %d; %d", len(t.files), t.returns, len(t.names)),
		fmt.Sprintf("files; returns to a file; names (%d stops)", t.stops)}
}

type body struct {
	in *pkg
	fn *ast.FuncDecl
}

type traveller struct {
	pkgs    map[string]*pkg
	bodies  map[string]body // directory, receiver and name -> function
	seen    map[string]bool // function and parameter -> followed already
	files   map[string]bool
	names   map[string]bool
	now     string // file
	stops   int
	returns int
}

// visit records a stop.
func (t *traveller) visit(p *pkg, pos token.Pos) {
	file := p.fset.Position(pos).Filename
	t.stops++
	if file != t.now && t.files[file] {
		t.returns++
	}
	t.files[file], t.now = true, file
}

// follow reads a function that receives the value as parameter n, or as its receiver if n is -1.
func (t *traveller) follow(name string, b body, n int) {
	if key := fmt.Sprint(name, n); t.seen[key] {
		return
	} else {
		t.seen[key] = true
	}
	var params []*ast.Ident
	fields := b.fn.Type.Params
	if n < 0 {
		fields, n = b.fn.Recv, 0
	}
	for _, f := range fields.List {
		params = append(params, f.Names...)
	}
	if n >= len(params) {
		return
	}
	value := b.in.info.Defs[params[n]]
	t.names[b.in.file(b.fn.Pos())+params[n].Name+name] = true
	is := func(e ast.Expr) bool {
		if u, ok := e.(*ast.UnaryExpr); ok {
			e = u.X
		}
		id, ok := ast.Unparen(e).(*ast.Ident)
		return ok && b.in.info.Uses[id] == value
	}
	ast.Inspect(b.fn.Body, func(m ast.Node) bool {
		switch m := m.(type) {
		case *ast.Ident:
			if b.in.info.Uses[m] == value {
				t.visit(b.in, m.Pos())
			}
		case *ast.CallExpr:
			callee, ok := t.callee(b.in, m)
			if !ok {
				return true
			}
			if sel, isSel := m.Fun.(*ast.SelectorExpr); isSel && is(sel.X) {
				t.visit(b.in, sel.Pos())
				t.follow(callee, t.bodies[callee], -1)
			}
			for i, arg := range m.Args {
				if is(arg) {
					t.visit(b.in, arg.Pos())
					t.follow(callee, t.bodies[callee], i)
				}
			}
		}
		return true
	})
}

// callee names the function of core that a call goes to.
func (t *traveller) callee(p *pkg, call *ast.CallExpr) (string, bool) {
	var obj types.Object
	switch f := call.Fun.(type) {
	case *ast.Ident:
		obj = p.info.Uses[f]
	case *ast.SelectorExpr:
		obj = p.info.Uses[f.Sel]
	}
	fn, ok := obj.(*types.Func)
	if !ok || fn.Pkg() == nil {
		return "", false
	}
	recv := ""
	if r := fn.Signature().Recv(); r != nil {
		typ := r.Type()
		if ptr, ok := typ.(*types.Pointer); ok {
			typ = ptr.Elem()
		}
		if named, ok := typ.(*types.Named); ok {
			recv = named.Obj().Name()
		}
	}
	name := strings.TrimPrefix(fn.Pkg().Path(), module) + "." + recv + "." + fn.Name()
	_, ok = t.bodies[name]
	return name, ok
}
