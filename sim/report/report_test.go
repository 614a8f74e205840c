// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/sim"
)

// results makes runs of one metric: by profile, then by seed. NaN is a run without a value.
func results(values ...float64) (list []sim.Result) {
	for _, v := range values {
		m := sim.Metric{Name: "m", Unit: "s"}
		if !math.IsNaN(v) {
			m.Value = &v
		}
		list = append(list, sim.Result{Metrics: []sim.Metric{m}})
	}
	return list
}

// TestPairedDifference: the seeds differ much, the profiles by 1, 2 and 3 under the same seed. The interval is that of
// the differences: 2 ± 4.303·1/√3.
func TestPairedDifference(t *testing.T) {
	r := New("s", []string{"a", "b"}, []uint64{1, 2, 3}, results(10, 1000, 100, 11, 1002, 103))
	c := r.Rows[0].Cells[1]
	if c.Difference == nil || c.Half == nil || math.Abs(*c.Difference-2) > 1e-9 || math.Abs(*c.Half-2.4843) > 1e-3 {
		t.Errorf("%+v", c)
	}
	if a := r.Rows[0].Cells[0]; a.Difference != nil || *a.Mean != 370 {
		t.Errorf("the first profile: %+v", a)
	}
}

// TestRunsWithoutValue: they count in neither profile's difference, and the table says how many there are.
func TestRunsWithoutValue(t *testing.T) {
	r := New("s", []string{"a", "b"}, []uint64{1, 2}, results(1, math.NaN(), 4, 5))
	if c := r.Rows[0].Cells[1]; *c.Difference != 3 || c.Half != nil {
		t.Errorf("%+v", c)
	}
	var out bytes.Buffer
	if err := r.Write(&out, "table"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "1 s (1 of 2 runs)") {
		t.Error(out.String())
	}
}

// TestPageEscapes: names of a scenario are text on the page.
func TestPageEscapes(t *testing.T) {
	r := New("<script>x</script>", []string{"a"}, []uint64{1}, results(1))
	var out bytes.Buffer
	if err := r.Write(&out, "html"); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "<script>") {
		t.Error(out.String())
	}
}
