// SPDX-License-Identifier: Apache-2.0

// Command randomscheduler is upstream's scheduler with the plugin of examples/randomscheduler.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/kumiki-scheduler/kumiki/examples/randomscheduler/random"
)

func main() {
	os.Exit(cli.Run(app.NewSchedulerCommand(app.WithPlugin(random.Name, random.New))))
}
