// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"strings"
)

// SplitAblation takes SCHEDULER~PLUGIN apart: a scheduler whose configuration disables a plugin at every point.
// Without ~ the plugin is empty.
func SplitAblation(name string) (scheduler, plugin string) {
	scheduler, plugin, _ = strings.Cut(name, "~")
	return scheduler, plugin
}

// costs are what plugins cost that some row lacks, against the row that has it.
func costs(rows []WorkloadRow) []string {
	var out []string
	for i := range rows {
		name, plugin := SplitAblation(rows[i].Scheduler)
		if plugin == "" {
			continue
		}
		for k := range rows {
			if with := &rows[k]; with.Scheduler == name {
				share := 1 - float64(rows[i].Latency.P99)/float64(with.Latency.P99)
				out = append(out, fmt.Sprintf("%s costs %s %s of the p99, and %s CPU seconds of %s", plugin, name,
					percentText(share), number("%.2f", with.CPU.Median-rows[i].CPU.Median), number("%.2f", with.CPU.Median)))
			}
		}
	}
	return out
}

func percentText(share float64) string {
	if math.IsInf(share, 0) {
		share = math.NaN()
	}
	return number("%.0f %%", 100*share)
}
