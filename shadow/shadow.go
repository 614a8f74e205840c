// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"fmt"
	"slices"
	"time"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/question"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Config makes a Shadow.
type Config struct {
	// Engine has one profile, whose name is Scheduler, and is empty.
	Engine *engine.Engine
	// Scheduler is the scheduler name whose binds are judged. Profile is the name of the profile as it was configured.
	Scheduler, Profile string
	// Clock returns the time since some moment, for measuring; it has no part in any verdict.
	Clock func() time.Duration
}

// Shadow is an engine that judges and does not decide. It belongs to the goroutine of the loop.
type Shadow struct {
	*engine.Engine
	inspector question.Inspector // of the engine
	cfg       Config
	started   record.Time // of the first tick
	synced    bool

	waiting map[cluster.UID]*waiting // pod -> since it was observed pending
	changed map[string]record.Time   // node -> when it last changed after the initial lists
	doubts  []*doubt                 // oldest first

	pods              record.ShadowPods
	all, quiet        agreement
	rejected, refused dispute
	ours, theirs      distribution           // nanoseconds
	examples          []record.ShadowExample // worst first
}

// waiting is a pending pod.
type waiting struct {
	// seen is when it was first observed without gates, and revision that of the store then.
	seen     record.Time
	revision uint64
	gated    bool
	// early pods were pending before the shadow started: since when is unknown.
	early     bool
	condition cluster.Condition
	// disputed pods have been counted as refused by the other scheduler; each counts once.
	disputed bool
}

// New returns an empty Shadow.
func New(cfg Config) *Shadow {
	return &Shadow{
		Engine: cfg.Engine, inspector: question.New(cfg.Engine.View()), cfg: cfg,
		waiting: map[cluster.UID]*waiting{}, changed: map[string]record.Time{},
	}
}

// Ready reports whether there is something to decide: never.
func (s *Shadow) Ready() bool { return false }

// Step passes an event on to the engine and judges what it shows about the other scheduler.
func (s *Shadow) Step(ev engine.Event) []engine.Effect {
	switch ev := ev.(type) {
	case engine.Cycle:
		panic("shadow: asked to decide")
	case engine.PodSet:
		if ev.Pod.NodeName != "" && s.inspector.Takes(ev.Pod.Spec.SchedulerName) {
			s.bound(ev.Pod)
		}
	case engine.PodGone:
		s.gone(cluster.UID(ev.Pod.UID))
	case engine.NodeSet:
		s.nodeChanged(ev.Node.Name)
	case engine.NodeGone:
		delete(s.changed, ev.Name)
	}
	effects := s.Engine.Step(ev)
	switch ev := ev.(type) {
	case engine.PodSet:
		if ev.Pod.NodeName == "" && s.inspector.Takes(ev.Pod.Spec.SchedulerName) {
			s.pending(ev.Pod)
		}
	case engine.Synced:
		s.synced = true
	case engine.Tick:
		if s.started == 0 {
			s.started = s.Now()
		}
		s.recheckDisputes()
	}
	return effects
}

func (s *Shadow) nodeChanged(name string) {
	if s.synced {
		s.changed[name] = s.Now()
	}
}

func (s *Shadow) revision() uint64 { return s.Snapshot().Revision() }

// pending records a waiting pod, and the other scheduler's condition on it.
func (s *Shadow) pending(p *cluster.Pod) {
	if _, _, _, placed := s.Snapshot().PodOn(p.UID); placed {
		return // an old version arrives after the bound one
	}
	w, gated := s.waiting[p.UID], len(p.Spec.Gates) > 0
	if w == nil {
		w = &waiting{early: !s.synced, gated: true}
		s.waiting[p.UID] = w
	}
	if w.gated {
		w.seen, w.revision = s.Now(), s.revision()
	}
	w.gated = gated
	if p.Condition == w.condition {
		return
	}
	w.condition = p.Condition
	if p.Condition.Reason == engine.ReasonUnschedulable && s.synced && !gated && !p.Terminating {
		s.refuse(p, w)
	}
}

// tried reports whether the other scheduler has tried the pod without placing it.
func (w *waiting) tried() bool {
	return w.condition.Reason == engine.ReasonUnschedulable || w.condition.Reason == engine.ReasonError
}

const (
	// fewWaiting is the number of pending pods up to which isQuiet checks the others, and fewTried the number of
	// unsuccessfully tried pods up to which it judges them.
	fewWaiting = 256
	fewTried   = 8
)

// isQuiet reports whether the other scheduler certainly decided on the state that is known here: nothing has changed
// since the pod was observed pending, and no other pod can have been decided and not observed as bound.
func (s *Shadow) isQuiet(uid cluster.UID, w *waiting) bool {
	if w.early || w.revision != s.revision() || len(s.waiting) > fewWaiting {
		return false
	}
	var tried []cluster.UID
	for other, o := range s.waiting { // order: all must be at rest
		switch {
		case other == uid || o.gated:
		case !o.tried() || len(tried) == fewTried:
			return false
		default:
			tried = append(tried, other)
		}
	}
	return !slices.ContainsFunc(tried, func(other cluster.UID) bool {
		// It may have been tried again since, if it fits by now.
		j, known := s.judge(other, "")
		return known && j.Feasible > 0
	})
}

// bound judges the other scheduler's choice, which the engine has not received yet.
func (s *Shadow) bound(p *cluster.Pod) {
	w := s.waiting[p.UID]
	if w == nil {
		if _, _, _, known := s.Snapshot().PodOn(p.UID); !known && s.synced {
			s.pods.Unseen++
		}
		return
	}
	defer delete(s.waiting, p.UID)
	if i := s.findDoubt(p.UID); i >= 0 {
		s.refused.settled++ // the other scheduler has found a node after all
		s.doubts = slices.Delete(s.doubts, i, i+1)
	}
	if !s.synced {
		return
	}
	quiet := s.isQuiet(p.UID, w)
	j, known := s.judge(p.UID, p.NodeName)
	if !known {
		panic(fmt.Sprintf("shadow: pod %s (%s) waits here and not in the engine", p.Key(), p.UID))
	}
	s.pods.Judged++
	if !w.early && !w.tried() {
		s.theirs.add(int64(s.Now() - w.seen))
	}
	switch j.Match {
	case record.Unjudged:
		s.pods.Unjudged++
	case record.Rejected:
		s.reject(j, quiet)
	default:
		s.count(j, quiet)
	}
}

// judge calls the engine and measures how long it takes.
func (s *Shadow) judge(uid cluster.UID, node string) (record.Judgement, bool) {
	began := s.cfg.Clock()
	j, known := s.inspector.CompareBind(uid, node)
	if known && node != "" {
		s.ours.add(int64(s.cfg.Clock() - began))
	}
	return j, known
}

// count counts a judgement as final.
func (s *Shadow) count(j record.Judgement, quiet bool) {
	s.all.add(&j)
	if quiet {
		s.quiet.add(&j)
	}
	if j.Match == record.Worse {
		s.show(record.ShadowExample{Kind: record.ShadowWorse, Quiet: quiet, Judgement: j})
	}
}

// gone removes a pod that was deleted or has ended.
func (s *Shadow) gone(uid cluster.UID) {
	delete(s.waiting, uid)
	s.lose(uid)
}
