// SPDX-License-Identifier: Apache-2.0

// Command plugin is kumiki with one custom plugin, HardwareGeneration. See README.md.
package main

import (
	"os"

	"github.com/kumiki-scheduler/kumiki/app/command"
)

func main() { os.Exit(command.Main(command.WithPlugin(Register()))) }
