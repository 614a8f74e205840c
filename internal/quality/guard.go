// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/sim/quality"
)

// firstOtherSeed begins the seeds by which no weight was chosen.
const firstOtherSeed = 1000

// guard shows the results with other seeds and with other shapes than those that weights may have been chosen by.
func guard(b *bench) error {
	other := make([]int64, len(b.seeds))
	for i := range other {
		other[i] = firstOtherSeed + int64(i)
	}
	configs := b.shown(slices.DeleteFunc(slices.Clone(openbConfigs), func(n string) bool { return n == upstream })...)
	b.head(append([]string{"row", bestFitReference, fgdReference}, configs...)...)
	for _, workload := range []string{"default", "cpu250", "gpushare100"} {
		trace, err := b.readOpenb(workload)
		if err != nil {
			return err
		}
		for _, c := range []struct {
			row   string
			trace *quality.Openb
		}{{workload, trace}, {workload + " changed", trace.Changed(1)}} {
			if !b.prints(c.row) {
				continue
			}
			row := []string{c.row}
			for _, p := range []struct {
				name   string
				policy quality.Policy
			}{{bestFitReference, quality.BestFit}, {fgdReference, c.trace.FGD()}} {
				all, err := overSeeds(b, c.row, p.name, other, func(seed int64) (allocation, error) {
					return allocated(c.trace.Reference(p.policy, seed)), nil
				})
				if err != nil {
					return err
				}
				row = append(row, allocationCell(all, len(other)))
			}
			for _, name := range configs {
				all, err := b.openbRuns(c.trace, c.row, name, other)
				if err != nil {
					return err
				}
				row = append(row, allocationCell(all, len(other)))
			}
			b.tableRow(row...)
		}
	}
	return nil
}
