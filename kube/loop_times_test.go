// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/component-base/metrics"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/intake"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
)

// timedLoop runs a loop that may decide, of an engine, for a while of virtual time, and returns what it counted.
func timedLoop(t *testing.T, s *script, change func(*Loop), observers ...Observer) (seconds func(state string) float64) {
	t.Helper()
	var reg metrics.KubeRegistry
	synctest.Test(t, func(t *testing.T) {
		in := intake.NewInbox(func(string, any) {})
		in.PodStore().Replace(nil, "1")
		in.NodeStore().Replace(nil, "1")
		cfg := LoopConfig{Engine: s, Inbox: in, Executor: &keptEffects{}, DecidedAhead: 2, Observers: observers}
		cfg.Metrics, reg = counted()
		l := NewLoop(cfg)
		change(l)
		go l.Run(t.Context())
		time.Sleep(10*time.Second + 100*time.Millisecond)
	})
	return func(state string) float64 {
		return kubetest.Value(t, reg, "kumiki_loop_seconds_total", "state="+state)
	}
}

// TestTimesOfTheLoop: what the loop does and why it rests is counted, and the states add up to the time that passed.
func TestTimesOfTheLoop(t *testing.T) {
	slow := func(ev engine.Event, _ []engine.Effect) { // a step that takes a second
		if _, cycle := ev.(engine.Cycle); cycle {
			time.Sleep(time.Second)
		}
	}
	nothing := func(*Loop) {}
	decides := func(l *Loop) { l.Decide(true) }
	for name, c := range map[string]struct {
		ready    int
		change   func(*Loop)
		observer Observer
		want     map[string]float64 // state -> seconds
	}{
		"nothing to do":  {0, decides, nil, map[string]float64{"idle": 10}},
		"limited":        {5, decides, nil, map[string]float64{"limited": 10}},
		"does not lead":  {5, nothing, nil, map[string]float64{"held": 10}},
		"paused":         {5, func(l *Loop) { l.Decide(true); l.Hold(true) }, nil, map[string]float64{"held": 10}},
		"slow observers": {2, decides, slow, map[string]float64{"observer": 2, "idle": 8}},
	} {
		t.Run(name, func(t *testing.T) {
			var observers []Observer
			if c.observer != nil {
				observers = append(observers, c.observer)
			}
			seconds := timedLoop(t, &script{ready: c.ready}, c.change, observers...)
			for state, want := range c.want { // order: each alone
				if got := seconds(state); got < want-0.03 || got > want+0.03 {
					t.Errorf("%s for %v s, want %v s", state, got, want)
				}
			}
		})
	}
}
