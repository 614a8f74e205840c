// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// plain is a queue at epoch in which Fit asks for nodes and deletions, Affinity for labels.
func plain(gates ...plugin.Gate) *Queue {
	q := New(Config{
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second,
		PopFromBackoff: true, Less: byPriority{},
		Profiles: map[string]Profile{"": {Gates: gates, Wakes: []PluginWakes{
			wakesOf("NodeResourcesFit", "Node/Add+UpdateNodeAllocatable", "fits", "Pod/Delete", ""),
			wakesOf("NodeAffinity", "Node/Add+UpdateNodeLabel", "queue"),
		}}},
	})
	q.Tick(epoch)
	return q
}

func podNamed(name string, cpu int) *cluster.Pod {
	return attributes{"cpu": fmt.Sprint(cpu)}.pod(name, 1)
}

// rejected is a queue with n waiting pods of 1000m CPU that plugins have rejected.
func rejected(n int, plugins ...string) *Queue {
	q := plain()
	for i := range n {
		q.Add(podNamed(fmt.Sprintf("p%05d", i), 1000))
		u, _ := q.Pop()
		q.Requeue(u, Rejection{Plugins: plugins})
	}
	q.Tick(epoch + 20*record.Second)
	q.TakeMoves()
	return q
}

func happened(name string, cpu int64) plugin.Change {
	e, err := parseEvent(name)
	if err != nil {
		panic(err)
	}
	n := &cluster.Node{Name: "n"}
	n.Allocatable.MilliCPU = cpu
	return plugin.Change{Event: e, NewNode: n}
}

// An event that only NodeAffinity asked for does not look at a single pod that only NodeResourcesFit rejected. Units
// without members would make any look a panic.
func TestIrrelevantEventTouchesNobody(t *testing.T) {
	q := rejected(10_000, "NodeResourcesFit")
	for _, u := range q.units { // in any order, all alike
		u.Members = nil
	}
	q.Happened(happened("Node/UpdateNodeLabel", 0))
	if moves := q.TakeMoves(); len(moves) != 0 {
		t.Fatalf("moved %d units, first %+v", len(moves), moves[0])
	}
}

// Many units that one event wakes move in the order in which they arrived, whatever groups they stand in.
func TestMovesKeepTheOrderOfArrival(t *testing.T) {
	q := plain()
	for i := range 100 {
		q.Add(podNamed(fmt.Sprintf("p%05d", i), 1000))
		u, _ := q.Pop()
		plugins := []string{"NodeResourcesFit", "NodeAffinity", "Other"}
		q.Requeue(u, Rejection{Plugins: plugins[i%2 : i%2+1+i%2]})
	}
	q.TakeMoves()
	q.Happened(happened("Node/Add", 2000))
	moves := q.TakeMoves()
	for i, m := range moves {
		if want := fmt.Sprintf("p%05d", i); m.Pod.Name != want || len(moves) != 100 {
			t.Fatalf("move %d of %d is of %s, want %s of 100", i, len(moves), m.Pod.Name, want)
		}
	}
}

// brokenGate panics for pods that were meant to break it.
type brokenGate struct{}

func (brokenGate) Name() string { return "Broken" }

func (brokenGate) Gated(_ cluster.Snapshot, p *cluster.Pod) (string, bool) {
	if p.Spec.Labels["break"] != "" {
		panic("a gate that breaks")
	}
	return "", true
}

// A gate that panics leaves the unit where it was, and the rest of the queue whole: the caller can set the unit aside
// and go on.
func TestGatePanics(t *testing.T) {
	q := plain(brokenGate{})
	expectPanic := func(what string, f func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Fatalf("%s did not panic", what)
			}
		}()
		f()
	}
	bad := attributes{"labels": "break:me"}.pod("bad", 2)

	expectPanic("Add", func() { q.Add(bad) })
	if _, sub, ok := q.Lookup(bad.UID); ok {
		t.Fatalf("after a panic in Add the pod is in %s", sub)
	}

	good := podNamed("bad", 0)
	q.Add(good)
	u, _ := q.Pop()
	q.Update(good, bad)
	expectPanic("Requeue", func() { q.Requeue(u, Rejection{Err: true}) })
	if _, sub, _ := q.Lookup(u.UID()); sub != record.InFlight {
		t.Fatalf("after a panic in Requeue the unit is in %s, want %s", sub, record.InFlight)
	}
	q.SetAside(u, "a gate broke")
	q.Add(podNamed("other", 0))
	if u, ok := q.Pop(); !ok || u.Key != "default/other" || q.Counts()[record.Unschedulable] != 1 {
		t.Fatalf("Pop = %+v, %v, counts %v", u, ok, q.Counts())
	}
}

// A pod of a profile that there is not is a fault of the caller and says so.
func TestUnknownProfile(t *testing.T) {
	defer func() {
		want := `queue: pod default/stray (uid-stray) is of profile "elsewhere", which there is not`
		if got := recover(); got != want {
			t.Fatalf("Add panicked with %v, want %q", got, want)
		}
	}()
	plain().Add(attributes{"scheduler": "elsewhere"}.pod("stray", 1))
}

// Setting aside reaches a unit that waits, and the add of a pod that is known is an update.
func TestSetAsideWaitingAndAddTwice(t *testing.T) {
	q := rejected(1, "NodeResourcesFit")
	u, _, _ := q.Lookup("uid-p00000")
	q.SetAside(u, "its update broke something")
	if _, ok := q.NextTick(); ok || q.Counts()[record.Unschedulable] != 1 {
		t.Fatalf("a unit set aside waits for time; counts %v", q.Counts())
	}
	q.Add(attributes{"cpu": "1"}.pod("p00000", 2))
	if _, sub, _ := q.Lookup(u.UID()); sub != record.Backoff || u.Aside != "" || u.Pod().ResourceVersion != "2" {
		t.Fatalf("after its change the unit is in %s: %+v", sub, u)
	}
}

// The time does not go back, and what fell due long ago happens in its order.
func TestTickBackwardsAndFar(t *testing.T) {
	q := rejected(3, "NodeResourcesFit")
	q.Tick(epoch)
	q.Tick(epoch + 100_000*record.Second)
	moves := q.TakeMoves()
	if len(moves) != 3 || moves[0].At != epoch+330*record.Second {
		t.Fatalf("moves %+v, want three at 330 s", moves)
	}
}

func BenchmarkHappened(b *testing.B) {
	for name, ch := range map[string]plugin.Change{
		"irrelevant":   happened("Node/UpdateNodeLabel", 0),
		"asked-and-no": happened("Node/Add", 500),
	} {
		b.Run(name, func(b *testing.B) {
			q := rejected(10_000, "NodeResourcesFit")
			b.ReportAllocs()
			for b.Loop() {
				q.Happened(ch)
			}
		})
	}
	b.Run("wakes-all", func(b *testing.B) {
		q := rejected(10_000, "NodeResourcesFit")
		ch := happened("Node/Add", 2000)
		b.ReportAllocs()
		for b.Loop() {
			q.Happened(ch)
			b.StopTimer()
			if n := q.active.len(); n != 10_000 {
				b.Fatalf("%d units active", n)
			}
			q.TakeMoves()
			for q.active.len() > 0 {
				q.put(q.active.head(), waiting, note{})
			}
			q.TakeMoves()
			b.StartTimer()
		}
	})
}

// One attempt that fails: Pop, Requeue to waiting, and the wakeup back to active, among 10,000 others.
func BenchmarkPopRequeue(b *testing.B) {
	q := rejected(0)
	for i := range 10_000 {
		q.Add(podNamed(fmt.Sprintf("p%05d", i), 1000))
	}
	why := Rejection{Plugins: []string{"NodeResourcesFit"}}
	b.ReportAllocs()
	for b.Loop() {
		u, _ := q.Pop()
		q.Requeue(u, why)
		q.activate(u, note{})
		q.TakeMoves()
	}
}

// One pod that is placed at the first attempt, beside 10,000 that wait.
func BenchmarkAddPopDone(b *testing.B) {
	q := rejected(10_000, "NodeResourcesFit")
	p := podNamed("web", 1000)
	b.ReportAllocs()
	for b.Loop() {
		q.Add(p)
		u, _ := q.Pop()
		q.Done(u.UID())
		q.TakeMoves()
	}
}

// A hint sees the cluster, whether it is asked about something that happened, about an update of its own pod, or about
// what happened while the pod was in flight.
// Mutant: judge that leaves the change's State as it came.
func TestHintsSeeTheCluster(t *testing.T) {
	store := cluster.NewStore()
	store.SetNode(&cluster.Node{Name: "n"})
	wake := func(happens func(q *Queue, p *cluster.Pod)) bool {
		q := New(Config{State: store.Snapshot(),
			Profiles: map[string]Profile{"": {Wakes: []PluginWakes{{Plugin: "Reader", Wakes: []plugin.Wake{{
				Event: plugin.Event{Resource: plugin.Pod, Action: plugin.All},
				Hint: func(_ *cluster.Pod, ch plugin.Change) plugin.Hint {
					if ch.State == (cluster.Snapshot{}) || ch.State.Nodes() != 1 {
						return plugin.SkipHint
					}
					return plugin.QueueHint
				},
			}}}}}}})
		q.Tick(epoch)
		p := podNamed("p", 1)
		q.Add(p)
		u, _ := q.Pop()
		if happens == nil {
			q.Happened(plugin.Change{Event: plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Delete},
				OldPod: podNamed("other", 1)})
		}
		q.Requeue(u, Rejection{Plugins: []string{"Reader"}})
		if happens != nil {
			happens(q, p)
		}
		_, sub, _ := q.Lookup(p.UID)
		return sub != record.Unschedulable
	}
	if !wake(func(q *Queue, _ *cluster.Pod) {
		q.Happened(plugin.Change{Event: plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Delete},
			OldPod: podNamed("other", 1)})
	}) {
		t.Error("asked about another pod, it does not see the cluster")
	}
	if !wake(func(q *Queue, p *cluster.Pod) {
		after := *p
		spec := *p.Spec
		spec.Labels = map[string]string{"now": "other"}
		after.Spec, after.ResourceVersion, after.Generation = &spec, "9", 9
		q.Update(p, &after)
	}) {
		t.Error("asked about its own pod, it does not see the cluster")
	}
	if !wake(nil) {
		t.Error("asked about what happened in flight, it does not see the cluster")
	}
}

// patientGate holds all pods and opens by itself; asked counts the questions.
type patientGate struct{ asked *int }

func (patientGate) Name() string { return "Patient" }
func (patientGate) OpensItself() {}

func (g patientGate) Gated(cluster.Snapshot, *cluster.Pod) (string, bool) {
	*g.asked++
	return "not yet", false
}

// Catches: events that ask a gate whose owner brings the pod back, once for each pod that waits and each that goes.
func TestEventsDoNotAskAGateThatOpensItself(t *testing.T) {
	asked := 0
	q := New(Config{Less: byPriority{}, Profiles: map[string]Profile{"": {
		Gates: []plugin.Gate{patientGate{&asked}}, Wakes: []PluginWakes{wakesOf("Patient", "Pod/Delete", "")}}}})
	q.Tick(epoch)
	q.Add(podNamed("p", 1000))
	if asked != 1 {
		t.Fatalf("the gate was asked %d times, want once", asked)
	}
	q.Happened(happened("AssignedPod/Delete", 0))
	if asked != 1 {
		t.Errorf("an event asked the gate")
	}
	q.Activate([]record.PodRef{{UID: string(podNamed("p", 1000).UID)}})
	if asked != 2 {
		t.Errorf("who brings the pod back does not ask the gate: %d questions", asked)
	}
}

// TestAGateThatStaysShutIsObserved: an event that concerns a gate is observed even if the unit does not move.
func TestAGateThatStaysShutIsObserved(t *testing.T) {
	q := New(Config{Less: byPriority{}, Profiles: map[string]Profile{"": {
		Gates: []plugin.Gate{namedGate("Hold")}, Wakes: []PluginWakes{wakesOf("Hold", "Node/Add", "")}}}})
	seen := &stays{}
	q.cfg.Meter = seen
	q.Tick(epoch)
	q.Add(attributes{"cpu": "1", "labels": "Hold:shut"}.pod("p", 1))
	q.TakeMoves()
	q.Happened(happened("Node/Add", 0))
	if moves := q.TakeMoves(); len(moves) != 0 || !slices.Equal(seen.events, []string{"NodeAdd"}) {
		t.Errorf("observed %v, moves %v; want one NodeAdd and no move", seen.events, moves)
	}
}

// stays are the events after which a gate stayed shut.
type stays struct {
	noMeter
	events []string
}

func (s *stays) StaysGated(m record.QueueMove) { s.events = append(s.events, m.Event) }
