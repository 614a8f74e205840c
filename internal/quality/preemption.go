// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/sim/quality"
)

// preemptionCases is how many clusters are drawn for each seed.
const preemptionCases = 1000

// strict is the default configuration, with budgets that are never violated.
const strict = "budgets: Strict"

// preemption shows who is evicted for a pod beside bound B8.
func preemption(b *bench) error {
	b.head("configuration", "cases", "no victims help", "loss of B8", "more violations", "a higher priority",
		"victims, of B8", "sum of priorities, of B8", "needless victims")
	for _, name := range b.shownRows(dropIn, strict) {
		all, err := overSeeds(b, name, "", b.seeds, func(seed int64) (*quality.PreemptionTally, error) {
			return evictForPods(name, seed)
		})
		if err != nil {
			return err
		}
		if len(all) == 0 {
			b.tableRow(name, notMeasured, "", "", "", "", "", "", "")
			continue
		}
		t := &quality.PreemptionTally{}
		for _, one := range all {
			t.Add(one)
		}
		b.tableRow(name, cell(func() string { return fmt.Sprint(t.Cases) }, len(all), len(b.seeds)),
			fmt.Sprint(t.Impossible), fmt.Sprintf("%.1f %%", 100*float64(t.Least)/float64(t.Cases)),
			fmt.Sprint(t.Violations), fmt.Sprint(t.Higher),
			ratio(float64(t.Victims), float64(t.BestVictims)), ratio(float64(t.Priorities), float64(t.BestPriorities)),
			fmt.Sprint(t.Needless))
	}
	return nil
}

// evictForPods has a configuration decide all cases of a seed.
func evictForPods(name string, seed int64) (*quality.PreemptionTally, error) {
	text, err := file(name, nil)
	if err != nil {
		return nil, err
	}
	make, err := stepper(text, 1)
	if err != nil {
		return nil, err
	}
	t := &quality.PreemptionTally{}
	for k := range int64(preemptionCases) {
		if err := quality.DrawPreemption(seed*preemptionCases+k).Run(make(nil), name == strict, t); err != nil {
			return nil, fmt.Errorf("%s, seed %d, case %d: %w", name, seed, k, err)
		}
	}
	return t, nil
}

// ratio shows a sum beside that of a bound.
func ratio(sum, best float64) string { return fmt.Sprintf("%.0f, %.0f: %.3f", sum, best, sum/best) }
