// SPDX-License-Identifier: Apache-2.0

package record

import "time"

// Work is a kind of work that the scheduling core counts. Counts are a function of the events: they are equal on every
// machine, and in a replay from the same start. Time per unit of work thus distinguishes a slow machine from a slow
// algorithm.
type Work uint8

// The kinds of work.
const (
	// RowsEvaluated counts node rows whose filters or scores were computed from nothing: by a class that is new or was
	// dropped, or in one decision by plugins whose results no class keeps (once for filters, once for scores).
	RowsEvaluated Work = iota
	// RowsCaughtUp counts changed node rows that a class or a grouping of its rows evaluated anew.
	RowsCaughtUp
	// Groups counts groups of rows of which one row was evaluated for all.
	Groups
	// CountersRebuilt counts counters of pods by selector that were summed up from nothing.
	CountersRebuilt
	// GangSearches counts searches for the placements of a gang, dry runs aside.
	GangSearches
	// DryRuns counts trials of preemption: of a node without some of its pods, or of placements without some units.
	DryRuns
	// UnitsConsidered counts pods and gangs that searches by preemption units had as candidates for eviction.
	UnitsConsidered
	// HintsEvaluated counts calls of the queueing hints of plugins.
	HintsEvaluated
	// WakeUps counts units that left the unschedulable or gated ones: for an event, a request, or a timeout.
	WakeUps

	// WorkKinds is the number of kinds.
	WorkKinds = int(iota)
)

// workNames: kind -> its name in metrics, files and tables.
var workNames = [WorkKinds]string{
	RowsEvaluated: "rows_evaluated", RowsCaughtUp: "rows_caught_up", Groups: "groups",
	CountersRebuilt: "counters_rebuilt", GangSearches: "gang_searches", DryRuns: "dry_runs",
	UnitsConsidered: "units_considered", HintsEvaluated: "hints_evaluated", WakeUps: "wake_ups",
}

// String returns the name of the kind in metrics, files and tables.
func (w Work) String() string {
	if int(w) < WorkKinds {
		return workNames[w]
	}
	return "unknown"
}

// WorkCounts are amounts of work by kind.
type WorkCounts [WorkKinds]uint64

// Did adds work. It makes a *WorkCounts a meter of work.
func (c *WorkCounts) Did(work Work, n int) { c[work] += uint64(n) }

// StepLane is a part of the Steps of the engine: those of its events that take the same code.
type StepLane uint8

// The lanes of Steps.
const (
	// CycleSteps are scheduling cycles; EventSteps are all others: changes of objects, outcomes and the time.
	CycleSteps StepLane = iota
	EventSteps

	// StepLanes is the number of lanes.
	StepLanes = int(iota)
)

// String returns the name of the lane in metrics, files and tables.
func (l StepLane) String() string {
	if l == CycleSteps {
		return "cycles"
	}
	return "events"
}

// StepCPU is the CPU time of the Steps of a lane, as the clock of the thread shows it.
type StepCPU struct {
	Steps uint64 `json:"steps"`
	// Measured is how many of Steps were measured; CPU and Wall are their times.
	Measured uint64        `json:"measured"`
	CPU      time.Duration `json:"cpuNs"`
	Wall     time.Duration `json:"wallNs"`
	// Disturbed is how many of the measured Steps had a CPU for less than 95 % of their wall time. Their CPU time is
	// exact, but it is not split over plugins.
	Disturbed uint64 `json:"disturbed"`
}

// ExactCPU is how often the CPU clock was read at the boundaries of plugins, and what it cost.
type ExactCPU struct {
	// Cycles is how many cycles were measured like this, disturbed ones too.
	Cycles uint64 `json:"cycles"`
	// Readings of the clock took CPU in all, which is part of no other time.
	Readings uint64        `json:"readings"`
	CPU      time.Duration `json:"cpuNs"`
}

// PluginCPU is the CPU time of a plugin at an extension point, in cycles that were measured and not disturbed, or
// measured at the boundaries of plugins.
type PluginCPU struct {
	// Plugin is empty for what several plugins do at once, in columns; Point is empty for what belongs to no extension
	// point.
	Plugin string        `json:"plugin"`
	Point  string        `json:"point"`
	CPU    time.Duration `json:"cpuNs"`
	// Cycles is how many cycles it took part in.
	Cycles uint64 `json:"cycles"`
}
