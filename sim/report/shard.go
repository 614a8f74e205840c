// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/sim"
)

// Shard is a part of the runs of a report: of all runs in their order, each Of-th, beginning with Index.
type Shard struct {
	Scenario string       `json:"scenario"`
	Profiles []string     `json:"profiles"`
	Seeds    []uint64     `json:"seeds"`
	Input    string       `json:"input"` // digest of all that the runs are made of
	Index    int          `json:"shard"`
	Of       int          `json:"of"`
	Results  []sim.Result `json:"results"`
	Failed   []Failure    `json:"failedAssertions"`
}

// Has reports whether the shard has a run.
func (s *Shard) Has(run int) bool { return run%s.Of == s.Index }

// Merge joins all shards of a report. The result is that of a run without shards.
func Merge(shards []Shard) (*Report, error) {
	if len(shards) == 0 {
		return nil, errors.New("there are no shards")
	}
	first := &shards[0]
	by := make([]*Shard, first.Of)
	for i := range shards {
		s := &shards[i]
		switch {
		case s.Of < 1 || s.Index < 0 || s.Index >= s.Of:
			return nil, fmt.Errorf("shard %d of %d does not exist", s.Index, s.Of)
		case s.Of != first.Of || s.Input != first.Input || s.Scenario != first.Scenario ||
			!slices.Equal(s.Profiles, first.Profiles) || !slices.Equal(s.Seeds, first.Seeds):
			return nil, fmt.Errorf("shard %d is not of the same simulation as shard %d", s.Index, first.Index)
		case by[s.Index] != nil:
			return nil, fmt.Errorf("shard %d is there twice", s.Index)
		}
		by[s.Index] = s
	}
	if i := slices.Index(by, nil); i >= 0 {
		return nil, fmt.Errorf("shard %d of %d is missing", i, first.Of)
	}
	results := make([]sim.Result, len(first.Profiles)*len(first.Seeds))
	taken := make([]int, first.Of)
	for run := range results {
		s := by[run%first.Of]
		at := taken[s.Index]
		if at >= len(s.Results) {
			return nil, fmt.Errorf("shard %d has %d results, which are too few", s.Index, len(s.Results))
		}
		results[run] = s.Results[at]
		taken[s.Index]++
	}
	out := New(first.Scenario, first.Profiles, first.Seeds, results)
	for _, s := range by {
		if taken[s.Index] != len(s.Results) {
			return nil, fmt.Errorf("shard %d has %d results, which are too many", s.Index, len(s.Results))
		}
		out.Failed = append(out.Failed, s.Failed...)
	}
	slices.SortStableFunc(out.Failed, func(a, b Failure) int {
		return cmp.Or(slices.Index(out.Profiles, a.Profile)-slices.Index(out.Profiles, b.Profile),
			slices.Index(out.Seeds, a.Seed)-slices.Index(out.Seeds, b.Seed))
	})
	return out, nil
}
