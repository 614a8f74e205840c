// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"testing"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// A pod enters, is popped, is rejected, backs off twice as long each time, and is let go.
func TestRoundTrip(t *testing.T) {
	q := New(Config{
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second,
		Profiles: map[string]Profile{"": {}},
	})
	q.Tick(1000 * record.Second)
	q.Add(&cluster.Pod{UID: "1", Namespace: "default", Name: "web", Spec: &cluster.PodSpec{}})
	u, ok := q.Pop()
	if !ok || u.Key != "default/web" || u.Attempts != 1 {
		t.Fatalf("Pop = %+v, %v", u, ok)
	}
	q.Requeue(u, Rejection{Err: true})
	if _, sub, _ := q.Lookup("1"); sub != record.Backoff {
		t.Fatalf("after an error the unit is in %s, want %s", sub, record.Backoff)
	}
	next, ok := q.NextTick()
	if want := 1002 * record.Second; !ok || next != want {
		t.Fatalf("NextTick = %d, %v, want %d", next, ok, want)
	}
	q.Tick(next)
	if u, ok = q.Pop(); !ok {
		t.Fatal("the unit is not ready after its backoff")
	}
	q.Done(u.UID())
	if n := q.InFlightEvents(); n != 0 || len(q.units) != 0 {
		t.Fatalf("%d in-flight entries, %d units left", n, len(q.units))
	}
}
