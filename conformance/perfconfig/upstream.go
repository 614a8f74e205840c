// SPDX-License-Identifier: Apache-2.0

package perfconfig

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
)

// Dir is upstream's test/integration/scheduler_perf.
func Dir() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		return "", fmt.Errorf("looking for the module k8s.io/kubernetes: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "test", "integration", "scheduler_perf"), nil
}

// Files are the paths of all performance-config.yaml below dir, sorted.
func Files(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "performance-config.yaml" {
			files = append(files, path)
		}
		return err
	})
	sort.Strings(files)
	return files, err
}

// Structs are the exported fields of the structs in dir's Go files, without tests: struct -> field.
func Structs(dir string) (map[string][]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	structs := map[string][]string{} // struct -> fields
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("reading upstream's structs: %w", err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			spec, isType := node.(*ast.TypeSpec)
			if !isType {
				return true
			}
			if body, isStruct := spec.Type.(*ast.StructType); isStruct {
				structs[spec.Name.Name] = fields(body)
			}
			return true
		})
	}
	return structs, nil
}

func fields(body *ast.StructType) []string {
	var names []string
	for _, field := range body.Fields.List {
		for _, name := range field.Names {
			if name.IsExported() {
				names = append(names, strings.ToLower(name.Name[:1])+name.Name[1:])
			}
		}
	}
	return names
}
