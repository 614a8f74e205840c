// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strings"
)

// banned trees of import paths -> why no package of the root module may reach them.
var bannedInBinary = map[string]string{
	"k8s.io/kubernetes":       "kumiki is written from scratch and promises nothing about upstream's internals; they are the oracle in conformance/",
	"go.etcd.io/etcd/server":  "a scheduler needs no database; etcd belongs to localcluster/",
	Module + "/localcluster":  "the local cluster is a binary of its own",
	Module + "/conformance":   "the oracle must not be linked with what it judges",
	Module + "/kubescheduler": "it links k8s.io/kubernetes, for programs with plugins of kube-scheduler",
	"sigs.k8s.io/kwok":        "fake nodes belong to localcluster/",
	"pgregory.net/rapid":      "generators are for tests",
	"go.uber.org/goleak":      "leak checks are for tests",
}

// Dep is one package of a build, as go list prints it.
type Dep struct {
	ImportPath string
	Imports    []string
	Export     string // file with the compiled types, if asked for
	Dir        string
	GoFiles    []string
	Standard   bool
}

// Closure finds banned packages among everything that is compiled into the packages of the root module.
func Closure(deps []Dep) []Finding {
	importer := map[string]string{} // package -> one package that imports it
	for _, d := range deps {
		for _, imp := range d.Imports {
			if _, known := importer[imp]; !known {
				importer[imp] = d.ImportPath
			}
		}
	}
	var found []Finding
	for _, d := range deps {
		for tree, why := range bannedInBinary {
			if d.ImportPath != tree && !strings.HasPrefix(d.ImportPath, tree+"/") {
				continue
			}
			by := importer[d.ImportPath]
			if strings.HasPrefix(by, tree) {
				continue // reported where the tree is entered
			}
			found = append(found, Finding{by, fmt.Sprintf("compiles in %s", d.ImportPath), why})
		}
	}
	return found
}
