// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"regexp"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/plugins/resources"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// TestSessions runs testdata/sessions/*.txt, stories of a scheduler that works in sessions of 5 seconds on nodes of
// one slot each. They are written as those of TestPreemption, with these words more. Only decisions, binds,
// evictions and wakes are printed.
//
//	session                 cycles as long as there is something to do
//	bound POD...            the binds of these pods succeed, and the watch shows it
//	evicted POD DECISION VICTIM...   the victims of a preemptor are deleted and go
//	after SECONDS           starts anew: no pod is evicted for a unit that has been unschedulable for a shorter time
func TestSessions(t *testing.T) {
	playStories(t, "testdata/sessions/*.txt", func(t *testing.T, script []byte) []byte { return newSitting(t).play(script) })
}

// sitting is a story of sessions.
type sitting struct {
	robbing
	at map[string]string // pod -> the node it was last decided for
}

func newSitting(t *testing.T) sitting {
	return sitting{robbing{&story{t: t, engine: sessionEngine(5 * record.Second), intake: convert.NewIntake(), pods: map[string]*v1.Pod{}}}, map[string]string{}}
}

// sessionEngine works in sessions if period is above 0, on nodes of one slot each.
func sessionEngine(period record.Time) *engine.Engine {
	return preemptingSessionEngine(period, preempt.Config{})
}

func preemptingSessionEngine(period record.Time, how preempt.Config) *engine.Engine {
	p := locked()
	for i, f := range p.Filters {
		if f.Name() == resources.NodeResourcesFitName {
			p.Filters[i] = resources.NodeSlots{}
		}
	}
	p.Wakers = append(p.Wakers, resources.NodeSlots{})
	p.Preemption = &how
	return engine.New(engine.Config{
		Seed: 1, Profiles: []engine.Profile{p}, Less: basic.PrioritySort{}, SessionPeriod: period,
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second,
	})
}

func (s sitting) play(script []byte) []byte { return s.playBy(script, s.tell) }

func (s sitting) tell(verb string, args []string) {
	switch verb {
	case "node":
		s.stepped(engine.NodeSet{Node: s.intake.Node(s.node(args))})
	case "node-gone":
		s.stepped(engine.NodeGone{Name: args[0]})
	case "pod":
		rest, gang, bound := gangWords(args)
		p := s.intake.Pod(s.victim(rest))
		p.Gang, p.Bound = gang, bound
		s.stepped(engine.PodSet{Pod: p})
	case "tick":
		s.stepped(engine.Tick{Now: record.Time(s.number(args[0])) * record.Second})
	case "synced":
		s.stepped(engine.Synced{})
	case "cycle":
		s.stepped(engine.Cycle{})
	case "session":
		for n := 0; s.engine.Ready(); n++ {
			if n == 100 {
				panic("the session does not end")
			}
			s.stepped(engine.Cycle{})
		}
	case "after":
		after := record.Time(s.number(args[0])) * record.Second
		s.engine = preemptingSessionEngine(5*record.Second, preempt.Config{After: after})
	case "bound":
		for _, name := range args {
			s.bind(name)
		}
	case "evicted":
		s.stepped(engine.EvictDone{For: s.ref(args[:1]), Decision: uint64(s.number(args[1]))})
		for _, v := range args[2:] {
			s.stepped(engine.PodGone{Pod: s.ref([]string{v})})
		}
	case "pod-gone":
		s.stepped(engine.PodGone{Pod: s.ref(args)})
	case "bind-failed":
		s.stepped(engine.BindDone{Pod: s.ref(args[:1]), Outcome: engine.BindFailed, Message: "refused"})
	default:
		s.robbing.tell(verb, args)
	}
}

// tried is how many sets of victims a search looked at, which is not what these stories are about.
var tried = regexp.MustCompile(` \(\d+ tried\)`)

// bind lets the bind of a pod succeed.
func (s sitting) bind(name string) {
	p := s.pods[name].DeepCopy()
	p.Spec.NodeName = s.at[name]
	s.pods[name] = p
	compact := s.intake.Pod(p)
	if old := s.known(name); old != nil {
		compact.Gang = old.Gang
		if old.Gang != nil {
			compact.Bound = &cluster.BoundMark{Quorum: 1}
		}
	}
	s.stepped(engine.BindDone{Pod: s.ref([]string{name}), Node: s.at[name], Outcome: engine.Bound})
	s.stepped(engine.PodSet{Pod: compact})
}

// known is a pod as the engine knows it on its node.
func (s sitting) known(name string) *cluster.Pod {
	p, _, _, _ := s.engine.Snapshot().PodOn(cluster.UID(name))
	return p
}

func (s sitting) stepped(ev engine.Event) {
	for _, f := range recordedStep(s.engine, ev) {
		switch f := f.(type) {
		case engine.Bind:
			s.at[f.Pod.Name] = f.Node
		case engine.Decided, engine.Evict, engine.Wake, engine.Trouble:
		default:
			continue
		}
		fmt.Fprintln(&s.out, "  "+tried.ReplaceAllString(describeEviction(f), ""))
	}
}
