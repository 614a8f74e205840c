// SPDX-License-Identifier: Apache-2.0

package apm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/google/pprof/profile"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
)

// Stacks are the stacks of a bundle with their values, for formats of other tools.
type Stacks struct {
	began  time.Time
	traced time.Duration
	list   []stackValues
}

// stackValues are the values of one stack in one group of goroutines.
type stackValues struct {
	lane                   Lane
	start                  string
	frames                 []string // innermost first, never empty
	samples                int
	cpu, runnable, blocked time.Duration
}

// ReadStacks reads the stacks of a bundle. It is an error if the bundle has no trace or no CPU samples.
func ReadStacks(b *bundle.Reader) (*Stacks, error) {
	t := newTracker()
	if err := part(b, bundle.Trace, t.readTrace); err != nil {
		return nil, err
	}
	p := &Profile{Unknown: map[string]string{}}
	if _, err := p.readMetrics(b); err != nil {
		return nil, err
	}
	if p.setFactor(b, t); p.CPU.Factor == nil {
		return nil, errors.New(p.Unknown["cpu"])
	}
	p.setRows(t, nil)
	perSample := map[Lane]float64{} // lane -> CPU time of one sample
	for _, l := range p.Lanes {
		if l.Samples > 0 {
			perSample[l.Lane] = float64(*l.CPU) / float64(l.Samples)
		}
	}
	x := &Stacks{began: b.Manifest.Began, traced: t.window()}
	for key, g := range t.groups { // order: sorted below
		x.add(t, key, g, perSample[key.lane])
	}
	x.add(t, groupKey{Runtime, ""}, t.noGo, perSample[Runtime])
	slices.SortFunc(x.list, func(a, b stackValues) int {
		return slices.Compare(append([]string{string(a.lane), a.start}, a.frames...),
			append([]string{string(b.lane), b.start}, b.frames...))
	})
	return x, nil
}

func (x *Stacks) add(t *tracker, key groupKey, g *sums, perSample float64) {
	for id, c := range g.stacks { // order: sorted by the caller
		v := stackValues{lane: key.lane, start: key.start, frames: t.stacks.names(id), samples: c.samples,
			cpu: time.Duration(perSample * float64(c.samples)), runnable: c.runnable, blocked: c.syscall}
		for _, d := range c.blocked { // order: a sum
			v.blocked += d
		}
		if len(v.frames) == 0 {
			v.frames = []string{unknownFunction}
		}
		x.list = append(x.list, v)
	}
}

// WritePprof writes the stacks as a profile that go tool pprof reads, compressed.
func (x *Stacks) WritePprof(w io.Writer) error {
	const unit = "nanoseconds"
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: unit},
			{Type: "runnable", Unit: unit}, {Type: "blocked", Unit: unit}},
		DefaultSampleType: "cpu",
		PeriodType:        &profile.ValueType{Type: "cpu", Unit: unit},
		Period:            int64(Period),
		TimeNanos:         x.began.UnixNano(),
		DurationNanos:     int64(x.traced),
	}
	locations := map[string]*profile.Location{} // function -> location
	at := func(name string) *profile.Location {
		if l := locations[name]; l != nil {
			return l
		}
		id := uint64(len(p.Function) + 1)
		f := &profile.Function{ID: id, Name: name, SystemName: name}
		l := &profile.Location{ID: id, Line: []profile.Line{{Function: f}}}
		p.Function, p.Location = append(p.Function, f), append(p.Location, l)
		locations[name] = l
		return l
	}
	for _, v := range x.list {
		s := &profile.Sample{Value: []int64{int64(v.samples), int64(v.cpu), int64(v.runnable), int64(v.blocked)},
			Label: map[string][]string{"lane": {string(v.lane)}}}
		if v.start != "" {
			s.Label["goroutine"] = []string{v.start}
		}
		for _, f := range v.frames {
			s.Location = append(s.Location, at(f))
		}
		p.Sample = append(p.Sample, s)
	}
	if err := p.CheckValid(); err != nil {
		return fmt.Errorf("writing a profile for pprof: %w", err)
	}
	return p.Write(w)
}

// Types of speedscope's file format (https://www.speedscope.app/file-format-schema.json), "sampled" profiles.
type (
	speedscopeFile struct {
		Schema   string              `json:"$schema"`
		Shared   speedscopeShared    `json:"shared"`
		Profiles []speedscopeProfile `json:"profiles"`
		Exporter string              `json:"exporter"`
		Name     string              `json:"name"`
	}
	speedscopeShared struct {
		Frames []speedscopeFrame `json:"frames"`
	}
	speedscopeFrame struct {
		Name string `json:"name"`
	}
	speedscopeProfile struct {
		Type       string  `json:"type"`
		Name       string  `json:"name"`
		Unit       string  `json:"unit"`
		StartValue int64   `json:"startValue"`
		EndValue   int64   `json:"endValue"`
		Samples    [][]int `json:"samples"`
		Weights    []int64 `json:"weights"`
	}
)

// WriteSpeedscope writes the CPU time of each lane as a profile for speedscope.
func (x *Stacks) WriteSpeedscope(w io.Writer) error {
	f := speedscopeFile{Schema: "https://www.speedscope.app/file-format-schema.json", Exporter: "kumiki",
		Name: "scheduler, " + x.began.Format(time.RFC3339), Profiles: []speedscopeProfile{}}
	f.Shared.Frames = []speedscopeFrame{} // without samples too, the schema wants a list

	frames := map[string]int{} // function -> index in the shared frames
	index := func(name string) int {
		i, known := frames[name]
		if !known {
			i = len(f.Shared.Frames)
			frames[name] = i
			f.Shared.Frames = append(f.Shared.Frames, speedscopeFrame{name})
		}
		return i
	}
	for _, lane := range laneOrder {
		p := speedscopeProfile{Type: "sampled", Name: string(lane), Unit: "nanoseconds"}
		for _, v := range x.list {
			if v.lane != lane || v.samples == 0 {
				continue
			}
			stack := make([]int, 0, len(v.frames)) // outermost first
			for _, name := range slices.Backward(v.frames) {
				stack = append(stack, index(name))
			}
			p.Samples, p.Weights = append(p.Samples, stack), append(p.Weights, int64(v.cpu))
			p.EndValue += int64(v.cpu)
		}
		if len(p.Samples) > 0 {
			f.Profiles = append(f.Profiles, p)
		}
	}
	if err := json.NewEncoder(w).Encode(f); err != nil {
		return fmt.Errorf("writing a profile for speedscope: %w", err)
	}
	return nil
}
