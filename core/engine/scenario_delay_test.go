// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// delayingEngine is one that evicts no pods for a unit before it has been unschedulable for a while.
func (s robbing) delayingEngine(args []string) *engine.Engine {
	how := preempt.Config{After: record.Time(s.number(args[0])) * record.Second}
	var more []engine.Profile
	for _, a := range args[1:] {
		switch seconds, other := strings.CutPrefix(a, "other="); {
		case other:
			p := locked()
			p.Name, p.Preemption = "other", &preempt.Config{After: record.Time(s.number(seconds)) * record.Second}
			more = append(more, p)
		case a == "sync":
			how.Sync = true
		case a == "strict":
			how.Strict = true
		default:
			s.t.Fatalf("after: %q", a)
		}
	}
	p := locked()
	p.Preemption = &how
	return engine.New(engine.Config{
		Seed: 1, Profiles: append(more, p), Less: basic.PrioritySort{},
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second,
	})
}

// wouldEvict prints which pods would be evicted for a pod or a gang, and when.
func (s robbing) wouldEvict(name string) {
	var r *record.Preemption
	if gang, is := strings.CutPrefix(name, "gang/"); is {
		report, known := inspect(s.engine).ExplainGang("default", gang)
		if !known {
			s.t.Fatalf("gang %s is not known", gang)
		}
		r = report.Preemption
	} else {
		report, known := inspect(s.engine).ExplainPod("default", name)
		if !known {
			s.t.Fatalf("pod %s is not known", name)
		}
		r = report.Preemption
	}
	switch {
	case r == nil:
		fmt.Fprintf(&s.out, "  %s needs no evictions\n", name)
	case r.Node == "":
		fmt.Fprintf(&s.out, "  %s evicts no pod: %s\n", name, r.Message)
	default:
		fmt.Fprintf(&s.out, "  %s would evict %v from %s", name, victimNames(r), r.Node)
		if r.DelayedUntil != 0 {
			fmt.Fprintf(&s.out, ", at %ds at the earliest", r.DelayedUntil/record.Second)
		}
		fmt.Fprintln(&s.out)
	}
}

// anyDelay is how long the units of a history wait for new nodes; 0 in half of them.
func anyDelay(t *rapid.T) record.Time {
	return rapid.SampledFrom([]record.Time{0, 0, 3 * record.Second, 7 * record.Second}).Draw(t, "delay")
}

// checkDelay: no pod is evicted for a pod by itself before that has been unschedulable for the time of the delay.
func (a *arena) checkDelay(f engine.Evict) {
	boss := a.pods[f.For.UID]
	if a.how.After == 0 || boss == nil || f.Gang != "" || f.Undo || f.Finish || len(f.Victims) == 0 {
		return
	}
	at := slices.IndexFunc(boss.Status.Conditions, isScheduled)
	if at < 0 {
		a.t.Fatalf("pod %s evicts %v in its first attempt", boss.Name, named(f.Victims))
	}
	since, here := a.rejected[f.For.UID]
	if !here {
		since = record.Time(boss.Status.Conditions[at].LastTransitionTime.UnixNano())
	}
	if a.now < since+a.how.After {
		a.t.Fatalf("pod %s evicts %v at %d, and is unschedulable since %d", boss.Name, named(f.Victims), a.now, since)
	}
}

// TestAnExtenderIsNotAskedDuringADelay: an extender is asked which victims it allows when pods are evicted, and not
// while that is delayed.
func TestAnExtenderIsNotAskedDuringADelay(t *testing.T) {
	extender := &chooser{answer: func(of []place.ForeignVictims) ([]place.ForeignVictims, error) { return of, nil }}
	prof := locked()
	prof.Preemption, prof.Foreign = &preempt.Config{After: 30 * record.Second}, extender
	e := engine.New(engine.Config{Seed: 1, Profiles: []engine.Profile{prof}, Less: basic.PrioritySort{}})
	s := robbing{&story{t: t, engine: e, intake: convert.NewIntake(), pods: map[string]*v1.Pod{}}}
	s.play([]byte(`node n1 cpu=2
pod a cpu=2 priority=1 on=n1
synced
tick 1000
pod boss cpu=2 priority=9
cycle
`))
	if len(extender.asked) != 0 {
		t.Fatalf("asked during the delay: %q", extender.asked)
	}
	out := string(s.play([]byte("tick 1030\ncycle\n")))
	if len(extender.asked) != 1 || !strings.Contains(out, "evict [a] from n1") {
		t.Fatalf("asked %q at the end of the delay:\n%s", extender.asked, out)
	}
}
