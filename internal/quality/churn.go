// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/sim/quality"
)

// churned is what a run with ends has, in percent.
type churned struct{ Lost, Allocated float64 }

func (c churned) lost() float64      { return c.Lost }
func (c churned) allocated() float64 { return c.Allocated }

// churn shows what is lost when pods come and go.
func churn(b *bench) error {
	trace, err := b.readOpenb("default")
	if err != nil {
		return err
	}
	policies := map[string]quality.Policy{ // reference -> policy
		"First Fit (reference)": quality.FirstFit, bestFitReference: quality.BestFit, fgdReference: trace.FGD()}
	loads := []float64{0.9, 0.95, 0.98}
	b.head("scheduler", "load 90 %: lost, allocated", "load 95 %", "load 98 %")
	names := b.shownRows("First Fit (reference)", bestFitReference, fgdReference, dropIn, "binpack", "fgd")
	for _, name := range names {
		row := []string{name}
		for _, load := range loads {
			all, err := overSeeds(b, name, fmt.Sprintf("load %.0f", 100*load), b.seeds,
				func(seed int64) (churned, error) {
					c := &quality.Churn{Seed: seed, Load: load, Arrivals: 60_000, Warmup: 30_000, Longest: 7200}
					return b.churnRun(trace, name, policies[name], c)
				})
			if err != nil {
				return err
			}
			row = append(row, cell(func() string {
				return fmt.Sprintf("%.2f, %.2f", mean(all, churned.lost), mean(all, churned.allocated))
			}, len(all), len(b.seeds)))
		}
		b.tableRow(row...)
	}
	return nil
}

// churnRun runs a reference policy, or a configuration if policy is nil.
func (b *bench) churnRun(trace *quality.Openb, name string, policy quality.Policy, c *quality.Churn) (churned, error) {
	var r *quality.ChurnResult
	var err error
	if policy != nil {
		r, err = trace.ReferenceChurn(policy, c)
	} else {
		r, err = trace.PlaceChurn(b.placer(name, openbResources, c.Seed), c)
	}
	if err != nil {
		return churned{}, err
	}
	return churned{r.LostShare(), r.Allocated}, nil
}
