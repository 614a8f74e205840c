// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// release is the source of one release: the directory of each module, by the module's path.
type release struct {
	minor int
	dirs  map[string]string
}

// The modules that are compared. All but the first have the version 0.MINOR.PATCH.
const kubernetes = "k8s.io/kubernetes"

var staging = []string{
	"k8s.io/api", "k8s.io/apiserver", "k8s.io/client-go", "k8s.io/component-base", "k8s.io/component-helpers",
	"k8s.io/dynamic-resource-allocation", "k8s.io/kube-scheduler",
}

// download finds the modules of a release in the module cache, and fetches those that are missing.
func download(version string) (release, error) {
	version = strings.TrimPrefix(version, "v")
	parts := strings.Split(version, ".")
	if len(parts) != 3 || parts[0] != "1" {
		return release{}, fmt.Errorf("version %q: want 1.MINOR.PATCH, for example 1.37.1", version)
	}
	minor, err := strconv.Atoi(parts[1])
	if err != nil {
		return release{}, fmt.Errorf("version %q: %w", version, err)
	}
	args := []string{"mod", "download", "-json", kubernetes + "@v" + version}
	for _, m := range staging {
		args = append(args, m+"@v0."+parts[1]+"."+parts[2])
	}
	c := exec.Command("go", args...)
	c.Dir = os.TempDir() // outside any module: the versions are not to be resolved against one
	c.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	var errs bytes.Buffer
	c.Stderr = &errs
	out, runErr := c.Output()
	r := release{minor: minor, dirs: map[string]string{}}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var m struct{ Path, Dir, Error string }
		if err := d.Decode(&m); err != nil {
			return r, fmt.Errorf("go mod download: %w", err)
		}
		if m.Error != "" {
			return r, fmt.Errorf("download of %s: %s", m.Path, m.Error)
		}
		r.dirs[m.Path] = m.Dir
	}
	if runErr != nil {
		return r, fmt.Errorf("go mod download: %w: %s", runErr, errs.String())
	}
	return r, nil
}

// source is a parsed file.
type source struct {
	path string // with the module's path in front, with slashes
	set  *token.FileSet
	file *ast.File
}

// place is a directory of a module; all directories below it belong to it.
type place struct{ module, dir string }

// sources parses the Go files below the places, without tests and generated files, in the order of their paths. A
// directory that a release does not have counts as empty.
func (r release) sources(places ...place) ([]source, error) {
	var found []source
	for _, p := range places {
		root := filepath.Join(r.dirs[p.module], p.dir)
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case os.IsNotExist(err):
				return nil
			case err != nil:
				return err
			case d.IsDir() && (slices.Contains([]string{"testdata", "examples"}, d.Name()) ||
				strings.HasSuffix(d.Name(), "testing")):
				return filepath.SkipDir
			case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"),
				strings.Contains(d.Name(), "generated"):
				return nil
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(r.dirs[p.module], path)
			if err != nil {
				return err
			}
			found = append(found, source{path: p.module + "/" + filepath.ToSlash(rel), set: set, file: file})
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("source of %s/%s: %w", p.module, p.dir, err)
		}
	}
	slices.SortFunc(found, func(a, b source) int { return strings.Compare(a.path, b.path) })
	return found, nil
}

// short is a source's path without what all of them have in common.
func (s source) short() string {
	return strings.TrimPrefix(strings.TrimPrefix(s.path, kubernetes+"/"), "k8s.io/")
}

// dir is the directory of a source's path.
func (s source) dir() string { return s.short()[:strings.LastIndex(s.short(), "/")] }
