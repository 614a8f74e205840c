// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// checkAlikeHints fails if a hint that is registered as Alike differs between pods that share namespace and Spec, whatever
// else they differ in. draw makes random pods of the kind that the plugins are about.
func checkAlikeHints(t *testing.T, draw func(*rapid.T, string) *v1.Pod, plugins ...Plugin) {
	t.Helper()
	asked := 0
	rapid.Check(t, func(t *rapid.T) {
		in := cluster.NewIntake()
		drawn := func(name string) *cluster.Pod { return in.Pod(draw(t, name)) }
		p := drawn("p")
		twin := *p
		twin.UID, twin.Name, twin.ResourceVersion, twin.Generation = "another", "another", "77", 7
		twin.Created, twin.Start, twin.Owned, twin.Terminating = p.Created+1, p.Start+1, !p.Owned, !p.Terminating
		twin.Condition = cluster.Condition{Reason: "Unschedulable", Message: "no node"}
		ch := Change{State: cluster.NewStore().Snapshot()}
		for _, pl := range plugins {
			waker, is := pl.(Waker)
			if !is {
				continue
			}
			for _, w := range waker.Wakes() {
				if !w.Alike {
					continue
				}
				asked++
				ch := ch
				if w.Event.Resource == NodeObject {
					ch.NewNode = in.Node(randomNode(t, "n"))
					if w.Event.Action&^Add != 0 && chance(t, 50, "changed") {
						ch.OldNode = in.Node(randomNode(t, "n"))
					}
				} else {
					was, is := drawn("was"), drawn("is")
					was.NodeName, is.NodeName = pick(t, []string{"", "n"}, "where it was"), pick(t, []string{"", "n"}, "where it is")
					is.UID = was.UID
					ch.OldPod = was
					if w.Event.Action&^Delete != 0 && chance(t, 50, "changed") {
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
