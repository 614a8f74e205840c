// SPDX-License-Identifier: Apache-2.0

package apm

import (
	"strings"
	"testing"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/record"
)

const someWork = `{"intervalNs": 1000000000, "work": {"rows_evaluated": 10, "hints_evaluated": 4},
 "steps": {"cycles": {"steps": 5, "measured": 4, "cpuNs": 4000, "wallNs": 4100, "disturbed": 1}},
 "plugins": [{"plugin": "NodeResourcesFit", "point": "Filter", "cpuNs": 100, "cycles": 3}],
 "waste": {"wakeUps": [{"plugin": "P", "event": "NodeAdd", "woken": 4, "useless": 3, "measured": 3, "cpuNs": 9}],
  "flushed": 1, "recalledBinds": 2, "uselessEvictions": 3, "fullScans": 4, "decisions": 5}}`

// TestWorkOfABundle: the report is read as it is, and missing work has its reason.
func TestWorkOfABundle(t *testing.T) {
	p, err := Analyze(bundleOf(t, map[bundle.Kind]string{bundle.Work: someWork, bundle.Trace: "denied by somebody"}))
	if err != nil {
		t.Fatal(err)
	}
	if w := p.Work; w == nil || w.Work["rows_evaluated"] != 10 || w.Waste.WakeUps[0].Useless != 3 || *StepsCPU(w.Steps["cycles"]) != 5*time.Microsecond {
		t.Errorf("work %+v", w)
	}
	p, err = Analyze(bundleOf(t, map[bundle.Kind]string{bundle.Work: "denied by somebody", bundle.Trace: "denied"}))
	if err != nil || p.Work != nil || !strings.Contains(p.Unknown["work"], "denied by somebody") {
		t.Errorf("%v: work %+v, unknown %v", err, p.Work, p.Unknown)
	}
	if StepsCPU(record.StepCPU{Steps: 3}) != nil {
		t.Error("the CPU time of Steps of which none was measured is known")
	}
}

// TestWorkThatContradictsItself: no number is shown of a report that no scheduler writes.
func TestWorkThatContradictsItself(t *testing.T) {
	for what, change := range map[string][2]string{
		"no JSON":                {`{"intervalNs"`, `{"intervalNs`},
		"negative interval":      {`1000000000`, `-1`},
		"negative amount":        {`"rows_evaluated": 10`, `"rows_evaluated": -10`},
		"large amount":           {`"rows_evaluated": 10`, `"rows_evaluated": 18446744073709551615`},
		"measured more":          {`"measured": 4`, `"measured": 6`},
		"disturbed more":         {`"disturbed": 1`, `"disturbed": 5`},
		"negative CPU":           {`"cpuNs": 4000`, `"cpuNs": -4000`},
		"negative plugin":        {`"cpuNs": 100`, `"cpuNs": -100`},
		"measured wake-ups more": {`"measured": 3`, `"measured": 4`},
		"negative readings":      {`"waste"`, `"exact": {"cycles": 1, "readings": -1}, "waste"`},
		"negative exact CPU":     {`"waste"`, `"exact": {"cycles": 1, "cpuNs": -1}, "waste"`},
		"scans":                  {`"fullScans": 4`, `"fullScans": 6`},
		"escape code":            {`"NodeAdd"`, `"\u001b[2J"`},
		"long name":              {`"NodeAdd"`, `"` + strings.Repeat("x", 300) + `"`},
		"many rows":              {`"work": {`, `"work": {` + manyKinds()},
		"large":                  {`"NodeAdd"`, `"` + strings.Repeat("x", workBytes) + `"`},
	} {
		text := strings.Replace(someWork, change[0], change[1], 1)
		if _, err := readWork(strings.NewReader(text)); err == nil || text == someWork {
			t.Errorf("%s: no error", what)
		}
	}
	if _, err := readWork(strings.NewReader(someWork)); err != nil {
		t.Errorf("the report that they are made of: %v", err)
	}
}

// manyKinds is more kinds of work than a report may have.
func manyKinds() string {
	var b strings.Builder
	for i := range workRows {
		b.WriteString(`"k` + strings.Repeat("i", i%200) + string(rune('a'+i%26)) + time.Duration(i).String() + `": 1,`)
	}
	return b.String()
}

// FuzzWork: whatever the part contains, reading it ends without a panic, and what is accepted can be shown.
func FuzzWork(f *testing.F) {
	f.Add(someWork)
	f.Add(`{"steps": {"cycles": {"measured": 1}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		w, err := readWork(strings.NewReader(text))
		if err != nil {
			return
		}
		for lane, s := range w.Steps {
			if d := StepsCPU(s); d != nil && s.Steps < 1<<40 && s.CPU < time.Hour && *d < 0 {
				t.Errorf("lane %q: %v of %+v", lane, *d, s)
			}
		}
	})
}
