// SPDX-License-Identifier: Apache-2.0

// Command standalone is upstream's scheduler as a child process of the command that measures the quality of placements:
// it reads arrivals from standard input and answers with nodes.
//
//go:debug randseednop=0
package main

import (
	"fmt"
	"os"

	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/kumiki-scheduler/kumiki/conformance/standalone"
)

func main() {
	err := utilfeature.DefaultMutableFeatureGate.Set("GenericWorkload=true") // gangs
	if err == nil {
		err = standalone.Serve(os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
