// SPDX-License-Identifier: Apache-2.0

package apm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/record"
)

// The limits of a report of work: far above what a scheduler writes.
const (
	workBytes = 8 << 20
	workRows  = 10_000
	workName  = 256 // bytes
)

// readWork reads a report of work. It may come from another machine, so what contradicts itself is an error, and no
// number is computed from it.
func readWork(r io.Reader) (*record.WorkReport, error) {
	text, err := io.ReadAll(io.LimitReader(r, workBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > workBytes {
		return nil, fmt.Errorf("more than %d bytes", workBytes)
	}
	w := &record.WorkReport{}
	if err := json.Unmarshal(text, w); err != nil {
		return nil, fmt.Errorf("reading the report of work: %w", err)
	}
	return w, checkWork(w)
}

// checkWork returns an error unless a report can be that of a scheduler.
func checkWork(w *record.WorkReport) error {
	if len(w.Work)+len(w.Steps)+len(w.Plugins)+len(w.Waste.WakeUps) > workRows {
		return fmt.Errorf("more than %d rows", workRows)
	}
	if w.Interval < 0 {
		return errors.New("the interval is negative")
	}
	names := []string{w.NoCPU}
	for kind, n := range w.Work { // order: the same error for each
		names = append(names, kind)
		if n > math.MaxInt64 {
			return errors.New("an amount of work is negative")
		}
	}
	for lane, s := range w.Steps { // order: the same error for each
		names = append(names, lane)
		if s.Measured > s.Steps || s.Disturbed > s.Measured || s.CPU < 0 || s.Wall < 0 || s.Steps > math.MaxInt64 {
			return errors.New("more Steps are measured than there are, or a time is negative")
		}
	}
	if e := w.Exact; e != nil && (e.CPU < 0 || e.Cycles > math.MaxInt64 || e.Readings > math.MaxInt64) {
		return errors.New("a time or number of readings of the clock is negative")
	}
	for _, p := range w.Plugins {
		names = append(names, p.Plugin, p.Point)
		if p.CPU < 0 {
			return errors.New("the CPU time of a plugin is negative")
		}
	}
	for _, u := range w.Waste.WakeUps {
		names = append(names, u.Plugin, u.Event)
		if u.Measured > u.Useless || u.CPU < 0 || u.Woken > math.MaxInt64 || u.Useless > math.MaxInt64 {
			return errors.New("more wake-ups are measured than were useless, or a time is negative")
		}
	}
	if w.Waste.FullScans > w.Waste.Decisions {
		return errors.New("more full scans than decisions")
	}
	for _, name := range names {
		if len(name) > workName || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
			return errors.New("a name is too long or not printable")
		}
	}
	return nil
}

// setWork sets the amounts of work, the exact CPU time of Steps and the waste.
func (p *Profile) setWork(b *bundle.Reader) error {
	err := part(b, bundle.Work, func(r io.Reader) (err error) {
		p.Work, err = readWork(r)
		return err
	})
	if err := p.missing(err, "work"); err != nil {
		return fmt.Errorf("part %s: %w", bundle.Work, err)
	}
	if p.Work != nil && p.Work.NoCPU != "" {
		p.Unknown["cpuOfSteps"] = p.Work.NoCPU
	}
	return nil
}

// StepsCPU estimates the CPU time of all Steps of a lane from those that were measured. It returns nil if none was.
func StepsCPU(s record.StepCPU) *time.Duration {
	if s.Measured == 0 {
		return nil
	}
	all := time.Duration(float64(s.CPU) / float64(s.Measured) * float64(s.Steps))
	return &all
}
