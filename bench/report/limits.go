// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"runtime"
)

// GoLimits are what every scheduler's process is told about Go's runtime, whatever this program was told itself.
type GoLimits struct {
	Procs     int `json:"gomaxprocs"`
	GCPercent int `json:"gogc"`
}

// DefaultGoLimits are those of this machine: all processors, and the collector as Go has it without being told.
func DefaultGoLimits() GoLimits { return GoLimits{Procs: runtime.NumCPU(), GCPercent: 100} }

// text is how they stand in a report.
func (l GoLimits) text() string { return fmt.Sprintf("GOMAXPROCS=%d, GOGC=%d", l.Procs, l.GCPercent) }
