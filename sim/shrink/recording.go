// SPDX-License-Identifier: Apache-2.0

package shrink

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
)

// subject is what an event is about.
type subject struct {
	kind string
	key  cluster.ObjectKey // of a node, only the name; of a pod, the name is its UID
}

// about returns what an event is about. Events of time, and the end of the initial lists, are about nothing.
func about(ev engine.Event) (subject, bool) {
	switch ev := ev.(type) {
	case engine.PodSet:
		return subject{"pod", cluster.ObjectKey{Name: string(ev.Pod.UID)}}, true
	case engine.PodGone:
		return subject{"pod", cluster.ObjectKey{Name: ev.Pod.UID}}, true
	case engine.NodeSet:
		return subject{"node", cluster.ObjectKey{Name: ev.Node.Name}}, true
	case engine.NodeGone:
		return subject{"node", cluster.ObjectKey{Name: ev.Name}}, true
	case engine.ObjectSet:
		return subject{string(cluster.KindOf(ev.Object)), cluster.KeyOf(ev.Object)}, true
	case engine.ObjectGone:
		return subject{string(ev.Kind), ev.Key}, true
	}
	return subject{}, false
}

// Recording returns a part of the events of a recording for which holds is true: without pods, nodes and other objects,
// each with all its events, and then without single events. Only events that a simulation reads are left, and of ticks
// those that the events need. holds must be true for the events.
func Recording(events []engine.Event, holds func([]engine.Event) bool) []engine.Event {
	events = relevant(events)
	for _, kind := range []string{"pod", "node", ""} {
		var subjects []subject
		seen := map[subject]bool{}
		for _, ev := range events {
			s, is := about(ev)
			if !is || seen[s] || kind != "" && s.kind != kind || kind == "" && (s.kind == "pod" || s.kind == "node") {
				continue
			}
			seen[s] = true
			subjects = append(subjects, s)
		}
		all := events
		left := List(subjects, func(part []subject) bool { return holds(without(all, seen, part)) })
		events = without(all, seen, left)
	}
	var single []int // the events that may go by themselves
	for i, ev := range events {
		if _, is := about(ev); is {
			single = append(single, i)
		}
	}
	all := events
	choose := func(part []int) []engine.Event {
		keep := map[int]bool{}
		for _, i := range part {
			keep[i] = true
		}
		var out []engine.Event
		for i, ev := range all {
			if _, is := about(ev); !is || keep[i] {
				out = append(out, ev)
			}
		}
		return relevant(out)
	}
	return choose(List(single, func(part []int) bool { return holds(choose(part)) }))
}

// without returns the events without those about subjects of a set that are not among the kept ones.
func without(events []engine.Event, set map[subject]bool, kept []subject) []engine.Event {
	keep := map[subject]bool{}
	for _, s := range kept {
		keep[s] = true
	}
	var out []engine.Event
	for _, ev := range events {
		if s, is := about(ev); !is || !set[s] || keep[s] {
			out = append(out, ev)
		}
	}
	return relevant(out)
}

// relevant returns the events that a simulation reads. Of ticks in a row only the last is left, and none at the end.
func relevant(events []engine.Event) []engine.Event {
	var out []engine.Event
	var tick engine.Event
	for _, ev := range events {
		_, is := about(ev)
		switch _, synced := ev.(engine.Synced); {
		case is || synced:
			if tick != nil {
				out, tick = append(out, tick), nil
			}
			out = append(out, ev)
		default:
			if t, isTick := ev.(engine.Tick); isTick {
				tick = t
			}
		}
	}
	return out
}
