// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/kumiki-scheduler/kumiki/record"
)

// TestWorkOfALoop: a report of an interval measures all Steps meanwhile, and no more of them afterwards, also if the
// reader went away before the end.
func TestWorkOfALoop(t *testing.T) {
	loopScenario(t, LoopConfig{Engine: &script{}}, func(t *testing.T, l *Loop, _ *keptEffects, _ cache.ReflectorStore) {
		total := func() record.StepCPU {
			r, err := l.Work(t.Context(), 0, false)
			if err != nil {
				t.Fatal(err)
			}
			return r.Steps["events"]
		}
		r, err := l.Work(t.Context(), 100*time.Second, false)
		if s := r.Steps["events"]; err != nil || r.Interval != 100*time.Second || s.Steps < 100 || r.NoCPU == "" && s.Measured != s.Steps {
			t.Errorf("of an interval: %v, %+v", err, r)
		}
		if r, err := l.Work(t.Context(), 10*time.Second, true); err != nil || r.Interval != 10*time.Second {
			t.Errorf("with the boundaries of plugins: %v, %+v", err, r)
		}
		gone, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := l.Work(gone, time.Hour, true); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a reader that went away: %v", err)
		}
		before := total()
		time.Sleep(160 * time.Second)
		if now := total(); now.Steps < before.Steps+160 || now.Measured > before.Measured+16 {
			t.Errorf("%d of %d Steps are measured although no recording runs", now.Measured-before.Measured, now.Steps-before.Steps)
		}
	})
}
