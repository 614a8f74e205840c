// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

// without replaces the plugin by one without a feature of the allocator.
func (w *world) without(turnOff func(*structured.Features)) *Inventory {
	f := DefaultFeatures()
	turnOff(&f.Allocator)
	inv := NewInventory(f)
	w.pl = w.plugin(DefaultArgs(), inv)
	return inv
}

// Catches alternativesAlways.
func TestWithoutTheFeatureAlternativesAreRejected(t *testing.T) {
	w := twoGPUs(t)
	w.without(func(f *structured.Features) { f.PrioritizedList = false })
	w.claim("c", either("r", "new", "old"))
	w.claim("plain", want("r", 1))
	_, reject, err := w.verdicts(w.pod("p", uses("c")))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "reject", reject,
		"resource claim ns/c, request r: has subrequests, but the DRAPrioritizedList feature is disabled")
	expect(t, "a claim without alternatives", w.fits(w.pod("q", uses("plain"))), []string{"a", "b"})
}

// Catches conditionsAlways and waitAlways.
func TestWithoutTheFeatureNoConditionCounts(t *testing.T) {
	w, _, _ := fabric(t)
	w.says("c", "broken")
	w.without(func(f *structured.Features) { f.DeviceBindingAndStatus = false })
	q := w.pod("q", uses("c"))
	expect(t, "fits", w.fits(q), []string{"a"})
	hold, writes := w.place(q, "a")
	w.carryOut(writes)
	expect(t, "ready", hold.Ready(w.s(), w.now).Ready, true)
	if _, err := New(Args{}, NewInventory(Features{})); err != nil {
		t.Errorf("without a bindingTimeout: %v", err)
	}
}

// Catches sharesAlways.
func TestWithoutTheFeatureASharedDeviceIsAllocated(t *testing.T) {
	w := newWorld(t)
	w.class("gpu")
	w.node("a")
	w.slice("a", device("d0", "big", sharable("10Gi")))
	w.claim("c", want("r", 1))
	_, writes := w.place(w.pod("p", uses("c")), "a")
	w.carryOut(writes)
	inv := w.without(func(f *structured.Features) { f.ConsumableCapacity = false })
	inv.sync(w.s())
	if !inv.state.AllocatedDevices.Has(structured.MakeDeviceID(driver, "a", "d0")) ||
		len(inv.state.AllocatedSharedDeviceIDs) > 0 {
		t.Errorf("allocated: %v, shares %v", inv.state.AllocatedDevices, inv.state.AllocatedSharedDeviceIDs)
	}
}

// With few features the library would go through pools in map order. Catches poolsInAnyOrder.
func TestPoolsAreInOrderWithFewFeatures(t *testing.T) {
	for range 20 {
		w := newWorld(t)
		w.without(func(f *structured.Features) { *f = structured.Features{} })
		w.class("gpu")
		w.node("a")
		for i := range 5 {
			w.set(&resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("slice", i)},
				Spec: resourceapi.ResourceSliceSpec{Driver: driver, NodeName: new("a"),
					Devices: []resourceapi.Device{device("d0", "x")},
					Pool: resourceapi.ResourcePool{Name: fmt.Sprint("pool", i), Generation: 1,
						ResourceSliceCount: 1}}})
		}
		w.claim("c", want("r", 1))
		_, writes := w.place(w.pod("p", uses("c")), "a")
		w.carryOut(writes)
		expect(t, "pool", w.api("c").Status.Allocation.Devices.Results[0].Pool, "pool0")
	}
}
