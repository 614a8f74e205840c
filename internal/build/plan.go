// SPDX-License-Identifier: Apache-2.0

package build

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	clusterModule  = "localcluster"
	clusterPackage = "github.com/kumiki-scheduler/kumiki/" + clusterModule
	kumikiPackage  = "./cmd/kumiki"
)

// Cluster returns the plan of the local control plane alone: in the directory of its module, with flags of a release,
// to a file. GOWORK is off so that the result depends on the nested module alone.
func Cluster(module, ldflags string, flags []string, binary string) Plan {
	off := []string{"GOWORK=off"}
	args := append([]string{"build", "-v", "-buildvcs=false"}, flags...)
	return Plan{
		Packages: Command{Dir: module, Env: off, Args: append(append([]string{}, flags...), ".")},
		Sums:     []string{filepath.Join(module, "go.sum")},
		Link:     []Command{{Dir: module, Env: off, Args: append(args, "-ldflags", ldflags, "-o", binary, ".")}},
	}
}

// Everything returns the plan of kumiki and the local control plane in a source tree, one after the other, so that a
// package that both need is compiled once. Rejected: one command for both, since go build then links both programs once
// more, and discards them.
func Everything(root string) (Plan, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return Plan{}, fmt.Errorf("find the source tree: %w", err)
	}
	module := filepath.Join(root, clusterModule)
	raw, err := os.ReadFile(filepath.Join(module, "ldflags.txt"))
	if err != nil {
		return Plan{}, fmt.Errorf("find the source tree: %w", err)
	}
	ldflags, bin := strings.TrimSpace(string(raw)), filepath.Join(root, "bin")
	both := []string{kumikiPackage, clusterPackage}
	p := Cluster(module, ldflags, nil, filepath.Join(bin, "kumiki-localcluster"))
	p.Packages = Command{Dir: root, Args: both}
	p.Sums = append(p.Sums, filepath.Join(root, "go.sum"))
	kumiki := Command{Dir: root, Args: []string{
		"build", "-v", "-buildvcs=false", "-ldflags", ldflags, "-o", filepath.Join(bin, "kumiki"), kumikiPackage}}
	p.Compile, p.Link = append([]Command{kumiki}, p.Link...), nil
	return p, nil
}
