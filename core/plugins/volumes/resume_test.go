// SPDX-License-Identifier: Apache-2.0

package volumes_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/plugins/volumes"
	"github.com/kumiki-scheduler/kumiki/internal/resumetest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// config is the configuration of the engine in a storage.
func config() engine.Config {
	vb, err := volumes.NewVolumeBinding(volumes.DefaultVolumeBindingArgs())
	if err != nil {
		panic(err)
	}
	return engine.Config{
		Seed: 7, Less: basic.PrioritySort{}, InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second,
		Profiles: []engine.Profile{{Filters: []plugin.Filter{vb}, Wakers: []plugin.Waker{vb}, Reservers: []plugin.Reserver{vb}}},
	}
}

// history returns the events of a random history of pods with volumes.
func history(seed int) (events []engine.Event) {
	rapid.Custom(func(t *rapid.T) bool {
		s := newStorage(t)
		for i := range 3 {
			s.put(s.offer(fmt.Sprint("local", i), 1+i%2, "local", fmt.Sprint("n", rapid.IntRange(0, hosts-1).Draw(t, "host"))))
			s.arrive(fmt.Sprint("l", i), "local")
			s.arrive(fmt.Sprint("m", i), "made")
		}
		for range 150 {
			s.step(rapid.IntRange(0, 6).Draw(t, "kind"), rapid.IntRange(0, 3).Draw(t, "mood") == 0)
		}
		if rapid.Bool().Draw(t, "time passes") { // the wait for volumes ends
			s.now += 700 * record.Second
			s.send(engine.Tick{Now: s.now})
		}
		s.calmDown()
		events = s.events
		return true
	}).Example(seed)
	return events
}

// TestReservedVolumesAreResumed cuts histories at random places. Without one of the facts of a reservation, at least one
// of them goes on otherwise.
func TestReservedVolumesAreResumed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	const reservation = "Flights[].Reserved[].Facts"
	missing := map[string]bool{} // path -> no history has gone on otherwise without it
	for _, path := range resumetest.Fields(reflect.TypeFor[volumes.ReservedVolumes](), reservation) {
		missing[path] = !strings.HasSuffix(path, "ByController") // in writes, which were returned before
	}
	reserved := 0
	for seed := range 40 {
		events := history(seed)
		for range 4 {
			cut := 10 + r.IntN(len(events)-10)
			var facts map[string]bool // path -> true
			look := func(st *engine.State) { facts = resumetest.Facts(st) }
			if difference := resumetest.Cut(config, events, cut, look); difference != "" {
				t.Fatalf("seed %d: %s", seed, difference)
			}
			for path := range facts { // order: each path stands apart
				if !strings.HasPrefix(path, reservation+".") {
					continue
				}
				reserved++
				if missing[path] && resumetest.Cut(config, events, cut, resumetest.Drop(path)) != "" {
					delete(missing, path)
				}
			}
		}
	}
	maps.DeleteFunc(missing, func(_ string, is bool) bool { return !is })
	if len(missing) > 0 || reserved == 0 {
		t.Errorf("of %d facts of reservations, no history goes on otherwise without %v", reserved, missing)
	}
}
