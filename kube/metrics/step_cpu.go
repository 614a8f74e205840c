// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"runtime"
	"time"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// measureOne is how many Steps of a lane there are to one whose CPU time is measured.
const measureOne = 16

// undisturbed is the least CPU time of a Step in percent of its wall time for which wall times inside the Step are
// taken as CPU times.
const undisturbed = 95

// StepCPU measures the CPU time of Steps of the engine: of one in measureOne of each lane, or of all while a recording
// asks for it. For a measured Step the goroutine is locked to its thread, so that the clock of the thread is that of
// the Step. It belongs to the goroutine that owns the engine.
//
// Steps that may call foreign code are never measured: the call may block, and a locked goroutine is handed over
// between threads at many times the cost.
type StepCPU struct {
	clock func() time.Duration // CPU time of the thread; nil where there is none
	why   string               // why there is no clock; empty if there is one
	wall  func() time.Time
	// lock and unlock bind the goroutine to its thread.
	lock, unlock func()
	cost         time.Duration // what a measurement adds to the CPU time it measures
	all          int           // recordings that ask for all Steps
	exact        int           // recordings that ask for the boundaries of plugins
	boundaries   boundaries
	lanes        [record.StepLanes]record.StepCPU

	// Of the Step in progress.
	lane      record.StepLane
	measuring bool
	cpuBegan  time.Duration
	wallBegan time.Time
}

// NewStepCPU returns a StepCPU. foreign reports that Steps may call foreign code: then it only counts Steps.
func NewStepCPU(foreign bool) *StepCPU {
	c := &StepCPU{wall: time.Now, lock: runtime.LockOSThread, unlock: runtime.UnlockOSThread}
	if foreign {
		c.why = "a profile calls foreign code, which may block: its Steps are not locked to a thread"
		return c
	}
	if c.clock, c.why = threadClock(); c.clock != nil {
		c.calibrate()
	}
	return c
}

// calibrate sets cost to the CPU time of an empty measurement.
func (c *StepCPU) calibrate() {
	c.lock()
	defer c.unlock()
	for i := range 64 {
		began := c.clock()
		_ = c.wall().Sub(c.wall())
		if cost := c.clock() - began; i == 0 || cost < c.cost {
			c.cost = cost
		}
		began = c.clock()
		if cost := c.clock() - began; i == 0 || cost < c.boundaries.cost {
			c.boundaries.cost = cost
		}
	}
}

// laneOf is the lane of an event.
func laneOf(ev engine.Event) record.StepLane {
	if _, cycle := ev.(engine.Cycle); cycle {
		return record.CycleSteps
	}
	return record.EventSteps
}

// Begin begins a Step with an event. It reports whether the Step is measured; the goroutine is then locked to its
// thread until End.
func (c *StepCPU) Begin(ev engine.Event) bool {
	c.lane = laneOf(ev)
	of := &c.lanes[c.lane]
	of.Steps++
	c.measuring = c.clock != nil && (c.all > 0 || of.Steps%measureOne == 1)
	if c.measuring {
		c.lock()
		c.cpuBegan = c.clock()
		c.wallBegan = c.wall()
	}
	if c.boundaries.on = false; c.measuring && c.exact > 0 {
		c.boundaries.clock = c.clock
		c.boundaries.begin(c.cpuBegan)
	}
	return c.measuring
}

// measuredStep is the measurement of one Step.
type measuredStep struct {
	measured  bool
	exact     bool // wall times inside the Step are CPU times
	cpu, wall time.Duration
}

// End ends the Step and returns its measurement.
func (c *StepCPU) End() measuredStep {
	if !c.measuring {
		return measuredStep{}
	}
	wall := c.wall().Sub(c.wallBegan)
	cpu := c.clock() - c.cpuBegan
	c.unlock()
	c.measuring = false
	cost := c.cost
	if c.boundaries.on {
		cost += c.boundaries.end(c.cpuBegan+cpu, c.lane == record.CycleSteps)
	}
	m := measuredStep{measured: true, exact: cpu*100 >= wall*undisturbed, cpu: max(cpu-cost, 0), wall: wall}
	of := &c.lanes[c.lane]
	of.Measured++
	of.CPU += m.cpu
	of.Wall += m.wall
	if !m.exact {
		of.Disturbed++
	}
	return m
}

// MeasureAll makes Begin measure all Steps until it is called with false as often as with true.
func (c *StepCPU) MeasureAll(on bool) {
	if on {
		c.all++
	} else {
		c.all--
	}
}

// MeasureBoundaries makes Begin measure at the boundaries of plugins, in all Steps that are measured, until it is
// called with false as often as with true.
func (c *StepCPU) MeasureBoundaries(on bool) {
	if on {
		c.exact++
	} else {
		c.exact--
	}
}

// atBoundaries returns the boundaries of the Step in progress; nil if they are not measured.
func (c *StepCPU) atBoundaries() *boundaries {
	if !c.boundaries.on {
		return nil
	}
	return &c.boundaries
}
