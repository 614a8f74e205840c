// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"fmt"
	"math/rand/v2"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

//go:embed workloads/*.yaml
var files embed.FS

// families are the workloads, in the order of the page.
var families = []string{"burst", "churn", "gangs"}

// plan returns a workload with numbers of pods that a seed draws.
func plan(family string, nodes int, seed uint64) (workload.Plan, error) {
	f, err := workload.LoadFS(files, "workloads/fidelity.yaml")
	if err != nil {
		return workload.Plan{}, fmt.Errorf("reading the workloads: %w", err)
	}
	for _, c := range f.Cases {
		if c.Name == family {
			w := c.Workloads[0].With("nodes", nodes)
			for name, value := range draw(family, nodes, seed) { // order: each names another parameter
				w = w.With(name, value)
			}
			return c.Plan(w)
		}
	}
	return workload.Plan{}, fmt.Errorf("there is no workload %s", family)
}

// draw returns the parameters of a workload: name -> value. Small clusters get few pods, for a quick check.
func draw(family string, nodes int, seed uint64) map[string]int {
	r := rand.New(rand.NewPCG(seed, uint64(len(family))<<32|uint64(nodes)))
	about := func(n int) int { return max(1, n*(80+r.IntN(41))/100) }
	pods := min(2000, 15*nodes)
	switch family {
	case "churn":
		return map[string]int{"first": about(pods / 4), "places": about(50), "sizes": about(10)}
	case "gangs":
		return map[string]int{"first": about(pods / 16), "size": about(8), "second": about(pods / 128),
			"other": about(64)}
	}
	return map[string]int{"first": about(pods), "second": about(pods / 2), "sizes": about(10)}
}
