// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	_ "k8s.io/kubernetes/pkg/features" // registers the gates
)

// Gate is a feature gate that upstream's scheduler asks.
type Gate struct {
	Name    string
	Default bool
	// Stage is Alpha, Beta or GA, and says when the default cannot be changed.
	Stage string
}

// gatePackages are the packages that declare gates which the scheduler may ask.
var gatePackages = []string{"k8s.io/kubernetes/pkg/features", "k8s.io/component-base/zpages/features", "k8s.io/apiserver/pkg/features"}

// Gates lists the gates that upstream's scheduler of the pinned version asks, sorted: it reads upstream's source,
// and the registered gates.
func Gates() ([]Gate, error) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		return nil, fmt.Errorf("finding upstream's source: %w", err)
	}
	asked := map[string]bool{} // gate -> asked
	for _, part := range []string{"pkg/scheduler", "cmd/kube-scheduler"} {
		err := filepath.WalkDir(filepath.Join(strings.TrimSpace(string(dir)), part), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() && d.Name() == "testing" {
				return orSkip(err)
			}
			if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			return collectGates(path, asked)
		})
		if err != nil {
			return nil, fmt.Errorf("reading upstream's source: %w", err)
		}
	}
	registered := utilfeature.DefaultMutableFeatureGate.GetAll()
	var out []Gate
	for name := range asked { // order: sorted below
		spec, is := registered[featuregate.Feature(name)]
		if !is {
			continue // something else of these packages
		}
		out = append(out, Gate{name, spec.Default, stage(spec)})
	}
	slices.SortFunc(out, func(a, b Gate) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func orSkip(err error) error {
	if err != nil {
		return err
	}
	return filepath.SkipDir
}

func stage(spec featuregate.FeatureSpec) string {
	name := map[string]string{"ALPHA": "Alpha", "BETA": "Beta", "": "GA"}[string(spec.PreRelease)]
	if name == "" {
		name = string(spec.PreRelease)
	}
	if spec.LockToDefault {
		name += ", locked"
	}
	return name
}

// collectGates notes what a file names of the packages that declare gates.
func collectGates(path string, asked map[string]bool) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	local := map[string]bool{} // name of an import in this file -> it declares gates
	for _, spec := range file.Imports {
		of, err := strconv.Unquote(spec.Path.Value)
		if err != nil || !slices.Contains(gatePackages, of) {
			continue
		}
		if spec.Name != nil {
			local[spec.Name.Name] = true
		} else {
			local[filepath.Base(of)] = true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && local[x.Name] {
				asked[s.Sel.Name] = true
			}
		}
		return true
	})
	return nil
}
