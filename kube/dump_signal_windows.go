// SPDX-License-Identifier: Apache-2.0

package kube

import "os"

// dumpSignal asks for a dump, as in upstream where there is no SIGUSR2.
var dumpSignal = os.Interrupt
