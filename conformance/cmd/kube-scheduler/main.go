// SPDX-License-Identifier: Apache-2.0

// Command kube-scheduler is upstream's scheduler of the version that the
// conformance module pins. The benchmark races kumiki against it. Set the
// version it reports at link time (see the conformance-upstream target of the
// Makefile), as upstream's own build does.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	os.Exit(cli.Run(app.NewSchedulerCommand()))
}
