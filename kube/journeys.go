// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/timing"
)

// moments are the times of a step, by the clock of the loop.
type moments struct {
	received     record.Time   // when the watch brought the event's object; 0 where that is not noted
	began, ended record.Time   // of the step
	call         timing.Call   // of a bind that the event answers
	deletes      []timing.Call // of evictions that the event answers, in the order of the victims
}

// journeys tells a timing.Recorder of each step what it means for pods, gangs and evictions. It belongs to the loop.
type journeys struct {
	to    *timing.Recorder
	names []string // schedulers whose pods are ours
	// gangs are the names of gangs, made once per gang: key -> namespace/name. It is emptied when it is large.
	gangs  map[cluster.GangKey]string
	synced bool // the initial lists are known
}

// maxGangNames bounds journeys.gangs.
const maxGangNames = 8192

func newJourneys(to *timing.Recorder, schedulerNames []string) *journeys {
	if to == nil {
		return nil
	}
	return &journeys{to: to, names: slices.Clone(schedulerNames), gangs: map[cluster.GangKey]string{}}
}

// step takes one step. A move out of the queue into a cycle happens when the step begins, and what a cycle decides when
// it ends; in other steps moves happen when they begin.
func (j *journeys) step(ev engine.Event, effects []engine.Effect, m moments) {
	if !j.concerns(ev) && len(effects) == 0 {
		return
	}
	if m.received == 0 {
		m.received = m.began
	}
	j.to.BeginStep()
	defer j.to.EndStep(m.ended)
	j.event(ev, m)
	_, cycle := ev.(engine.Cycle)
	for _, f := range effects {
		switch f := f.(type) {
		case engine.Moved:
			at := m.began
			if cycle && f.Move.To != record.InFlight {
				at = m.ended
			}
			j.to.Moved(&f.Move, at)
		case engine.Decided:
			j.to.Decided(&f.Decision, m.ended)
		case engine.Prepare:
			j.to.Preparing(f.Pod, m.ended)
		case engine.Bind:
			j.to.Binding(f.Pod, f.Node, m.ended)
		case engine.WriteEvent:
			// A member of a gang whose bind failed either returns to the queue, which its event tells as any failed
			// attempt, or its bind is sent again.
			if f.Reason == "FailedScheduling" && f.Action == "Scheduling" {
				j.to.Returned(f.Pod)
			}
		case engine.Evict:
			j.to.EvictionRequested(record.EvictionTiming{For: f.For, Gang: f.Gang, Node: f.Node, Decision: f.Decision,
				Victims: len(f.Victims), Requested: m.ended}, f.Victims)
		}
	}
}

// concerns reports whether an event itself is part of a journey, whatever its effects.
func (j *journeys) concerns(ev engine.Event) bool {
	switch ev := ev.(type) {
	case engine.PodSet:
		return ev.Pod.NodeName != "" || j.ours(ev.Pod)
	case engine.PodGone, engine.BindDone, engine.EvictDone, engine.Synced:
		return true
	}
	return false
}

// ours reports whether a pod is of a profile. There are few, so this takes less than a map.
func (j *journeys) ours(p *cluster.Pod) bool { return slices.Contains(j.names, p.Spec.SchedulerName) }

func (j *journeys) event(ev engine.Event, m moments) {
	switch ev := ev.(type) {
	case engine.PodSet:
		if ev.Pod.Terminating {
			j.to.Terminating(ev.Pod.Ref(), m.received, m.began)
		}
		switch p := ev.Pod; {
		case p.NodeName != "":
			j.to.Bound(p.Ref(), p.NodeName, m.received, m.began)
		case j.ours(p):
			j.to.Observed(p.Ref(), j.gangOf(p), m.received, m.began, !j.synced)
		}
	case engine.PodGone:
		j.to.Gone(ev.Pod, m.received, m.began)
	case engine.BindDone:
		j.to.BindEnded(ev.Pod, m.call, ev.Outcome == engine.Bound, m.began)
	case engine.EvictDone:
		j.to.EvictionEnded(ev.For, ev.Decision, ev.Message, m.deletes, m.began)
	case engine.Synced:
		j.synced = true
	}
}

// gangOf returns namespace/name of the gang that a pod declares, empty for none.
func (j *journeys) gangOf(p *cluster.Pod) string {
	if p.Gang == nil || p.Gang.Bad != "" {
		return ""
	}
	name, known := j.gangs[p.Gang.Key]
	if !known {
		if len(j.gangs) >= maxGangNames {
			clear(j.gangs)
		}
		name = p.Gang.Key.String()
		j.gangs[p.Gang.Key] = name
	}
	return name
}
