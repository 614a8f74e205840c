// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"runtime"
)

// GoLimits are the settings of Go's runtime for every scheduler's process, whatever those of this program are.
type GoLimits struct {
	Procs     int `json:"gomaxprocs"`
	GCPercent int `json:"gogc"`
}

// DefaultGoLimits are those of this machine: all processors, and the default of Go for the collector.
func DefaultGoLimits() GoLimits { return GoLimits{Procs: runtime.NumCPU(), GCPercent: 100} }

// text is how they stand in a report.
func (l GoLimits) text() string { return fmt.Sprintf("GOMAXPROCS=%d, GOGC=%d", l.Procs, l.GCPercent) }
