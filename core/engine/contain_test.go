// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/record"
)

// bomb is a filter that panics when it meets a pod that asks for the node selector "bomb".
type bomb struct{ with any }

func (bomb) Name() string { return "Bomb" }

func (bomb) Reads() plugin.Reads { return plugin.ReadsNode }

func (b bomb) PrepareFilter(_ cluster.Snapshot, p *cluster.Pod) plugin.FilterPlan {
	if _, ok := p.Spec.NodeSelector["bomb"]; ok {
		panic(b.with)
	}
	return plugin.FilterPlan{}
}

func mined(t *testing.T, with any) *story {
	s := newStory(t)
	profile := engine.DefaultProfile("default-scheduler")
	profile.Filters = append([]plugin.Filter{bomb{with}}, profile.Filters...)
	s.engine = engine.New(engine.Config{
		Seed: 1, Profiles: []engine.Profile{profile}, Less: basic.PrioritySort{},
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second,
	})
	return s
}

// TestOneBadPodHarmsNobodyElse: a pod whose handling panics is set aside with an event and a condition, its
// neighbours are placed, no timeout tries it again, and a change of the pod does. Mutant: contain without SetAside
// (the pod is lost), or with Requeue (it panics without end).
func TestOneBadPodHarmsNobodyElse(t *testing.T) {
	s := mined(t, "boom")
	got := string(s.play([]byte(`node n1 cpu=4
synced
tick 10
pod bad select.bomb=yes
pod good cpu=1
cycle 2
tick 1000
queue
pod bad version=2
tick 1010
cycle
queue
`)))
	for _, want := range []string{
		"trouble default/bad: panic while handling engine.Cycle: boom",
		"decision 1: bad set-aside",
		"event bad Warning FailedScheduling Scheduling: set aside until the pod changes: handling it panicked: boom",
		"condition bad SchedulerError: set aside until the pod changes: handling it panicked: boom",
		"bind good to n1",
		"active 0, in flight 0, backoff 0, unschedulable 1, gated 0; events kept 0",
		"bind bad to n1",
		"active 0, in flight 0, backoff 0, unschedulable 0, gated 0; events kept 0",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the story lacks %q:\n%s", want, got)
		}
	}
	again := mined(t, "boom")
	again.play([]byte("node n1 cpu=4\nsynced\ntick 10\npod bad select.bomb=yes\ncycle\n"))
	why, _ := inspect(again.engine).ExplainPod("default", "bad")
	if why.Fit == nil || !strings.Contains(why.Fit.PreFilterReason, "boom") {
		t.Errorf("asking why the bad pod waits gives %+v", why.Fit)
	}
	if strings.Count(got, "trouble") != 1 {
		t.Errorf("the bad pod was tried again:\n%s", got)
	}
}

// TestABrokenLedgerStopsTheProcess: what the store says of itself is not contained.
// Mutant: recover without a look at what was thrown.
func TestABrokenLedgerStopsTheProcess(t *testing.T) {
	s := mined(t, cluster.Broken("sums do not add up"))
	defer func() {
		if broken, ok := recover().(cluster.Broken); !ok || !strings.Contains(broken.Error(), "sums do not add up") {
			t.Errorf("the step went on: %v", broken)
		}
	}()
	s.play([]byte("node n1 cpu=4\nsynced\ntick 10\npod bad select.bomb=yes\ncycle\n"))
}
