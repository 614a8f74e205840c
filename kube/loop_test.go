// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/intake"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// script is an engine that has so many units ready and binds one in each cycle. It records the events that it received.
type script struct {
	ready int
	log   []string
	ticks []record.Time
	onAny func(engine.Event) []engine.Effect
}

func (s *script) Ready() bool { return s.ready > 0 }

func (s *script) InFlightEvents() int { return 0 }

func (s *script) Step(ev engine.Event) []engine.Effect {
	switch ev := ev.(type) {
	case engine.Tick:
		s.ticks = append(s.ticks, ev.Now)
		return nil
	case engine.Cycle:
		s.ready--
		s.log = append(s.log, "cycle")
		return []engine.Effect{engine.Bind{Pod: record.PodRef{Namespace: "ns", Name: "p", UID: fmt.Sprint(s.ready)}}}
	default:
		s.log = append(s.log, strings.TrimPrefix(fmt.Sprintf("%T", ev), "message."))
	}
	if s.onAny != nil {
		return s.onAny(ev)
	}
	return nil
}

// runs counts repeats: a a b becomes "a*2 b".
func (s *script) runs() string {
	var out []string
	for i := 0; i < len(s.log); {
		n := 1
		for i+n < len(s.log) && s.log[i+n] == s.log[i] {
			n++
		}
		word := s.log[i]
		if n > 1 {
			word = fmt.Sprintf("%s*%d", word, n)
		}
		out = append(out, word)
		i += n
	}
	return strings.Join(out, " ")
}

// loopScenario runs a loop on an opened inbox until the scenario ends.
func loopScenario(t *testing.T, cfg LoopConfig, scenario func(t *testing.T, l *Loop, kept *keptEffects, pods cache.ReflectorStore)) {
	synctest.Test(t, func(t *testing.T) {
		in := intake.NewInbox(func(object string, problem any) { t.Errorf("%s: %v", object, problem) })
		pods := in.PodStore()
		pods.Replace(nil, "1")
		in.NodeStore().Replace(nil, "1")
		kept := &keptEffects{}
		cfg.Inbox, cfg.Executor = in, kept
		cfg.Metrics, _ = counted()
		l := NewLoop(cfg)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			l.Run(ctx)
		}()
		synctest.Wait()
		scenario(t, l, kept, pods)
		cancel()
		<-ended
		if err := l.Ask(t.Context(), func() {}); !errors.Is(err, ErrLoopEnded) {
			t.Errorf("asking a loop that has ended: %v", err)
		}
	})
}

func TestBatchesAndCyclesAlternateByCount(t *testing.T) {
	s := &script{}
	loopScenario(t, LoopConfig{Engine: s, Batch: 3, Cycles: 2}, func(t *testing.T, l *Loop, _ *keptEffects, pods cache.ReflectorStore) {
		l.Ask(t.Context(), func() { s.log, s.ready = nil, 7 })
		for i := range 8 {
			pods.Add(numbered(i, "1"))
		}
		synctest.Wait()
		if len(s.log) != 8 {
			t.Fatalf("a loop that may not decide did %s", s.runs())
		}
		l.Ask(t.Context(), func() { s.log = nil })
		var list []any // so that all come at once
		for i := range 8 {
			list = append(list, numbered(i, "2"))
		}
		l.deciding.Store(true)
		pods.Replace(list, "2")
		synctest.Wait()
		if got, want := s.runs(), "PodSet*3 cycle*2 PodSet*3 cycle*2 PodSet*2 cycle*3"; got != want {
			t.Errorf("the loop did %s, want %s", got, want)
		}
	})
}

// TestDecisionsStopWhenTooManyBindsHaveNoOutcome and go on with the answers.
func TestDecisionsStopWhenTooManyBindsHaveNoOutcome(t *testing.T) {
	s := &script{}
	loopScenario(t, LoopConfig{Engine: s, DecidedAhead: 5}, func(t *testing.T, l *Loop, kept *keptEffects, _ cache.ReflectorStore) {
		l.Ask(t.Context(), func() { s.ready = 12 })
		l.Decide(true)
		synctest.Wait()
		if len(kept.binds) != 5 {
			t.Fatalf("%d binds without an outcome, want 5", len(kept.binds))
		}
		for range 3 {
			l.Answer(engine.BindDone{})
		}
		synctest.Wait()
		if len(kept.binds) != 8 {
			t.Errorf("%d binds after 3 answers, want 8", len(kept.binds))
		}
	})
}

// TestWritesCountUntilTheyAreAnswered: what is prepared is decided as much as what is bound, and its answer is what the
// engine binds on.
func TestWritesCountUntilTheyAreAnswered(t *testing.T) {
	s := &script{}
	pod := record.PodRef{Namespace: "ns", Name: "p", UID: "u"}
	s.onAny = func(ev engine.Event) []engine.Effect {
		switch ev := ev.(type) {
		case engine.PodSet:
			return []engine.Effect{engine.Prepare{Pod: pod, Decision: 7}}
		case engine.WritesDone:
			if ev.Message != "" {
				return []engine.Effect{engine.Release{Pod: pod}}
			}
			return []engine.Effect{engine.Bind{Pod: pod}}
		}
		return nil
	}
	loopScenario(t, LoopConfig{Engine: s, DecidedAhead: 1}, func(t *testing.T, l *Loop, kept *keptEffects, pods cache.ReflectorStore) {
		decideWith(t, l, s, pods)
		if len(kept.prepares) != 1 || kept.prepares[0].Decision != 7 || len(kept.binds) != 0 {
			t.Fatalf("%d prepared, %d bound, want one prepared and nothing decided beside it", len(kept.prepares), len(kept.binds))
		}
		l.Answer(engine.WritesDone{Pod: pod, Decision: 7})
		synctest.Wait()
		if len(kept.binds) != 1 {
			t.Fatalf("%d binds after the writes, want 1", len(kept.binds))
		}
		l.Answer(engine.BindDone{Pod: pod})
		synctest.Wait()
		if len(kept.binds) != 2 {
			t.Errorf("%d binds, want that of the next decision too", len(kept.binds))
		}
		l.Answer(engine.WritesDone{Pod: pod, Message: "no"})
		synctest.Wait()
		if len(kept.releases) != 1 {
			t.Errorf("%d releases, want 1", len(kept.releases))
		}
	})
}

// decideWith lets a scripted engine, which receives a pod first, decide once.
func decideWith(t *testing.T, l *Loop, s *script, pods cache.ReflectorStore) {
	pods.Add(kubetest.PendingPod("p", "u"))
	synctest.Wait()
	l.Ask(t.Context(), func() { s.ready = 1 })
	l.Decide(true)
	synctest.Wait()
}

// TestEvictionsCountUntilTheyAreAnswered: no decision is made while too many are under way. They are no pods on the way
// to a node.
func TestEvictionsCountUntilTheyAreAnswered(t *testing.T) {
	s := &script{}
	s.onAny = func(ev engine.Event) []engine.Effect {
		if _, is := ev.(engine.PodSet); is {
			return []engine.Effect{engine.Evict{Decision: 7}}
		}
		return nil
	}
	loopScenario(t, LoopConfig{Engine: s, DecidedAhead: 1}, func(t *testing.T, l *Loop, kept *keptEffects, pods cache.ReflectorStore) {
		decideWith(t, l, s, pods)
		if len(kept.evicts) != 1 || kept.evicts[0].Decision != 7 || len(kept.binds) != 0 || l.unanswered != 0 {
			t.Fatalf("%d evictions, %d binds, %d pods on their way", len(kept.evicts), len(kept.binds), l.unanswered)
		}
		l.Answer(engine.EvictDone{Decision: 7})
		synctest.Wait()
		if len(kept.binds) != 1 || l.unanswered != 1 || l.evicting != 0 {
			t.Errorf("%d binds, %d pods on their way, %d evictions", len(kept.binds), l.unanswered, l.evicting)
		}
	})
}

// TestNothingIsDecidedWhileAnotherMayLead, although the election has not noticed yet.
func TestNothingIsDecidedWhileAnotherMayLead(t *testing.T) {
	s := &script{}
	loopScenario(t, LoopConfig{Engine: s}, func(t *testing.T, l *Loop, kept *keptEffects, _ cache.ReflectorStore) {
		leads := false
		l.Ask(t.Context(), func() { s.ready, l.lead = 3, func() bool { return leads } })
		l.Decide(true)
		synctest.Wait()
		if n := kept.bound(); n != 0 {
			t.Fatalf("%d decisions without the lease", n)
		}
		l.Ask(t.Context(), func() { leads = true })
		time.Sleep(time.Minute)
		if n := kept.bound(); n != 3 {
			t.Errorf("%d decisions with the lease, want 3", n)
		}
	})
}

// TestTheEngineIsWokenWhenItAsked and at least once a second, and its time never goes back.
func TestTheEngineIsWokenWhenItAsked(t *testing.T) {
	s := &script{}
	loopScenario(t, LoopConfig{Engine: s}, func(t *testing.T, l *Loop, _ *keptEffects, pods cache.ReflectorStore) {
		var asked record.Time
		l.Ask(t.Context(), func() {
			s.onAny = func(engine.Event) []engine.Effect {
				asked = l.now() + 300*record.Second/1000
				return []engine.Effect{engine.Wake{At: asked}}
			}
			s.ticks = nil
		})
		pods.Add(kubetest.PendingPod("p", "u1"))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := len(s.ticks); n < 11 || n > 20 {
			t.Errorf("%d ticks in 10 s, want about one a second", n)
		}
		met := false
		for i, at := range s.ticks {
			met = met || at == asked
			if i > 0 && at < s.ticks[i-1] {
				t.Errorf("tick %d went back from %d to %d", i, s.ticks[i-1], at)
			}
		}
		if !met {
			t.Errorf("no tick at %d among %v", asked, s.ticks)
		}
		if l.Stalled() > time.Second {
			t.Errorf("the loop says it has stood still for %s", l.Stalled())
		}
	})
}

// TestAnAskIsAnsweredOrTakenBack: once Ask has returned an error, its function does not run.
func TestAnAskIsAnsweredOrTakenBack(t *testing.T) {
	s := &script{}
	loopScenario(t, LoopConfig{Engine: s}, func(t *testing.T, l *Loop, _ *keptEffects, pods cache.ReflectorStore) {
		blocked, release := make(chan struct{}), make(chan struct{})
		go l.Ask(context.Background(), func() { close(blocked); <-release })
		<-blocked
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Ask(ctx, func() { t.Error("ran after Ask had returned") }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("asking a busy loop: %v", err)
		}
		close(release)
		synctest.Wait()
	})
}

// numbered is one of many pods, in a version.
func numbered(i int, version string) *v1.Pod {
	p := kubetest.PendingPod(fmt.Sprint("p", i), types.UID(fmt.Sprint("u", i)))
	p.ResourceVersion = version
	return p
}
