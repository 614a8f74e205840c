// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
)

// readme returns the README of a program's archive. That of the source tree begins with make and links to files that
// an archive does not contain.
func (r *release) readme(p program) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s %s\n\n", p.name, r.version)
	if p.name == programs[0].name {
		fmt.Fprintf(&b, "A scheduler for Kubernetes, a drop-in replacement for kube-scheduler, that explains its "+
			"decisions.\n\n"+
			"Ask why a pod waits, of the kumiki in your cluster, or with `--offline` of any scheduler:\n\n"+
			"```\n./kumiki why pod/NAME -n NAMESPACE\n./kumiki why pod/NAME -n NAMESPACE --offline\n```\n\n"+
			"Try it on this machine: put `%[1]s` from the archive `%[1]s_%[2]s_OS_ARCH.tar.gz` beside it, and start a "+
			"cluster with fake nodes:\n\n```\n./kumiki up\n```\n\n"+
			"Run it in a cluster: with the chart `%[3]s`.\n\nAll commands: `./kumiki --help`.\n",
			programs[1].name, r.version, r.chartArchive())
	} else {
		fmt.Fprintf(&b, "The control plane with fake nodes that `%[1]s up` starts. Put it beside `%[1]s` of the same "+
			"version, or into a directory of `PATH`.\n\nWithout kubectl: `./%[2]s kubectl get pods`.\n",
			programs[0].name, p.name)
	}
	if r.sourceURL != "" {
		fmt.Fprintf(&b, "\nDocumentation and source: <%s>\n", r.sourceURL)
	}
	return b.Bytes()
}
