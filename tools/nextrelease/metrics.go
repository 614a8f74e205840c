// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"strings"
)

// metrics extracts metrics: name -> kind, stability, labels, buckets and help.
func metrics(r release) (map[string]string, error) {
	files, err := r.sources(place{kubernetes, "pkg/scheduler"}, place{"k8s.io/dynamic-resource-allocation", ""},
		place{"k8s.io/client-go", "tools"}, place{"k8s.io/component-base", "metrics"})
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, f := range files {
		consts := packageConsts(files, f.dir())
		walk(f.file, func(n ast.Node, parents []ast.Node) {
			l, ok := n.(*ast.CompositeLit)
			if !ok || l.Type == nil || !strings.HasSuffix(last(l.Type), "Opts") {
				return
			}
			opts := fields(l)
			name, ok := str(opts["Name"], consts)
			if opts["Name"] == nil || !ok {
				return
			}
			if opts["Subsystem"] != nil {
				if sub, _ := str(opts["Subsystem"], consts); sub != "" {
					name = sub + "_" + name
				}
			}
			if opts["Namespace"] != nil {
				if space, _ := str(opts["Namespace"], consts); space != "" {
					name = space + "_" + name
				}
			}
			out[name] = metric(strings.ToLower(strings.TrimSuffix(last(l.Type), "Opts")), opts, labels(parents), consts)
		})
	}
	return out, nil
}

func metric(kind string, opts map[string]ast.Expr, labels string, consts map[string]string) string {
	parts := []string{kind}
	if s := opts["StabilityLevel"]; s != nil {
		parts = append(parts, strings.ToLower(last(s)))
	}
	if labels != "" {
		parts = append(parts, "{"+labels+"}")
	}
	if d := opts["DeprecatedVersion"]; d != nil {
		v, _ := str(d, consts)
		parts = append(parts, "deprecated since "+v)
	}
	if b := opts["Buckets"]; b != nil {
		parts = append(parts, "buckets "+text(b))
	}
	if h := opts["Help"]; h != nil {
		help, ok := str(h, consts)
		if !ok {
			help = text(h)
		}
		parts = append(parts, "help: "+help)
	}
	return strings.Join(parts, "; ")
}

// labels finds the labels of the call that the options are an argument of.
func labels(parents []ast.Node) string {
	for i := len(parents) - 1; i >= 0 && i >= len(parents)-2; i-- {
		call, ok := parents[i].(*ast.CallExpr)
		if !ok || len(call.Args) < 2 {
			continue
		}
		if l, ok := call.Args[1].(*ast.CompositeLit); ok {
			var names []string
			for _, e := range l.Elts {
				s, ok := str(e, nil)
				if !ok {
					s = last(e)
				}
				names = append(names, s)
			}
			return strings.Join(names, ", ")
		}
		return text(call.Args[1])
	}
	return ""
}
