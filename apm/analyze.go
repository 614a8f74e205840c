// SPDX-License-Identifier: Apache-2.0

package apm

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
)

// Analyze computes the profile of a bundle. A missing part becomes a reason in Unknown; a damaged part is an error, so
// that no value is computed from it.
func Analyze(b *bundle.Reader) (*Profile, error) {
	m := b.Manifest
	p := &Profile{Scheduler: m.Scheduler, Began: m.Began, Unknown: map[string]string{}}
	scrapes, err := p.readMetrics(b)
	if err != nil {
		return nil, err
	}
	if err := p.setWork(b); err != nil {
		return nil, err
	}
	t := newTracker()
	if err := part(b, bundle.Trace, t.readTrace); err != nil {
		if err := p.missing(err, "traced", "lanes", "cycles"); err != nil {
			return nil, err
		}
		return p, nil
	}
	var allocated map[string]int64
	err = part(b, bundle.Allocs, func(r io.Reader) (err error) {
		allocated, err = readAllocs(r)
		return err
	})
	if err := p.missing(err, "allocated"); err != nil {
		return nil, err
	}
	window := t.window()
	p.Traced, p.Processors, p.Program = &window, t.processors, t.program
	p.setFactor(b, t)
	p.setRows(t, allocated)
	p.setCycles(t, scrapes)
	p.setResidual()
	return p, nil
}

// part calls f with the content of a part.
func part(b *bundle.Reader, kind bundle.Kind, f func(io.Reader) error) error {
	content, err := b.Open(kind)
	if err != nil {
		return err
	}
	defer content.Close()
	return f(content)
}

// missing notes the reason for values that are not known if err is that of a missing part; other errors it returns.
func (p *Profile) missing(err error, values ...string) error {
	var m *bundle.Missing
	if err == nil || !errors.As(err, &m) {
		return err
	}
	for _, v := range values {
		p.Unknown[v] = m.Error()
	}
	return nil
}

// readMetrics reads both scrapes and sets what follows from them alone. It returns nil if one is missing.
func (p *Profile) readMetrics(b *bundle.Reader) (*twoScrapes, error) {
	var t twoScrapes
	for _, one := range []struct {
		kind bundle.Kind
		into *scrape
	}{{bundle.MetricsBefore, &t.before}, {bundle.MetricsAfter, &t.after}} {
		err := part(b, one.kind, func(r io.Reader) (err error) {
			*one.into, err = readScrape(r)
			return err
		})
		if err := p.missing(err, "process", "unattributed", "attempts"); err != nil {
			return nil, fmt.Errorf("part %s: %w", one.kind, err)
		}
	}
	if t.before == nil || t.after == nil {
		return nil, nil
	}
	if info := t.after["go_info"]; len(info) > 0 {
		p.GoVersion = info[0].label("version")
	}
	if t.restarted() {
		for _, v := range []string{"process", "unattributed", "attempts"} {
			p.Unknown[v] = "the scheduler restarted during the recording"
		}
		return nil, nil
	}
	if used, ok := t.delta("process_cpu_seconds_total", false); ok {
		d := seconds(used)
		p.CPU.Process = &d
	} else {
		const why = "the scheduler's metrics have no process_cpu_seconds_total: it exists on Linux and Windows only"
		p.Unknown["process"], p.Unknown["unattributed"] = why, why
	}
	attempts, ok := t.attempts()
	if p.Attempts = attempts; !ok {
		p.Unknown["attempts"] = "the scheduler's counter of attempts fell during the recording, or is no count"
	}
	return &t, nil
}

// setFactor computes by what executing time is multiplied: 1 if the samples show as much CPU time within twice their
// standard error, else the share of executing time in which threads had a CPU. It is limited by the CPU time of the
// process, which is exact, so that few samples do not let lanes exceed it.
func (p *Profile) setFactor(b *bundle.Reader, t *tracker) {
	for _, g := range t.groups { // order: a sum
		p.CPU.Executing += g.executing()
	}
	p.CPU.Samples, p.CPU.Sampled = t.samples, time.Duration(t.samples)*Period
	if cpu, has := b.Part(bundle.CPU); t.samples == 0 && (!has || cpu.Missing != "") {
		why := (&bundle.Missing{Kind: bundle.CPU, Why: cmp.Or(cpu.Missing, "it was not recorded")}).Error()
		for _, v := range []string{"cpu", "unattributed"} {
			p.Unknown[v] = why + ", so running time may include waiting for a CPU of the machine"
		}
		return
	}
	factor := 1.0
	n := float64(t.samples - t.noGo.samples)
	sampled, executing := n*float64(Period), float64(p.CPU.Executing)
	if low := sampled * (1 + 2/math.Sqrt(max(n, 1))); n > 0 && low < executing {
		factor = sampled / executing
	}
	if p.CPU.Process != nil && executing > 0 {
		most := *p.CPU.Process - time.Duration(t.noGo.samples)*Period
		factor = min(factor, max(float64(most)/executing, 0))
	}
	if factor < noteBelow {
		p.note("the CPUs of the machine were contended: threads of the scheduler had a CPU in %.0f %% of the time "+
			"that goroutines executed; CPU times are scaled by it, RUNNABLE and waits are longer than on an idle "+
			"machine", 100*factor)
	}
	p.CPU.Factor = &factor
}

// noteBelow is the factor from which on contention is noted.
const noteBelow = 0.95

func (p *Profile) note(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

// setCycles sets the cycles of the scheduling loop.
func (p *Profile) setCycles(t *tracker, scrapes *twoScrapes) {
	p.Cycles = t.loop.result(t.program)
	switch {
	case p.Cycles != nil && scrapes != nil:
		const metric = "scheduler_scheduling_algorithm_duration_seconds"
		if sum, ok := scrapes.delta(metric+"_sum", true); ok {
			d := seconds(sum)
			p.Cycles.Algorithm = &d
		}
		if n, ok := scrapes.delta(metric+"_count", true); ok {
			count := int64(n)
			p.Cycles.AlgorithmCount = &count
		}
	case p.Cycles != nil:
	case t.program == "":
		p.Unknown["cycles"] = "the trace has no scheduling loop of kumiki or kube-scheduler 1.37"
		p.note("no goroutine of the trace runs a scheduling loop that is known; the lanes loop, workers and binding " +
			"are empty for that reason")
	default:
		p.Unknown["cycles"] = "kumiki's loop starts no goroutine per cycle, by which a trace shows its end"
	}
}

// setResidual sets what the lanes do not explain of the CPU time of the process.
func (p *Profile) setResidual() {
	if p.CPU.Process == nil || p.CPU.Factor == nil {
		return
	}
	rest := *p.CPU.Process
	for i := range p.Lanes {
		rest -= *p.Lanes[i].CPU
	}
	p.CPU.Unattributed = &rest
}
