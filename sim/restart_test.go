// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"github.com/kumiki-scheduler/kumiki/core/engine"
)

// counting is a scheduler whose events are counted by kind.
type counting struct {
	Stepper
	objects, pods, binds *int
}

func (c counting) Step(ev engine.Event) []engine.Effect {
	switch ev.(type) {
	case engine.ObjectSet:
		*c.objects++
	case engine.PodSet:
		*c.pods++
	}
	effects := c.Stepper.Step(ev)
	for _, f := range effects {
		if _, is := f.(engine.Bind); is {
			*c.binds++
		}
	}
	return effects
}

// TestKilledSchedulerIsSucceeded: a scheduler is killed while two of its binds are on the way and others wait to be
// sent. The two reach the API server, the others do not; after 15 seconds a new scheduler reads the lists, places the
// rest, and binds no pod twice.
func TestKilledSchedulerIsSucceeded(t *testing.T) {
	m := DefaultModel()
	m.Call, m.InFlight, m.Decision = Always(10*time.Second), 2, time.Millisecond
	var objects, pods, binds, made int
	one := Scheduler{Name: "a", Make: func() Stepper {
		made++
		return counting{engine.New(configuration()), &objects, &pods, &binds}
	}}
	s := newStage(1, m, 4, one)
	s.w.AddClass(StorageClass{Name: "disk"})
	s.load(&Workload{Name: "w", Kind: ReplicaSet, Pod: asking("1", 0), Size: 10})
	s.w.At(5*time.Second, func() {
		if binds != 10 {
			t.Errorf("%d binds before the kill", binds)
		}
		objects, pods = 0, 0
		s.w.Kill(0, 15*time.Second)
	})
	s.w.At(19*time.Second, func() {
		if got := s.w.Tallies()[0].Binds; got != 2 || objects != 0 || pods != 0 {
			t.Errorf("after the kill: %d pods bound, %d objects and %d pods seen", got, objects, pods)
		}
	})
	s.w.At(21*time.Second, func() {
		if objects != 2 || pods != 10 || made != 2 {
			t.Errorf("scheduler %d has read %d objects and %d pods", made, objects, pods)
		}
	})
	r := s.run(10 * time.Minute)
	r.expect(t, map[string]float64{"pods.running": 10, "binds": 10, "conflicts": 0, "overcommits": 0})
	if binds != 18 {
		t.Errorf("%d binds were requested, want 10 and 8", binds)
	}
}
