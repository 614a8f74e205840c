// SPDX-License-Identifier: Apache-2.0

package kumiki

import (
	"fmt"
	"testing"

	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/sampling"
)

// engineRuns plays count scenarios and returns the first difference.
func engineRuns(o *oracle.Oracle, seed uint64, count int, total *EngineRun) string {
	for n := range count {
		s := gen.Make(seed+1000, n, gen.Sizes{Pods: 40, AtMost: 12})
		st, err := NewEngineRun(o, s, seed, n)
		if err != nil {
			return err.Error()
		}
		d := st.Play(300)
		st.Close()
		if d != "" {
			return fmt.Sprintf("run %d: %s", n, d)
		}
		total.Decisions += st.Decisions
		total.Placed += st.Placed
		total.Unfit += st.Unfit
		total.Failed += st.Failed
		total.Refused += st.Refused
		total.Written += st.Written
	}
	return ""
}

// TestConformanceEngine holds every decision of whole runs against upstream: what
// was assumed, confirmed, forgotten and tried again must add up to the cluster
// that upstream sees.
func TestConformanceEngine(t *testing.T) {
	o := oracle.New()
	defer o.Close()
	var total EngineRun
	if d := engineRuns(o, sampling.Seed(t), max(sampling.Cases(t, defaultCases)/60, 5), &total); d != "" {
		t.Fatal(d)
	}
	t.Logf("%d decisions: %d placed, %d fit nowhere, %d failed, %d with writes refused, %d with writes", total.Decisions, total.Placed, total.Unfit, total.Failed, total.Refused, total.Written)
	if total.Placed == 0 || total.Unfit == 0 {
		t.Error("the runs are too tame")
	}
}
