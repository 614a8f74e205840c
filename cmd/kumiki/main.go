// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"github.com/kumiki-scheduler/kumiki/app/command"
)

func main() { os.Exit(command.Main()) }
