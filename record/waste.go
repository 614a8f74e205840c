// SPDX-License-Identifier: Apache-2.0

package record

import "time"

// Waste is the ledger of work without a result.
type Waste struct {
	// WakeUps are the wake-ups of units by plugin and event, the most useless ones first.
	WakeUps []EventWakeUps `json:"wakeUps"`
	// Flushed is the number of units that a timeout woke, because no event did.
	Flushed uint64 `json:"flushed"`
	// RecalledBinds is the number of binds that were withdrawn before they were sent.
	RecalledBinds uint64 `json:"recalledBinds"`
	// UselessEvictions is the number of pods that were evicted for a unit that was not placed on the freed capacity.
	UselessEvictions uint64 `json:"uselessEvictions"`
	// FullScans is how many of the Decisions evaluated each node.
	FullScans uint64 `json:"fullScans"`
	Decisions uint64 `json:"decisions"`
}

// EventWakeUps are the wake-ups for one plugin by one event.
type EventWakeUps struct {
	// Plugin is empty for a wake-up that no plugin asked for, such as a timeout.
	Plugin string `json:"plugin"`
	Event  string `json:"event"`
	// Woken is the number of wake-ups, and Useless how many of them ended in an attempt that placed nothing. A unit
	// that still waits for its attempt counts in Woken alone.
	Woken   uint64 `json:"woken"`
	Useless uint64 `json:"useless"`
	// Measured is how many of the useless attempts had their CPU time measured, and CPU what these took.
	Measured uint64        `json:"measured"`
	CPU      time.Duration `json:"cpuNs"`
}

// WorkReport is what the scheduling core did in an interval: amounts of work, CPU time, and waste.
type WorkReport struct {
	// Interval is how long it is, since the start of the scheduler unless an interval was asked for.
	Interval time.Duration `json:"intervalNs"`
	// Work has the amounts: name of the kind -> amount.
	Work map[string]uint64 `json:"work"`
	// Steps has the CPU time of the Steps of the engine: name of the lane -> its Steps.
	Steps map[string]StepCPU `json:"steps"`
	// NoCPU is why the CPU time of Steps is not measured; empty if it is.
	NoCPU string `json:"noCPU,omitempty"`
	// Exact is set if CPU time was measured at the boundaries of plugins.
	Exact *ExactCPU `json:"exact,omitempty"`
	// Plugins is the CPU time of plugins in cycles that were measured and not disturbed, or measured at the boundaries.
	Plugins []PluginCPU `json:"plugins"`
	Waste   Waste       `json:"waste"`
}

// Since returns what was done after an earlier report of the same scheduler.
func (r *WorkReport) Since(before *WorkReport) WorkReport {
	out := WorkReport{Interval: r.Interval - before.Interval, Work: map[string]uint64{}, Steps: map[string]StepCPU{},
		NoCPU: r.NoCPU}
	for kind, n := range r.Work { // order: each kind has its own entry
		out.Work[kind] = n - before.Work[kind]
	}
	for lane, is := range r.Steps { // order: each lane has its own entry
		was := before.Steps[lane]
		out.Steps[lane] = StepCPU{Steps: is.Steps - was.Steps, Measured: is.Measured - was.Measured,
			CPU: is.CPU - was.CPU, Wall: is.Wall - was.Wall, Disturbed: is.Disturbed - was.Disturbed}
	}
	if is := r.Exact; is != nil {
		var was ExactCPU
		if before.Exact != nil {
			was = *before.Exact
		}
		if is.Cycles > was.Cycles {
			out.Exact = &ExactCPU{Cycles: is.Cycles - was.Cycles, Readings: is.Readings - was.Readings,
				CPU: is.CPU - was.CPU}
		}
	}
	plugins := map[[2]string]PluginCPU{} // plugin, point -> before
	for _, p := range before.Plugins {
		plugins[[2]string{p.Plugin, p.Point}] = p
	}
	for _, is := range r.Plugins {
		was := plugins[[2]string{is.Plugin, is.Point}]
		if is.CPU, is.Cycles = is.CPU-was.CPU, is.Cycles-was.Cycles; is.Cycles > 0 {
			out.Plugins = append(out.Plugins, is)
		}
	}
	out.Waste = r.Waste.since(&before.Waste)
	return out
}

func (w *Waste) since(before *Waste) Waste {
	out := Waste{Flushed: w.Flushed - before.Flushed, RecalledBinds: w.RecalledBinds - before.RecalledBinds,
		UselessEvictions: w.UselessEvictions - before.UselessEvictions, FullScans: w.FullScans - before.FullScans,
		Decisions: w.Decisions - before.Decisions}
	wakeUps := map[[2]string]EventWakeUps{} // plugin, event -> before
	for _, p := range before.WakeUps {
		wakeUps[[2]string{p.Plugin, p.Event}] = p
	}
	for _, is := range w.WakeUps {
		was := wakeUps[[2]string{is.Plugin, is.Event}]
		is.Woken, is.Useless = is.Woken-was.Woken, is.Useless-was.Useless
		is.Measured, is.CPU = is.Measured-was.Measured, is.CPU-was.CPU
		if is.Woken+is.Useless > 0 {
			out.WakeUps = append(out.WakeUps, is)
		}
	}
	return out
}
