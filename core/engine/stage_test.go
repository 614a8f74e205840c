// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/recording"
	"github.com/kumiki-scheduler/kumiki/record"
)

// stage is what the worlds of random histories have in common: an engine, the pods that there are, and what is on
// its way between the two.
type stage struct {
	t      *rapid.T
	world  onStage
	engine *engine.Engine
	intake *convert.Intake
	now    record.Time
	rv     int

	pods map[string]*v1.Pod // UID -> the API server's version

	watch   []engine.Event // on their way to the engine, oldest first, per kind in order
	binds   []engine.Bind  // asked for, not yet carried out
	answers []engine.Event
	calm    bool // faults have ended

	taped  []byte // events as recorded
	played []byte // effects as they came
}

// onStage is a world on a stage.
type onStage interface {
	// send feeds the engine one event and deals with what comes of it.
	send(engine.Event)
	// compact is a pod as the engine is shown it.
	compact(*v1.Pod) *cluster.Pod
	// fresh is an engine as the world wants it.
	fresh() *engine.Engine
	// drain lets everything happen that is on its way.
	drain()
}

func newStage(t *rapid.T, world onStage) stage {
	return stage{t: t, world: world, intake: convert.NewIntake(), now: 1000 * record.Second, pods: map[string]*v1.Pod{}}
}

// restarted begins with an engine that knows nothing.
func (s *stage) restarted() {
	s.engine, s.taped, s.played = s.world.fresh(), nil, nil
	s.world.send(engine.Tick{Now: s.now})
}

// step feeds the engine one event and records both sides. After each what the queue keeps of gangs is what asking
// anew gives.
func (s *stage) step(ev engine.Event) []engine.Effect {
	effects := recordedStep(s.engine, ev)
	s.taped, s.played = recording.AppendEvent(s.taped, ev), recording.AppendEffects(s.played, effects)
	if stale := engine.Stale(s.engine); stale != "" {
		s.t.Fatalf("after %T %+v: %s", ev, ev, stale)
	}
	return effects
}

// changed gives a pod a new version and shows it to the watch.
func (s *stage) changed(p *v1.Pod) {
	s.rv++
	p.ResourceVersion = fmt.Sprint(s.rv)
	s.watch = append(s.watch, engine.PodSet{Pod: s.world.compact(p)})
}

func (s *stage) remove(p *v1.Pod) {
	delete(s.pods, string(p.UID))
	s.watch = append(s.watch, engine.PodGone{Pod: record.PodRef{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}})
}

// deliver shows the engine the next change.
func (s *stage) deliver() {
	if len(s.watch) > 0 {
		ev := s.watch[0]
		s.watch = s.watch[1:]
		s.world.send(ev)
	}
}

// answer gives the engine one of the answers, in any order.
func (s *stage) answer() {
	if len(s.answers) > 0 {
		i := rapid.IntRange(0, len(s.answers)-1).Draw(s.t, "which answer")
		ev := s.answers[i]
		s.answers = slices.Delete(s.answers, i, i+1)
		s.world.send(ev)
	}
}

// decideOrWait lets the engine decide, or time go on when there is nothing to decide.
func (s *stage) decideOrWait() (waited bool) {
	if s.engine.Ready() {
		s.world.send(engine.Cycle{})
		return false
	}
	s.now += 2 * record.Second
	s.world.send(engine.Tick{Now: s.now})
	return true
}

// checkReplay plays the tape to the slow twin and compares the effects byte for byte.
func (s *stage) checkReplay() {
	again, tape := engine.Plain(s.world.fresh()), recording.NewReader()
	var played []byte
	for _, raw := range bytes.Split(bytes.TrimSuffix(s.taped, []byte("\n")), []byte("\n")) {
		ev, ok, err := tape.Event(raw)
		if err != nil || !ok {
			s.t.Fatalf("tape: %v (event %v) in %s", err, ok, raw)
		}
		played = recording.AppendEffects(played, again.Step(ev))
	}
	if !bytes.Equal(played, s.played) {
		s.t.Fatalf("the tape plays otherwise:\n%s", diff(string(s.played), string(played)))
	}
}
