// SPDX-License-Identifier: Apache-2.0

package regret

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/question"
	"github.com/kumiki-scheduler/kumiki/record"
)

// AtOnce bounds the decisions that are compared at the same time, each with an engine.
const AtOnce = 16

// mostExamples bounds Regret.Worst.
const mostExamples = 10

// Reasons why decisions are not compared.
const (
	skippedForeign  = "an extender or a hosted plugin takes part in scores, and is not called"
	skippedGone     = "the pod was gone before the outcome of the bind"
	skippedEnd      = "the recording ends before the outcome of the bind"
	skippedAtOnce   = "more decisions were open at once than are compared"
	skippedSample   = "not in the sample"
	skippedFailed   = "the engine could not be resumed, or its search failed"
	skippedUnranked = "the node was not among those that fit when the pod is judged by itself"
)

// Judge compares the decisions of one replay.
type Judge struct {
	every   int
	seen    int // decisions that placed something
	from    record.Time
	to      record.Time
	open    []*open
	regret  record.Regret
	skipped map[string]int // reason -> decisions
	shares  map[record.RegretCause]*record.RegretShare
}

// open is a decision whose bind has no outcome.
type open struct {
	decision uint64
	pod      record.PodRef
	node     string
	engine   *engine.Engine   // at the decision; it gets the events that follow
	later    map[string]bool  // UIDs of pods on which later decisions were made, and victims of these
	then     map[string]int64 // node -> score at the decision
	early    bool             // the search did not consider all nodes
}

// New returns a Judge of one in so many decisions, at least 1.
func New(every int) *Judge {
	j := &Judge{every: every, to: math.MaxInt64, skipped: map[string]int{},
		shares: map[record.RegretCause]*record.RegretShare{}}
	for _, c := range record.RegretCauses {
		j.shares[c] = &record.RegretShare{Cause: c}
	}
	return j
}

// Between leaves out decisions before and after an interval, by the clock of the scheduler. It must be called before
// the first Step.
func (j *Judge) Between(from, to record.Time) { j.from, j.to = from, to }

// Step takes a step of the replay, after it. config makes the configuration of the engine again, with plugins of its
// own.
func (j *Judge) Step(e *engine.Engine, config func() (engine.Config, error), ev engine.Event, effects []engine.Effect) {
	j.advance(ev)
	units := map[uint64]bool{} // decision on a gang -> a pod of it is compared
	for _, f := range effects {
		if e, evicts := f.(engine.Evict); evicts {
			for _, v := range e.Victims {
				j.follows(v.UID)
			}
		}
		d, is := f.(engine.Decided)
		if !is {
			continue
		}
		j.follows(d.Decision.Pod.UID)
		if d.Decision.Verdict != record.Placed || d.Decision.Winner == nil {
			continue
		}
		if g := d.Decision.Gang; g != nil {
			if units[g.Decision] {
				continue
			}
			units[g.Decision] = true
		}
		j.decided(e, config, &d.Decision)
	}
}

// follows notes that what happens to a pod follows from a decision that is made now.
func (j *Judge) follows(uid string) {
	for _, o := range j.open {
		o.later[uid] = true
	}
}

// decided opens a decision if it is to be compared.
func (j *Judge) decided(e *engine.Engine, config func() (engine.Config, error), d *record.Decision) {
	if now := e.View().Now(); now < j.from || now > j.to {
		return
	}
	j.seen++
	profile := e.View().Profile(d.Profile)
	switch {
	case (j.seen-1)%j.every != 0:
		j.skip(skippedSample)
		return
	case profile == nil || profile.Foreign != nil:
		j.skip(skippedForeign)
		return
	case len(j.open) >= AtOnce:
		j.skip(skippedAtOnce)
		return
	}
	o := &open{decision: d.Number, pod: d.Pod, node: d.Winner.Node, later: map[string]bool{},
		early: d.Gang == nil && profile.Search.Strategy != place.AllNodes}
	cfg, err := config()
	if err == nil {
		o.engine, err = engine.Resume(cfg, e.State())
	}
	if err == nil {
		o.then, err = question.New(o.engine.View()).Rank(cluster.UID(o.pod.UID))
	}
	if err != nil {
		j.skip(skippedFailed)
		return
	}
	if _, fits := o.then[o.node]; !fits {
		j.skip(skippedUnranked)
		return
	}
	j.open = append(j.open, o)
}

func (j *Judge) skip(why string) { j.skipped[why]++ }

// advance gives an event to the engines of open decisions, and closes those that it answers.
func (j *Judge) advance(ev engine.Event) {
	j.open = slices.DeleteFunc(j.open, func(o *open) bool {
		switch ev := ev.(type) {
		case engine.BindDone:
			if ev.Pod.UID == o.pod.UID {
				j.close(o, ev.Outcome)
				return true
			}
		case engine.PodGone:
			if ev.Pod.UID == o.pod.UID {
				j.skip(skippedGone)
				return true
			}
		}
		if o.counts(ev) {
			o.engine.Step(ev)
		}
		return false
	})
}

// counts reports whether an event is part of the newest state: all but cycles, and what follows from later decisions.
func (o *open) counts(ev engine.Event) bool {
	switch ev := ev.(type) {
	case engine.Cycle:
		return false
	case engine.PodSet:
		return ev.Pod.NodeName == "" || !o.later[string(ev.Pod.UID)]
	case engine.PodGone:
		return !o.later[ev.Pod.UID]
	case engine.BindDone:
		return !o.later[ev.Pod.UID]
	case engine.WritesDone:
		return !o.later[ev.Pod.UID]
	case engine.EvictDone:
		return !o.later[ev.For.UID]
	}
	return true
}

// close compares a decision whose bind has an outcome.
func (j *Judge) close(o *open, outcome engine.BindOutcome) {
	if outcome != engine.Bound {
		j.regret.Conflicts++
		return
	}
	now, err := question.New(o.engine.View()).Rank(cluster.UID(o.pod.UID))
	if err != nil {
		j.skip(skippedFailed)
		return
	}
	if _, fits := now[o.node]; !fits {
		j.regret.Conflicts++
		return
	}
	j.regret.Judged++
	best, name := highest(now, func(string) bool { return true })
	j.regret.Best += best
	causes := o.causes(now, best)
	if len(causes) == 0 {
		return
	}
	j.regret.WithRegret++
	j.regret.Sum += best - now[o.node]
	for cause, part := range causes { // order: sums
		share := j.shares[cause]
		share.Decisions++
		share.Sum += part
		share.Max = max(share.Max, part)
	}
	j.regret.Worst = append(j.regret.Worst, record.RegretExample{Decision: o.decision, Pod: o.pod, Node: o.node,
		Total: now[o.node], Best: name, BestHas: best, Causes: causes})
	slices.SortStableFunc(j.regret.Worst, func(a, b record.RegretExample) int {
		return cmp.Or(cmp.Compare(b.BestHas-b.Total, a.BestHas-a.Total), cmp.Compare(a.Decision, b.Decision))
	})
	j.regret.Worst = j.regret.Worst[:min(len(j.regret.Worst), mostExamples)]
}

// causes returns the parts of the regret on the newest state, of which best is the highest score.
func (o *open) causes(now map[string]int64, best int64) map[record.RegretCause]int64 {
	most, _ := highest(o.then, func(string) bool { return true })
	tied := func(node string) bool { score, fit := o.then[node]; return fit && score == o.then[o.node] }
	among, _ := highest(now, tied)
	known, _ := highest(now, func(node string) bool {
		score, fit := o.then[node]
		return tied(node) || fit && score == most
	})
	missed := record.RegretPreferred
	if o.early {
		missed = record.RegretWindow
	}
	parts := map[record.RegretCause]int64{record.RegretTie: among - now[o.node], missed: known - among,
		record.RegretStaleness: best - known}
	maps.DeleteFunc(parts, func(_ record.RegretCause, part int64) bool { return part == 0 })
	return parts
}

// highest returns the highest score of the nodes of a kind, and the first of these by name that has it. There must be
// one.
func highest(of map[string]int64, is func(node string) bool) (best int64, name string) {
	for node, score := range of { // order: the name decides among equals
		if is(node) && (name == "" || score > best || score == best && node < name) {
			best, name = score, node
		}
	}
	return best, name
}

// Report returns the result. The replay must have ended.
func (j *Judge) Report() record.Regret {
	r := j.regret
	r.Decisions = j.seen
	skipped := maps.Clone(j.skipped)
	if len(j.open) > 0 {
		skipped[skippedEnd] += len(j.open)
	}
	for _, why := range slices.Sorted(maps.Keys(skipped)) {
		r.Skipped = append(r.Skipped, record.RegretSkipped{Why: why, Decisions: skipped[why]})
	}
	for _, c := range record.RegretCauses {
		r.Causes = append(r.Causes, *j.shares[c])
	}
	return r
}
