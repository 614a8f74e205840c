// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func serial(number string) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) {
		d.Attributes["serial"] = resourceapi.DeviceAttribute{StringValue: &number}
	}
}

// twins is a world of four nodes with two devices each that differ in their serial numbers only.
func twins(t fataler) *world {
	w := newWorld(t)
	w.class("gpu")
	for _, n := range []string{"a", "b", "c", "d"} {
		w.node(n)
		w.slice(n, device("d0", "x", serial(n+"0")), device("d1", "x", serial(n+"1")))
	}
	return w
}

// asked is how many different answers are remembered of the last shape.
func (w *world) asked() int {
	shapes := w.pl.answers.shapes
	return len(shapes[len(shapes)-1].kinds.said)
}

// kind-untranslated, kind-taken-blind
func TestNodesOfOneKindAreAskedAboutOnce(t *testing.T) {
	w := twins(t)
	w.claim("c", want("r", 2, model("x")))
	expect(t, "all", w.fits(w.pod("p", uses("c"))), []string{"a", "b", "c", "d"})
	expect(t, "asked", w.asked(), 1)
	_, writes := w.place(w.pod("p", uses("c")), "c")
	expect(t, "devices", devicesOf(writes), []string{"c/d0", "c/d1"})
	w.carryOut(writes)
	sel := w.api("c").Status.Allocation.NodeSelector
	expect(t, "reach", sel.NodeSelectorTerms[0].MatchFields[0].Values, []string{"c"})

	w.claim("e", want("r", 2, model("x")))
	expect(t, "the others", w.fits(w.pod("q", uses("e"))), []string{"a", "b", "d"})
	expect(t, "asked", w.asked(), 2)
}

// kind-blind, kind-half-blind, kind-constraint-blind
func TestAKindIsWhatIsRead(t *testing.T) {
	w := twins(t)
	number := resourceapi.FullyQualifiedName(driver + "/serial")
	at := `device.attributes["` + driver + `"]`
	for i, c := range []struct {
		selector string
		want     []string
		kinds    int
	}{
		{at + `.serial == "b1"`, []string{"b"}, 4},
		{`device.attributes['` + driver + `'].?serial.orValue("") == "b1"`, []string{"b"}, 4},
		{`cel.bind(a, ` + at + `, a.serial == "b1")`, []string{"b"}, 4},
		{`["b1"].exists(s, s == ` + at + `.serial)`, []string{"b"}, 4},
		{`"serial" in ` + at, []string{"a", "b", "c", "d"}, 4},
		{at + `.model == "serial" || ` + at + `.model == "x"`, []string{"a", "b", "c", "d"}, 1},
		{`device.driver == "` + driver + `" && !device.allowMultipleAllocations`, []string{"a", "b", "c", "d"}, 1},
	} {
		name := fmt.Sprintf("c%d", i)
		w.claim(name, want("r", 1, expr(c.selector)))
		expect(t, c.selector, w.fits(w.pod("p", uses(name))), c.want)
		expect(t, "kinds for "+c.selector, w.asked(), c.kinds)
	}
	w.slice("b", device("d0", "x", serial("same")), device("d1", "x", serial("same")))
	c := newClaim("alike", want("r", 2))
	c.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: &number}}
	w.set(c)
	expect(t, "two of one number", w.fits(w.pod("p", uses("alike"))), []string{"b"})
	c = newClaim("unlike", want("r", 2))
	c.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{DistinctAttribute: &number}}
	w.set(c)
	expect(t, "two of different numbers", w.fits(w.pod("p", uses("unlike"))), []string{"a", "c", "d"})
}

// slices-stale
func TestASliceChangesItsNodeOnly(t *testing.T) {
	w := twins(t)
	w.claim("c", want("r", 2))
	p := w.pod("p", uses("c"))
	w.fits(p)
	w.slice("b", device("d0", "x"))
	expect(t, "one left", w.fits(p), []string{"a", "c", "d"})
	expect(t, "asked", w.asked(), 2)
	w.slice("b", device("d0", "x", serial("new")), device("d1", "x"))
	expect(t, "and back", w.fits(p), []string{"a", "b", "c", "d"})
	expect(t, "asked", w.asked(), 2)
	w.class("gpu", backs(gpuResource))
	expect(t, "after a change of the class", w.fits(p), []string{"a", "b", "c", "d"})
	expect(t, "asked anew", w.asked(), 1)
}

// counted publishes a node's devices with counters, in two slices of which one may be missing.
func (w *world) counted(node string, whole bool) {
	spec := resourceapi.ResourceSliceSpec{Driver: driver, NodeName: &node,
		Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 2}}
	sets := spec
	sets.SharedCounters = []resourceapi.CounterSet{{Name: "card", Counters: counters("80Gi")}}
	w.set(&resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "counters-" + node}, Spec: sets})
	if whole {
		spec.Devices = []resourceapi.Device{device("d0", "x", func(d *resourceapi.Device) {
			d.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: "card",
				Counters: counters("80Gi")}}
		})}
		w.set(&resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice-" + node}, Spec: spec})
	}
}

// The devices of a fabric reach nodes by zone, and one node by name. Two pods take them one after the other.
//
// shared-blind, shared-names, shared-stale
func TestNodesThatReachTheSameAreAskedAboutOnce(t *testing.T) {
	w := newWorld(t)
	w.class("gpu")
	for i, n := range []string{"a", "b", "c", "d", "e"} {
		w.node(n, label("zone", []string{"z", "w"}[i/3]))
	}
	own := "e"
	only := resourceapi.ResourceSliceSpec{Driver: driver, NodeName: &own,
		Pool: resourceapi.ResourcePool{Name: "own", Generation: 1, ResourceSliceCount: 1}}
	w.set(&resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Spec: only})
	yes := true
	each := resourceapi.ResourceSliceSpec{Driver: driver, PerDeviceNodeSelection: &yes,
		Devices: []resourceapi.Device{device("of-z", "x"), device("of-b", "x")},
		Pool:    resourceapi.ResourcePool{Name: "fabric", Generation: 1, ResourceSliceCount: 1}}
	b := "b"
	each.Devices[0].NodeSelector, each.Devices[1].NodeName = selector("zone", "z"), &b
	w.set(&resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "fabric"}, Spec: each})
	w.claim("c", want("r", 1))
	w.claim("d", want("r", 1))
	w.claim("e", want("r", 1))
	expect(t, "those of the zone", w.fits(w.pod("p", uses("c"))), []string{"a", "b", "c"})
	shapes := w.pl.answers.shapes
	expect(t, "answers", len(shapes[len(shapes)-1].shared.said), 2) // of a and c, and of d; b is named, e has a pool
	_, writes := w.place(w.pod("p", uses("c")), "c")
	expect(t, "devices", devicesOf(writes), []string{"fabric/of-z"})
	w.carryOut(writes)
	expect(t, "what is left", w.fits(w.pod("q", uses("d"))), []string{"b"})
	_, writes = w.place(w.pod("q", uses("d")), "b")
	expect(t, "devices", devicesOf(writes), []string{"fabric/of-b"})
	w.carryOut(writes)
	expect(t, "nothing is left", w.fits(w.pod("r", uses("e"))), []string(nil))
}

func TestCountersConcernTheNodesOfTheirPool(t *testing.T) {
	w := newWorld(t)
	w.class("gpu")
	for _, n := range []string{"a", "b"} {
		w.node(n)
		w.counted(n, true)
	}
	all := want("r", 0)
	all.Exactly.AllocationMode = resourceapi.DeviceAllocationModeAll
	w.claim("all", all)
	p := w.pod("p", uses("all"))
	expect(t, "all devices", w.fits(p), []string{"a", "b"})
	expect(t, "asked", w.asked(), 1)
	// Upstream's allocator reads the counters of an unfinished pool on the node of the pool only.
	w.counted("c", false)
	expect(t, "with an unfinished pool elsewhere", w.fits(p), []string{"a", "b"})
	w.node("c")
	_, _, err := w.verdicts(p)
	expect(t, "unfinished", fmt.Sprint(err),
		"claim ns/all, request r: asks for all devices, but resource pool gpu.example.com/c is currently being updated")
}
