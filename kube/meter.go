// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"time"

	"github.com/kumiki-scheduler/kumiki/core/engine"
)

// sampleOne is how many cycles there are to one that is measured.
const sampleOne = 10

// Meter measures where a cycle spends its time, in one of ten cycles; the others pay a branch per call. It belongs to
// the loop's goroutine.
type Meter struct {
	cycles    uint64
	inCycle   bool
	sampled   bool
	step      engine.StepName
	stepBegan time.Time

	plugin      string
	pluginBegan time.Time

	steps   [8]time.Duration         // step -> time in it, of the cycle that was sampled
	plugins map[string]time.Duration // plugin -> time in it
	pending bool                     // steps and plugins hold a cycle that was not flushed
}

var _ engine.Meter = (*Meter)(nil)

// NewMeter returns a Meter that has seen nothing.
func NewMeter() *Meter { return &Meter{plugins: map[string]time.Duration{}} }

// Enter starts a step and ends the one before.
func (m *Meter) Enter(step engine.StepName) {
	if !m.inCycle {
		m.inCycle = true
		m.cycles++
		m.sampled = m.cycles%sampleOne == 1
		if m.sampled {
			m.steps = [8]time.Duration{}
			clear(m.plugins)
		}
	}
	if !m.sampled {
		return
	}
	now := time.Now()
	m.close(now)
	m.step, m.stepBegan = step, now
}

// Plugin starts a plugin's part of the step; an empty name ends it.
func (m *Meter) Plugin(name string) {
	if !m.sampled {
		return
	}
	now := time.Now()
	m.closePlugin(now)
	m.plugin, m.pluginBegan = name, now
}

// Leave ends the cycle.
func (m *Meter) Leave() {
	if m.sampled {
		m.close(time.Now())
		m.pending = true
	}
	m.inCycle, m.sampled = false, false
}

func (m *Meter) close(now time.Time) {
	m.closePlugin(now)
	if m.step != 0 && int(m.step) < len(m.steps) {
		m.steps[m.step] += now.Sub(m.stepBegan)
	}
	m.step = 0
}

func (m *Meter) closePlugin(now time.Time) {
	if m.plugin != "" {
		m.plugins[m.plugin] += now.Sub(m.pluginBegan)
	}
	m.plugin = ""
}

// stepNames are the step labels.
var stepNames = [8]string{
	engine.StepPop: "pop", engine.StepSearch: "search", engine.StepReject: "reject", engine.StepAssume: "assume",
	engine.StepBind: "bind",
}

// flush reports the sampled cycle, if there is one, under the profile that it was for.
func (m *Meter) flush(to *Metrics, profile string) {
	if m == nil || !m.pending {
		return
	}
	m.pending = false
	for step, took := range m.steps {
		if took > 0 && stepNames[step] != "" {
			to.step.WithLabelValues(stepNames[step]).Observe(took.Seconds())
		}
	}
	status := "Success"
	if m.steps[engine.StepReject] > 0 {
		status = "Unschedulable"
	}
	to.extensionPoint.WithLabelValues("Filter", status, profile).Observe(m.steps[engine.StepSearch].Seconds())
	if took := m.steps[engine.StepAssume]; took > 0 {
		to.extensionPoint.WithLabelValues("Reserve", "Success", profile).Observe(took.Seconds())
	}
	for name, took := range m.plugins {
		to.pluginDuration.WithLabelValues(name).Observe(took.Seconds())
	}
}
