// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/sim"
)

// Report is the results of a scenario: those of each profile, under each seed.
type Report struct {
	Scenario string       `json:"scenario"`
	Profiles []string     `json:"profiles"`
	Seeds    []uint64     `json:"seeds"`
	Results  []sim.Result `json:"results"` // by profile, then by seed
	Rows     []Row        `json:"summary"`
	Failed   []Failure    `json:"failedAssertions"`
}

// Failure is an assertion that does not hold in a run.
type Failure struct {
	Profile string `json:"profile"`
	Seed    uint64 `json:"seed"`
	What    string `json:"what"`
}

// Row is a metric over all seeds.
type Row struct {
	Name  string `json:"name"`
	Unit  string `json:"unit,omitempty"`
	Cells []Cell `json:"cells"` // by profile
}

// Cell is a metric of one profile. Only runs in which it has a value count.
type Cell struct {
	Runs int      `json:"runs"`
	Mean *float64 `json:"mean"`
	// Difference is the mean over the seeds of this profile's value less that of the first profile under the same seed,
	// and Half is half of its confidence interval of 95 %; nil for the first profile, and for fewer than two seeds.
	Difference *float64 `json:"difference,omitempty"`
	Half       *float64 `json:"half,omitempty"`
}

// New summarises results, which are ordered by profile, then by seed.
func New(scenario string, profiles []string, seeds []uint64, results []sim.Result) *Report {
	r := &Report{Scenario: scenario, Profiles: profiles, Seeds: seeds, Results: results, Failed: []Failure{}}
	var names []sim.Metric
	for i := range results {
		for _, m := range results[i].Metrics {
			if !slices.ContainsFunc(names, func(o sim.Metric) bool { return o.Name == m.Name }) {
				names = append(names, m)
			}
		}
	}
	for _, m := range names {
		row := Row{Name: m.Name, Unit: m.Unit}
		for p := range profiles {
			row.Cells = append(row.Cells, r.cell(m.Name, p))
		}
		r.Rows = append(r.Rows, row)
	}
	return r
}

// value is a metric of a run, NaN for none.
func (r *Report) value(name string, profile, seed int) float64 {
	m, _ := r.Results[profile*len(r.Seeds)+seed].Find(name)
	if m.Value == nil {
		return math.NaN()
	}
	return *m.Value
}

func (r *Report) cell(name string, profile int) Cell {
	var values, differences []float64
	for s := range r.Seeds {
		v := r.value(name, profile, s)
		if math.IsNaN(v) {
			continue
		}
		values = append(values, v)
		if base := r.value(name, 0, s); profile > 0 && !math.IsNaN(base) {
			differences = append(differences, v-base)
		}
	}
	c := Cell{Runs: len(values)}
	if len(values) > 0 {
		m := mean(values)
		c.Mean = &m
	}
	if len(differences) > 0 {
		m := mean(differences)
		c.Difference = &m
	}
	if len(differences) > 1 {
		h := half(differences)
		c.Half = &h
	}
	return c
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, v := range list {
		sum += v
	}
	return sum / float64(len(list))
}

// half is half of the confidence interval of 95 % of the mean of a list (Student's t).
func half(list []float64) float64 {
	m, sum := mean(list), 0.0
	for _, v := range list {
		sum += float64((v - m) * (v - m))
	}
	n := float64(len(list))
	return student(len(list)-1) * math.Sqrt(sum/(n-1)/n)
}

// quantiles are the 97.5 % quantiles of Student's t distribution for 1, 2, … degrees of freedom.
var quantiles = []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
	2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045,
	2.042}

// student returns the quantile, above 30 degrees the next larger of a few that are tabulated.
func student(degrees int) float64 {
	switch {
	case degrees <= len(quantiles):
		return quantiles[degrees-1]
	case degrees <= 60:
		return 2.042
	case degrees <= 120:
		return 2.000
	}
	return 1.980
}
