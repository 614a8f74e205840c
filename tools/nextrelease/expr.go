// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"go/ast"
	"go/printer"
	"go/token"
	"maps"
	"strconv"
	"strings"
)

// text prints a node on one line.
func text(n ast.Node) string {
	if n == nil {
		return ""
	}
	var b bytes.Buffer
	if err := printer.Fprint(&b, token.NewFileSet(), n); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// last is the name behind the last point of an identifier: Fit of names.Fit.
func last(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return text(e)
}

// str is the value of a string expression: a literal, literals that are added, or a constant of consts.
func str(e ast.Expr, consts map[string]string) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			s, err := strconv.Unquote(e.Value)
			return s, err == nil
		}
	case *ast.BinaryExpr:
		x, okX := str(e.X, consts)
		y, okY := str(e.Y, consts)
		return x + y, e.Op == token.ADD && okX && okY
	case *ast.ParenExpr:
		return str(e.X, consts)
	case *ast.Ident, *ast.SelectorExpr:
		s, ok := consts[last(e)]
		return s, ok
	}
	return "", false
}

// stringConsts are the constants and variables of the package level with a string: name -> value.
func stringConsts(files []source) map[string]string {
	out := map[string]string{}
	for _, f := range files {
		for _, d := range f.file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST && g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				for i, name := range v.Names {
					if i >= len(v.Values) {
						continue
					}
					if s, ok := str(v.Values[i], nil); ok {
						out[name.Name] = s
					}
				}
			}
		}
	}
	return out
}

// packageConsts are the constants of all files, where those of the package in dir hide others of the same name.
func packageConsts(files []source, dir string) map[string]string {
	var own []source
	for _, f := range files {
		if f.dir() == dir {
			own = append(own, f)
		}
	}
	out := stringConsts(files)
	maps.Copy(out, stringConsts(own))
	return out
}

// fields are the named elements of a composite literal.
func fields(l *ast.CompositeLit) map[string]ast.Expr {
	out := map[string]ast.Expr{}
	for _, e := range l.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			out[last(kv.Key)] = kv.Value
		}
	}
	return out
}

// function is the name of a declared function, with its receiver's type: Fit.Filter.
func function(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
			continue
		case *ast.IndexExpr:
			t = x.X
			continue
		case *ast.IndexListExpr:
			t = x.X
			continue
		}
		return last(t) + "." + d.Name.Name
	}
}

// functions calls visit for each declared function with a body.
func functions(files []source, visit func(source, *ast.FuncDecl)) {
	for _, f := range files {
		for _, d := range f.file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				visit(f, fn)
			}
		}
	}
}

// walk calls visit for each node with its parents, the nearest last.
func walk(root ast.Node, visit func(n ast.Node, parents []ast.Node)) {
	var parents []ast.Node
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil {
			parents = parents[:len(parents)-1]
			return true
		}
		visit(n, parents)
		parents = append(parents, n)
		return true
	})
}
