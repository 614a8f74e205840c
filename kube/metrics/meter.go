// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// sampleOne is how many cycles there are to one whose plugins are measured one by one, and how many events to one whose
// hints are (upstream: pluginMetricsSamplePercent, for the former only).
const sampleOne = 10

// The most that is kept of one step.
const (
	maxHints  = 64 // of one event: every waiting pod may have one
	maxEvents = 8  // labels of one event of the watch
)

// Meter measures where a cycle spends its time: by extension point in each cycle, by plugin in one of ten. It belongs
// to the loop's goroutine. What it has seen goes to Metrics when the loop has ended the step.
type Meter struct {
	cycles   uint64
	inCycle  bool
	sampled  bool // the cycle is one of ten, or its CPU time is measured
	measured bool // the CPU time of the Step is measured
	// boundaries has the CPU time of plugins in the Step; nil if it is not measured.
	boundaries *boundaries
	step       engine.StepName
	stepBegan  time.Time
	steps      [8]time.Duration // step -> time in it, of the cycle that was sampled

	at      plugin.Point // where the cycle is; 0 for at no point
	atBegan time.Time
	points  [plugin.Points]time.Duration // point -> time at it
	passed  [plugin.Points]bool          // point -> the cycle came to it
	ran     []run                        // in the order in which they began
	running bool                         // the last of ran goes on
	pending bool                         // a cycle was not flushed

	happened uint64
	events   []plugin.Event // of the step
	asking   bool           // hints are measured
	askBegan time.Time
	asked    int
	hints    []hinted           // of the step
	stayed   []record.QueueMove // units that an event woke and that stay gated, of the step

	work record.WorkCounts // since the start

	series map[string]*profileSeries // profile -> its metrics
}

// run is a plugin's work at a point.
type run struct {
	at    plugin.Point
	name  string
	began time.Time // of a sampled cycle
	took  time.Duration
}

// hinted is what a hint said, and how long it took.
type hinted struct {
	plugin string
	event  plugin.Event
	label  string
	took   time.Duration
}

var _ engine.Meter = (*Meter)(nil)

// NewMeter returns a Meter that has seen nothing.
func NewMeter() *Meter { return &Meter{series: map[string]*profileSeries{}} }

// Enter starts a step and ends the one before.
func (m *Meter) Enter(step engine.StepName) {
	m.cross(0, "")
	now := time.Now()
	if !m.inCycle {
		m.inCycle, m.pending = true, false
		m.cycles++
		m.sampled = m.cycles%sampleOne == 1 || m.measured
		m.steps = [8]time.Duration{}
		m.points, m.passed = [plugin.Points]time.Duration{}, [plugin.Points]bool{}
		m.ran = m.ran[:0]
		m.asked = 0
	}
	m.close(now)
	m.step, m.stepBegan = step, now
}

// Plugin starts a plugin's work at a point. Filters and scorers outside a search only say why, which is not measured.
func (m *Meter) Plugin(at plugin.Point, name string) {
	if !m.inCycle || m.step == engine.StepReject && at != plugin.AtPostFilter {
		return
	}
	m.cross(at, name)
	if at == m.at && !m.sampled {
		m.note(at, name, time.Time{})
		return
	}
	now := time.Now()
	m.closeRun(now)
	if at != m.at {
		m.closePoint(now)
		m.at, m.atBegan, m.passed[at] = at, now, true
	}
	m.note(at, name, now)
}

func (m *Meter) note(at plugin.Point, name string, began time.Time) {
	if name != "" {
		m.ran = append(m.ran, run{at: at, name: name, began: began})
		m.running = m.sampled
	}
}

// Leave ends the cycle.
func (m *Meter) Leave() {
	if m.inCycle {
		m.cross(0, "")
		m.close(time.Now())
		m.pending = true
	}
	m.inCycle = false
}

func (m *Meter) close(now time.Time) {
	m.closeRun(now)
	m.closePoint(now)
	if m.step != 0 && int(m.step) < len(m.steps) {
		m.steps[m.step] += now.Sub(m.stepBegan)
	}
	m.step = 0
}

func (m *Meter) closePoint(now time.Time) {
	if m.at != 0 {
		m.points[m.at] += now.Sub(m.atBegan)
	}
	m.at = 0
}

func (m *Meter) closeRun(now time.Time) {
	if m.running {
		last := &m.ran[len(m.ran)-1]
		last.took = now.Sub(last.began)
	}
	m.running = false
}

// measure notes whether the CPU time of the Step that begins is measured. Then its plugins are too, so that the CPU
// time can be split over them; with boundaries, by the clock of the thread.
func (m *Meter) measure(is bool, at *boundaries) {
	if m != nil {
		m.measured, m.boundaries = is, at
	}
}

// Did counts work.
func (m *Meter) Did(work record.Work, n int) { m.work.Did(work, n) }

// Work returns the work since the start.
func (m *Meter) Work() record.WorkCounts {
	if m == nil {
		return record.WorkCounts{}
	}
	return m.work
}

// Happened notes an event. The hints of one in ten are measured.
func (m *Meter) Happened(ev plugin.Event) {
	if len(m.events) < maxEvents {
		m.events = append(m.events, ev)
	}
	m.happened++
	m.asking, m.asked = m.happened%sampleOne == 1, 0
}

// Ask starts a question to a hint.
func (m *Meter) Ask() {
	if m.asking && m.asked < maxHints {
		m.askBegan = time.Now()
	}
}

// Answered ends it.
func (m *Meter) Answered(name string, ev plugin.Event, hint plugin.Hint, failed bool) {
	if !m.asking || m.asked >= maxHints {
		return
	}
	m.asked++
	label := "QueueSkip"
	switch {
	case failed:
		label = "Error"
	case hint == plugin.QueueHint:
		label = "Queue"
	}
	if len(m.hints) < maxHints {
		m.hints = append(m.hints, hinted{name, ev, label, time.Since(m.askBegan)})
	}
}

// stepNames are the step labels.
var stepNames = [8]string{
	engine.StepPop: "pop", engine.StepSearch: "search", engine.StepReject: "reject", engine.StepAssume: "assume",
	engine.StepBind: "bind",
}

// status is the label of a point of the last cycle. An error came up at the point the cycle got to.
func (m *Meter) status(at plugin.Point, d *record.Decision) string {
	switch {
	case d.Verdict == record.AttemptFailed && at == m.last():
		return statusError
	case at == plugin.AtPreFilter && d.PreFilter != "":
		return statusUnresolvable
	case at == plugin.AtReserve && d.Verdict == record.DoesNotFit:
		return statusRejected
	case at == plugin.AtPostFilter && (d.Preemption == nil || d.Preemption.Node == ""):
		return statusRejected // nothing was done that another try could profit from, as far as that is known
	}
	return statusSuccess
}

// last is the point that the last cycle got to.
func (m *Meter) last() plugin.Point {
	for at := plugin.Point(plugin.Points - 1); at > 0; at-- {
		if m.passed[at] && at != plugin.AtPostFilter {
			return at
		}
	}
	return 0
}

// Preempting names the work of preemption in metrics, as upstream names it: by the plugin.
const Preempting = "DefaultPreemption"

// flush reports the last cycle, which came to this decision, if it was not reported yet.
func (m *Meter) flush(to *Metrics, d *record.Decision) {
	if m == nil || !m.pending {
		return
	}
	m.pending = false
	s := m.series[d.Profile]
	if s == nil {
		s = &profileSeries{profile: d.Profile}
		m.series[d.Profile] = s
	}
	for at := plugin.Point(1); at < plugin.Points; at++ {
		if m.passed[at] {
			s.point(to, at, m.status(at, d)).Observe(m.points[at].Seconds())
		}
	}
	for i := range m.ran {
		r := &m.ran[i]
		of := s.plugin(to, r.at, r.name)
		if of.runs != nil {
			of.runs.Inc()
		}
		if r.at == plugin.AtPostFilter && r.name == Preempting {
			to.preemptions.Inc()
		}
		if m.sampled {
			of.took.Observe(r.took.Seconds())
		}
	}
	if !m.sampled {
		return
	}
	for step, took := range m.steps {
		if took > 0 && stepNames[step] != "" {
			to.step.WithLabelValues(stepNames[step]).Observe(took.Seconds())
		}
	}
}

// flushStep reports the hints of the step that just ended and the units that stay gated, and forgets its events.
func (m *Meter) flushStep(to *Metrics) {
	if m == nil {
		return
	}
	for _, h := range m.hints {
		to.hints.WithLabelValues(h.plugin, h.event.String(), h.label).Observe(h.took.Seconds())
	}
	for i := range m.stayed {
		to.entered(&m.stayed[i])
	}
	m.hints, m.events, m.stayed = m.hints[:0], m.events[:0], m.stayed[:0]
}

// StaysGated counts a unit that an event woke and that its gate holds still: upstream takes it out of its sub-queue and
// adds it again.
func (m *Meter) StaysGated(move record.QueueMove) { m.stayed = append(m.stayed, move) }

// stepEvents are what the engine made of the step's event.
func (m *Meter) stepEvents() []plugin.Event {
	if m == nil {
		return nil
	}
	return m.events
}

// forget drops the metrics that were looked up, so that those that were reset by DELETE /metrics appear again.
func (m *Meter) forget() {
	if m != nil {
		clear(m.series)
	}
}
