// SPDX-License-Identifier: Apache-2.0

package kumiki

import (
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/conformance/diff"
	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/queue"
	"github.com/kumiki-scheduler/kumiki/conformance/release"
	"github.com/kumiki-scheduler/kumiki/conformance/sampling"
)

// emulations are the flags under which both sides are compared again. The emulated version has a fifth of the cases,
// single gates a twentieth. NodeDeclaredFeatures is not among them: InPlacePodLevelResourcesVerticalScaling, which
// kumiki has fixed on, cannot be on without it.
var emulations = []struct {
	share int
	flags []string
}{
	{5, []string{"--emulated-version=1.36"}},
	{20, []string{"--feature-gates=StorageCapacityScoring=false"}},
	{20, []string{"--feature-gates=VolumeLimitScaling=false"}},
}

// TestConformanceEmulated compares decisions, hints, queues and whole runs with upstream's gates set otherwise.
func TestConformanceEmulated(t *testing.T) {
	for _, e := range emulations {
		t.Run(strings.Join(e.flags, " "), func(t *testing.T) {
			release.Emulate(t, e.flags...)
			up, all := upstream(t), sampling.Cases(t, defaultCases)/e.share
			r, err := diff.Run(up, Subject{}, diff.Options{Seed: sampling.Seed(t), Cases: max(all, 50),
				Sizes: gen.DefaultSizes, MaxFailures: 4})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d cases, %d clusters, %d differences", r.Cases, r.Clusters, len(r.Failures))
			for _, f := range r.Failures {
				t.Errorf("%s: %s", f.Scenario.Name, f.Difference)
			}
			if d := hints(sampling.Seed(t), max(all/60, 5), map[string]int{}); d != "" {
				t.Errorf("hints: %s", d)
			}
			q := queue.Run(NewQueue, queue.Options{Seed: sampling.Seed(t), Histories: max(all/120, 2), Steps: 300})
			if q.Failure != nil {
				t.Errorf("queue: %s", q.Difference)
			}
			o := oracle.New()
			defer o.Close()
			if d := engineRuns(o, sampling.Seed(t), max(all/120, 2), &EngineRun{}); d != "" {
				t.Errorf("engine: %s", d)
			}
		})
	}
}
