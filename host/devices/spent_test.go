// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// fabric publishes a pool that every node can use, its devices and the counters they share.
func (w *world) fabric(name string, sets []resourceapi.CounterSet, devices ...resourceapi.Device) {
	yes := true
	spec := resourceapi.ResourceSliceSpec{Driver: driver, AllNodes: &yes, Devices: devices,
		Pool: resourceapi.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: 1}}
	if sets != nil {
		spec.Pool.ResourceSliceCount = 2
		of := spec
		of.Devices, of.SharedCounters = nil, sets
		w.set(&resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "counters-" + name}, Spec: of})
	}
	w.set(&resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice-" + name}, Spec: spec})
}

func draws(amount string) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) {
		d.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: "card", Counters: counters(amount)}}
	}
}

// hidden are the pools that the allocator would not be shown for a pod.
func (w *world) hidden(p *cluster.Pod) (names []string) {
	pr := w.pl.PrepareFilter(w.s(), p).Filter.(*prepared)
	hides := pr.hides(nil, pr.toAllocate(nil))
	for _, p := range w.pl.inv.sharedPools {
		if hides(p) {
			names = append(names, p.id.name)
		}
	}
	return names
}

// Three pools are used up, one by whole devices, one by counters, one by parts: each to the last of it, and then no
// longer looked at.
//
// spent-at-last, spent-of-some
func TestPoolsAreUsedUpAndThenHidden(t *testing.T) {
	w := newWorld(t)
	w.class("gpu")
	w.node("a")
	w.fabric("1-whole", nil, device("d0", "x"), device("d1", "x"))
	w.fabric("2-counted", []resourceapi.CounterSet{{Name: "card", Counters: counters("80Gi")}},
		device("d0", "x", draws("40Gi")), device("d1", "x", draws("40Gi")), device("d2", "x", draws("40Gi")))
	w.fabric("3-parts", nil, device("d0", "x", sharable("2Gi")))
	w.claim("next", want("r", 1))
	next := w.pod("next", uses("next"))
	for i, c := range []struct {
		device string
		hidden []string // after it was taken
	}{
		{"1-whole/d0", nil},
		{"1-whole/d1", []string{"1-whole"}},
		{"2-counted/d0", []string{"1-whole"}},
		{"2-counted/d1", []string{"1-whole", "2-counted"}},
		{"3-parts/d0", []string{"1-whole", "2-counted"}},
		{"3-parts/d0", []string{"1-whole", "2-counted", "3-parts"}},
	} {
		name := fmt.Sprintf("c%d", i)
		w.claim(name, want("r", 1))
		p := w.pod(name, uses(name))
		_, writes := w.place(p, "a")
		expect(t, name, devicesOf(writes), []string{c.device})
		w.carryOut(writes)
		expect(t, "hidden after "+name, w.hidden(next), c.hidden)
	}
	expect(t, "nothing is left", w.fits(next), []string(nil))

	free := w.api("c1")
	free.Status = resourceapi.ResourceClaimStatus{}
	w.set(free)
	expect(t, "hidden when one is free again", w.hidden(next), []string{"2-counted", "3-parts"})
	_, writes := w.place(next, "a")
	expect(t, "it is had", devicesOf(writes), []string{"1-whole/d1"})
}

// spent-unseen, spent-errors
func TestWhoMustSeeSpentPools(t *testing.T) {
	w := newWorld(t)
	w.class("gpu")
	w.node("a")
	w.fabric("1", nil, device("d0", "x"))
	w.fabric("2", []resourceapi.CounterSet{{Name: "card", Counters: counters("80Gi")}},
		device("d0", "x", draws("80Gi"), serial("1")), device("d1", "x", draws("80Gi")))
	w.fabric("3", nil, device("d0", "x", serial("1")))
	for _, pool := range []string{"1", "2"} {
		w.claim("of-"+pool, want("r", 1))
		_, writes := w.place(w.pod("of-"+pool, uses("of-"+pool)), "a")
		expect(t, "devices", devicesOf(writes), []string{pool + "/d0"})
		w.carryOut(writes)
	}
	w.claim("plain", want("r", 1))
	expect(t, "for a plain claim", w.hidden(w.pod("plain", uses("plain"))), []string{"1", "2"})

	admin, all, yes := want("r", 1), want("r", 0), true
	admin.Exactly.AdminAccess = &yes
	all.Exactly.AllocationMode = resourceapi.DeviceAllocationModeAll
	w.claim("admin", admin)
	_, writes := w.place(w.pod("admin", uses("admin")), "a")
	expect(t, "an admin looks at a device that another has", devicesOf(writes), []string{"1/d0"})
	w.claim("all", all)
	expect(t, "all of them, of which two are taken", w.fits(w.pod("all", uses("all"))), []string(nil))

	// d1 of pool 2 cannot be allocated, and has no serial number: the allocator stops there before it reaches pool 3.
	w.claim("numbered", want("r", 1, expr(`device.attributes["`+driver+`"].serial == "1"`)))
	if _, _, err := w.verdicts(w.pod("numbered", uses("numbered"))); err == nil ||
		!strings.Contains(err.Error(), "no such key: serial") {
		t.Fatalf("a selector that fails: %v", err)
	}
}
