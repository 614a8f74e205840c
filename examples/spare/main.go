// SPDX-License-Identifier: Apache-2.0

// Command spare is kumiki with a plugin of kube-scheduler's framework that keeps nodes for urgent pods. The chapter
// docs/learn/07-plugin.md writes it, breaks it and repairs it.
package main

import (
	"os"

	"github.com/kumiki-scheduler/kumiki/app/command"
)

func main() { os.Exit(command.Main(command.WithFrameworkPlugin(Name, New))) }
