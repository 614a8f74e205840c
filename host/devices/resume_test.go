// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/internal/resumetest"
)

// reservations returns the events of a scheduler in which reservations wait, fail, and end well: of a claim that was
// there, of a shared one, of a device that must be attached, and of a claim for extended resources.
func reservations(t *testing.T) (*scheduler, []engine.Event) {
	s := newScheduler(t)
	s.class("gpu", backs(gpuResource))
	s.slice("a", device("d0", "old"), device("d1", "old"))
	s.slice("b", device("d0", "new", attachable))
	for _, n := range []string{"a", "b"} {
		node := &v1.Node{}
		node.Name, node.Status.Allocatable = n, list("pods", "10")
		s.step(engine.NodeSet{Node: s.intake.Node(node)})
	}
	s.tell()
	s.claim("attached", want("r", 1, model("new")))
	s.claim("plain", want("r", 1, model("old")))
	s.tell()
	s.enter("first", uses("attached"))
	s.enter("extended", asks(gpuResource, "1"))
	s.enter("third", uses("plain"))
	s.run()
	s.write("first", "")
	s.later(time.Minute)
	s.enter("second", uses("attached"))
	s.run()
	s.write("second", "")
	s.write("extended", "the API server is busy")
	s.write("third", "the API server is busy")
	s.foreignPods()
	s.later(4 * time.Second)
	s.run()
	s.later(7 * time.Second)
	s.run()
	s.write("extended", "")
	s.write("third", "")
	s.later(5 * time.Minute)
	s.says("attached", "attached")
	s.tell()
	s.later(time.Second)
	return s, s.events
}

// notNeeded are the facts that no effect shows, because a reservation has returned its writes before a State can be
// taken. They are there so that Writes stays true.
var notNeeded = []string{".Create.Claim", ".Create.Pod", ".Create.Mappings", ".Target.ResourceVersion", ".Claims[].Reserved"}

// TestReservedDevicesAreResumed cuts the events at each place. Without one of the facts of a reservation, the engine
// goes on otherwise at least once.
func TestReservedDevicesAreResumed(t *testing.T) {
	s, events := reservations(t)
	const reservation = "Flights[].Reserved[].Facts"
	missing := map[string]bool{} // path -> no cut has shown that it is needed
	for _, path := range resumetest.Fields(reflect.TypeFor[ReservedDevices](), reservation) {
		if !slices.ContainsFunc(notNeeded, func(end string) bool { return strings.Contains(path, end) }) {
			missing[path] = true
		}
	}
	for cut := range events {
		var facts map[string]bool // path -> true
		look := func(st *engine.State) { facts = resumetest.Facts(st) }
		if difference := resumetest.Cut(s.config, events, cut, look); difference != "" {
			t.Fatal(difference)
		}
		for path := range facts { // order: each path stands apart
			if missing[path] && resumetest.Cut(s.config, events, cut, resumetest.Drop(path)) != "" {
				delete(missing, path)
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("the engine goes on alike without %v", slices.Sorted(maps.Keys(missing)))
	}
}
