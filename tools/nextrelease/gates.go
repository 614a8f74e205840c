// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"strconv"
	"strings"
)

var gateSources = []place{
	{kubernetes, "pkg/features"},
	{"k8s.io/apiserver", "pkg/features"},
	{"k8s.io/client-go", "features"},
	{"k8s.io/component-base", ""},
}

// gateSpec is one line of a gate's history.
type gateSpec struct {
	minor        int
	stage, state string
	locked       string // and other conditions
}

func (g gateSpec) String() string { return g.stage + ", " + g.state + g.locked }

// gates extracts feature gates: name -> stage and default at the release's version.
func gates(r release) (map[string]string, error) {
	files, err := r.sources(gateSources...)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	names := stringConsts(files)
	for _, f := range files {
		walk(f.file, func(n ast.Node, _ []ast.Node) {
			kv, ok := n.(*ast.KeyValueExpr)
			if !ok {
				return
			}
			list, ok := kv.Value.(*ast.CompositeLit)
			name := names[last(kv.Key)]
			if !ok || name == "" {
				return
			}
			latest := gateSpec{minor: -1}
			for _, e := range list.Elts {
				if l, ok := e.(*ast.CompositeLit); ok {
					if g, ok := specOf(fields(l)); ok && g.minor <= r.minor && g.minor >= latest.minor {
						latest = g
					}
				}
			}
			if g, ok := specOf(fields(list)); ok { // a gate without versions
				latest = g
			}
			if latest.stage != "" {
				out[name] = latest.String()
			}
		})
	}
	return out, nil
}

// specOf reads the fields of a literal of featuregate.FeatureSpec or VersionedSpec.
func specOf(f map[string]ast.Expr) (gateSpec, bool) {
	if f["Default"] == nil && f["PreRelease"] == nil {
		return gateSpec{}, false
	}
	g := gateSpec{stage: "GA", state: "off"}
	if stage := f["PreRelease"]; stage != nil {
		g.stage = strings.ToLower(last(stage))
		if g.stage == "ga" {
			g.stage = "GA"
		}
	}
	if f["Default"] != nil && text(f["Default"]) == "true" {
		g.state = "on"
	}
	if f["LockToDefault"] != nil && text(f["LockToDefault"]) == "true" {
		g.locked = ", locked"
	}
	if call, ok := f["MinCompatibilityVersion"].(*ast.CallExpr); ok && len(call.Args) == 1 {
		v, _ := str(call.Args[0], nil)
		g.locked += ", from compatibility version " + v
	}
	if call, ok := f["Version"].(*ast.CallExpr); ok && len(call.Args) == 1 {
		v, _ := str(call.Args[0], nil)
		if _, minor, ok := strings.Cut(v, "."); ok {
			g.minor, _ = strconv.Atoi(minor)
		}
	}
	return g, true
}

// dependencies extracts what each gate needs: name -> names, as far as they are in a table of the source.
func dependencies(r release) (map[string]string, error) {
	files, err := r.sources(gateSources...)
	if err != nil {
		return nil, err
	}
	names := stringConsts(files)
	out := map[string]string{}
	for _, f := range files {
		walk(f.file, func(n ast.Node, _ []ast.Node) {
			v, ok := n.(*ast.ValueSpec)
			if !ok || len(v.Values) != 1 || !strings.HasSuffix(v.Names[0].Name, "Dependencies") {
				return
			}
			l, ok := v.Values[0].(*ast.CompositeLit)
			if !ok {
				return
			}
			for _, e := range l.Elts {
				kv, ok := e.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				var needs []string
				if list, ok := kv.Value.(*ast.CompositeLit); ok {
					for _, need := range list.Elts {
						needs = append(needs, last(need))
					}
				}
				if name := names[last(kv.Key)]; name != "" && len(needs) > 0 {
					out[name] = fmt.Sprintf("needs %s", strings.Join(needs, ", "))
				}
			}
		})
	}
	return out, nil
}
