// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/mod/modfile"
)

// versions extracts what Kubernetes is built with: module -> version, without its own modules.
func versions(r release) (map[string]string, error) {
	path := filepath.Join(r.dirs[kubernetes], "go.mod")
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := modfile.Parse(path, data, nil)
	if err != nil {
		return nil, err
	}
	out := map[string]string{"go": m.Go.Version}
	for _, d := range m.Godebug {
		out["godebug "+d.Key] = d.Value
	}
	for _, need := range m.Require {
		if !strings.HasPrefix(need.Mod.Path, "k8s.io/") || need.Mod.Version != "v0.0.0" {
			out[need.Mod.Path] = need.Mod.Version
		}
	}
	return out, nil
}

// thresholds extracts scheduler_perf's workloads: test case and workload -> the threshold in pods per second, and the
// operations of the test case.
func thresholds(r release) (map[string]string, error) {
	out := map[string]string{}
	root := filepath.Join(r.dirs[kubernetes], "test/integration/scheduler_perf")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() != "performance-config.yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var cases []struct {
			Name      string
			Ops       []struct{ Opcode string } `yaml:"workloadTemplate"`
			Workloads []struct {
				Name      string
				Threshold any
			}
		}
		if err := yaml.Unmarshal(data, &cases); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, c := range cases {
			var ops []string
			for _, op := range c.Ops {
				ops = append(ops, op.Opcode)
			}
			for _, w := range c.Workloads {
				value := strings.Join(ops, " ")
				if w.Threshold != nil {
					value = fmt.Sprintf("%v pods/s: %s", w.Threshold, value)
				}
				out[filepath.ToSlash(rel)+" "+c.Name+"/"+w.Name] = value
			}
		}
		return nil
	})
	return out, err
}
