// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

//go:embed *.yaml templates
var files embed.FS

// notWorkloads are files beside the workloads that these name.
const notWorkloads = "scheduler-"

// Files are all files, loaded, in the order of their names.
func Files() ([]*workload.File, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	var out []*workload.File
	for _, name := range names {
		if strings.HasPrefix(name, notWorkloads) {
			continue
		}
		f, err := workload.LoadFS(files, name)
		if err != nil {
			return nil, fmt.Errorf("embedded workloads: %w", err)
		}
		out = append(out, f)
	}
	return out, nil
}

// Case is the case with a name; the error of an unknown one lists those that there are.
func Case(name string) (*workload.Case, error) {
	all, err := Files()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range all {
		for _, c := range f.Cases {
			if c.Name == name {
				return c, nil
			}
			names = append(names, c.Name)
		}
	}
	return nil, fmt.Errorf("there is no workload %s; there are %s", name, strings.Join(names, ", "))
}
