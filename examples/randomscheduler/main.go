// SPDX-License-Identifier: Apache-2.0

// Command randomscheduler is kumiki with a plugin that is written for kube-scheduler. See README.md.
package main

import (
	"os"

	"github.com/kumiki-scheduler/kumiki/app/command"
	"github.com/kumiki-scheduler/kumiki/examples/randomscheduler/random"
)

func main() { os.Exit(command.Main(command.WithFrameworkPlugin(random.Name, random.New))) }
