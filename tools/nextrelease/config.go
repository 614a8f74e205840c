// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"reflect"
	"strconv"
	"strings"
)

// flags extracts flags of the command line: name -> kind, default and help.
func flags(r release) (map[string]string, error) {
	files, err := r.sources(place{kubernetes, "cmd/kube-scheduler"}, place{"k8s.io/component-base", "config/options"},
		place{"k8s.io/component-base", "compatibility"}, place{"k8s.io/component-base", "featuregate"},
		place{"k8s.io/component-base", "logs"}, place{"k8s.io/component-base", "metrics"},
		place{"k8s.io/apiserver", "pkg/server/options"})
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, f := range files {
		walk(f.file, func(n ast.Node, _ []ast.Node) {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 3 {
				return
			}
			fn, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !strings.HasSuffix(strings.TrimSuffix(fn.Sel.Name, "P"), "Var") {
				return
			}
			name, ok := str(call.Args[1], nil)
			if !ok || name == "" || strings.Contains(name, " ") {
				return
			}
			rest := make([]string, 0, len(call.Args))
			for _, a := range call.Args[2:] {
				rest = append(rest, text(a))
			}
			kind := strings.TrimSuffix(strings.TrimSuffix(fn.Sel.Name, "P"), "Var")
			out["--"+name] = kind + " " + strings.Join(rest, ", ")
		})
	}
	return out, nil
}

// types extracts fields of structs and constants: package Type.Field -> type and JSON tag.
func types(places ...place) func(release) (map[string]string, error) {
	return func(r release) (map[string]string, error) {
		files, err := r.sources(places...)
		if err != nil {
			return nil, err
		}
		out := map[string]string{}
		for _, f := range files {
			for _, d := range f.file.Decls {
				g, ok := d.(*ast.GenDecl)
				if !ok {
					continue
				}
				for _, spec := range g.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						typeOf(out, f.dir()+" "+spec.Name.Name, spec.Type)
					case *ast.ValueSpec:
						for i, name := range spec.Names {
							if i < len(spec.Values) && name.IsExported() {
								out[f.dir()+" "+name.Name] = text(spec.Values[i])
							}
						}
					}
				}
			}
		}
		return out, nil
	}
}

func typeOf(out map[string]string, name string, t ast.Expr) {
	switch t := t.(type) {
	case *ast.StructType:
		out[name] = "struct"
		for _, f := range t.Fields.List {
			value := text(f.Type)
			if f.Tag != nil {
				if tag, err := strconv.Unquote(f.Tag.Value); err == nil && reflect.StructTag(tag).Get("json") != "" {
					value += " " + reflect.StructTag(tag).Get("json")
				}
			}
			if len(f.Names) == 0 {
				// The tag of an embedded field has no effect on JSON: both forms of it are in use.
				out[name+"."+last(f.Type)] = "embedded " + strings.TrimSuffix(value, " ,inline")
			}
			for _, n := range f.Names {
				out[name+"."+n.Name] = value
			}
		}
	case *ast.InterfaceType:
		out[name] = "interface"
		for _, m := range t.Methods.List {
			if len(m.Names) == 0 {
				out[name+"."+last(m.Type)] = "embedded"
			}
			for _, n := range m.Names {
				out[name+"."+n.Name] = text(m.Type)
			}
		}
	default:
		out[name] = text(t)
	}
}

// defaultPlugins extracts the default configuration: plugin -> the one before it, its weight, and the function that
// adds it.
func defaultPlugins(r release) (map[string]string, error) {
	files, err := r.sources(place{kubernetes, "pkg/scheduler/apis/config/v1"})
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, f := range files {
		if !strings.HasSuffix(f.path, "/default_plugins.go") {
			continue
		}
		functions([]source{f}, func(_ source, fn *ast.FuncDecl) {
			before := "first"
			walk(fn.Body, func(n ast.Node, _ []ast.Node) {
				l, ok := n.(*ast.CompositeLit)
				if !ok {
					return
				}
				p := fields(l)
				if p["Name"] == nil {
					return
				}
				name, value := last(p["Name"]), fmt.Sprintf("%s: %s", fn.Name.Name, before)
				if w := p["Weight"]; w != nil {
					value += ", weight " + text(w)
				}
				if out[name] != "" {
					value = out[name] + "; " + value
				}
				out[name] = value
				before = "after " + name
			})
		})
	}
	return out, nil
}
