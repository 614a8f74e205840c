// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// CheckAlikeHints fails if a hint that is registered as Alike differs between pods that share namespace and Spec,
// whatever else they differ in. draw makes random pods of the kind that the plugins are about.
func CheckAlikeHints(t *testing.T, draw func(*rapid.T, string) *v1.Pod, plugins ...plugin.Plugin) {
	t.Helper()
	asked := 0
	rapid.Check(t, func(t *rapid.T) {
		in := convert.NewIntake()
		drawn := func(name string) *cluster.Pod { return in.Pod(draw(t, name)) }
		p := drawn("p")
		twin := *p
		twin.UID, twin.Name, twin.ResourceVersion, twin.Generation = "another", "another", "77", 7
		twin.Created, twin.Start, twin.Owned, twin.Terminating = p.Created+1, p.Start+1, !p.Owned, !p.Terminating
		twin.Condition = cluster.Condition{Reason: "Unschedulable", Message: "no node"}
		ch := plugin.Change{State: cluster.NewStore().Snapshot()}
		for _, pl := range plugins {
			waker, is := pl.(plugin.Waker)
			if !is {
				continue
			}
			for _, w := range waker.Wakes() {
				if !w.Alike {
					continue
				}
				asked++
				ch := ch
				if w.Event.Resource == plugin.NodeObject {
					ch.NewNode = in.Node(RandomNode(t, "n"))
					if w.Event.Action&^plugin.Add != 0 && Chance(t, 50, "changed") {
						ch.OldNode = in.Node(RandomNode(t, "n"))
					}
				} else {
					was, is := drawn("was"), drawn("is")
					was.NodeName, is.NodeName = Pick(t, []string{"", "n"}, "where it was"), Pick(t, []string{"", "n"},
						"where it is")
					is.UID = was.UID
					ch.OldPod = was
					if w.Event.Resource == plugin.TargetPod || w.Event.Action&^plugin.Delete != 0 && Chance(t, 50, "changed") {
						ch.NewPod = is
					}
				}
				if one, other := w.Hint(p, ch), w.Hint(&twin, ch); one != other {
					t.Fatalf("%s on %v: %v for %+v, %v for %+v", pl.Name(), w.Event, one, p, other, twin)
				}
			}
		}
	})
	if asked == 0 {
		t.Error("no hint is asked once")
	}
}

// HintOf tells what the plugin's registrations that match the change make of it; asked is false when none matches.
func HintOf(pl plugin.Waker, p *cluster.Pod, ch plugin.Change) (hint plugin.Hint, asked bool) {
	for _, w := range pl.Wakes() {
		if !w.Event.Matches(ch.Event) {
			continue
		}
		asked = true
		if w.Hint == nil || w.Hint(p, ch) == plugin.QueueHint {
			return plugin.QueueHint, true
		}
	}
	return plugin.SkipHint, asked
}

// ChangeOf makes a change of API objects; nil, or nothing of the kind, where there is none.
func ChangeOf(in *convert.Intake, e plugin.Event, old, now any) plugin.Change {
	ch := plugin.Change{Event: e}
	switch o := old.(type) {
	case *v1.Pod:
		ch.OldPod = in.Pod(o)
	case *v1.Node:
		ch.OldNode = in.Node(o)
	}
	switch o := now.(type) {
	case *v1.Pod:
		ch.NewPod = in.Pod(o)
	case *v1.Node:
		ch.NewNode = in.Node(o)
	}
	return ch
}

// HintCase is a change, and what a waiting pod's plugin makes of it.
type HintCase struct {
	Name   string
	Event  plugin.Event
	Change plugin.Change
	Want   plugin.Hint
}

func CheckHints(t *testing.T, pl plugin.Waker, waiting *cluster.Pod, cases []HintCase) {
	t.Helper()
	for _, c := range cases {
		c.Change.Event = c.Event
		got, asked := HintOf(pl, waiting, c.Change)
		if !asked {
			t.Errorf("%s: no hint is registered for %s", c.Name, c.Event)
		} else if got != c.Want {
			t.Errorf("%s: hint %d, want %d", c.Name, got, c.Want)
		}
	}
}

// CheckEvents fails unless the plugin is registered for exactly these events, in any order.
func CheckEvents(t *testing.T, pl plugin.Waker, events ...plugin.Event) {
	t.Helper()
	var got []plugin.Event
	for _, w := range pl.Wakes() {
		got = append(got, w.Event)
	}
	if len(got) != len(events) || slices.ContainsFunc(events,
		func(e plugin.Event) bool { return !slices.Contains(got, e) }) {
		t.Errorf("%s is registered for %v, want %v", pl.Name(), got, events)
	}
}
