// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// A unit that Done removed may wait on its node for plugins that can still reject it (upstream: Permit). Upstream keeps
// it in flight, with all events, and calls the hints when it comes back. Here the hints of those plugins are called as
// events happen, and the queue keeps which plugins an event helps: a State holds names, and could not hold the objects
// of events.

// WaitResult is what Watch found.
type WaitResult struct {
	// Plugins are those for which events were tested, Helped those of them that an event may help; both are sorted.
	Plugins, Helped []string
}

// Watch tests events for a unit that Done removed: whether they help the plugins that may still reject it.
func (q *Queue) Watch(u *Unit, plugins []string) {
	q.EndWatch(u)
	u.watched.Plugins = setOf(nil, plugins)
	if len(u.watched.Plugins) > 0 {
		q.watched = append(q.watched, u)
	}
}

// EndWatch ends Watch and returns what it found, for a Rejection.
func (q *Queue) EndWatch(u *Unit) WaitResult {
	found := u.watched
	if len(found.Plugins) > 0 {
		q.watched = slices.DeleteFunc(q.watched, func(other *Unit) bool { return other == u })
		u.watched = WaitResult{}
	}
	return found
}

// test tests an event for the watched units. As for units in flight, their priority is of no account.
func (q *Queue) test(ch plugin.Change) {
	ch.State = q.cfg.State
	for _, u := range q.watched {
		switch own := concerns(ch, u.UID()); {
		case own && ch.OnlyOthers:
		case ch.Event.IsWildcard():
			if own || ch.NewPod == nil && ch.NewNode == nil {
				u.watched.Helped = slices.Clone(u.watched.Plugins)
			}
		default:
			q.testFor(u, ch)
		}
	}
}

// concerns reports whether a change is one of a pod.
func concerns(ch plugin.Change, uid cluster.UID) bool {
	return ch.NewPod != nil && ch.NewPod.UID == uid || ch.OldPod != nil && ch.OldPod.UID == uid
}

// testFor tests an event for one unit.
func (q *Queue) testFor(u *Unit, ch plugin.Change) {
	for i := range u.profile.wakes {
		r := &u.profile.wakes[i]
		if !r.Event.Matches(ch.Event) || !slices.Contains(u.watched.Plugins, r.plugin) ||
			slices.Contains(u.watched.Helped, r.plugin) {
			continue
		}
		if hint, _ := q.callHint(&ask{plugin: r.plugin, hint: r.Hint}, u.Pod(), ch); hint == plugin.QueueHint {
			u.watched.Helped = insert(u.watched.Helped, r.plugin)
		}
	}
}

// judge returns what the events since Watch mean for a unit that plugins reject.
func (w WaitResult) judge(why Rejection) verdict {
	waits := verdict{how: stay, cause: "rejected while it waited on its node; waits for what could help"}
	for _, name := range slices.Concat(why.Pending, why.Plugins) {
		switch {
		case !slices.Contains(w.Plugins, name):
			return verdict{how: afterBackoff,
				cause: "rejected after it had left the queue, so events may have been missed"}
		case !slices.Contains(w.Helped, name):
		case slices.Contains(why.Pending, name):
			return verdict{how: atOnce, by: name, cause: "an event while it waited on its node may help " + name}
		default:
			waits = verdict{how: afterBackoff, by: name, cause: "an event while it waited on its node may help " + name}
		}
	}
	return waits
}
