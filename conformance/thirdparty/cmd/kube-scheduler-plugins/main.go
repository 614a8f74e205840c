// SPDX-License-Identifier: Apache-2.0

// Command kube-scheduler-plugins is upstream's scheduler with the plugins of sigs.k8s.io/scheduler-plugins.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/kumiki-scheduler/kumiki/conformance/thirdparty/plugins"
)

func main() {
	var options []app.Option
	for name, factory := range plugins.All() { // order: a registry is a map
		options = append(options, app.WithPlugin(name, factory))
	}
	os.Exit(cli.Run(app.NewSchedulerCommand(options...)))
}
