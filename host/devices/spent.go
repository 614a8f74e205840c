// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"context"

	resourceapi "k8s.io/api/resource/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// The allocator scans pools in order and reads every device, including those of pools without free devices: a cluster
// that fills up would get slower with each claim. A pool without anything to allocate is hidden from it if that
// cannot change its result: not for a claim that requests all devices or admin access, and not if reading a device is
// an error, which the allocator reports although it could continue.

// spentNow is whether a pool is spent, computed on demand.
type spentNow struct {
	is bool
	at uint64 // pool.changed when it was computed; 0 for never
}

// spent reports whether no request for free devices can get anything of a pool. It reports false for a pool that is
// not whole.
func (inv *Inventory) spent(p *pool) bool {
	if p.spent.at != p.changed {
		p.spent = spentNow{sound(p.slices) && hasNoPoolError(p.slices) && inv.nothingLeft(p), p.changed}
	}
	return p.spent.is
}

// hasNoPoolError reports whether the allocator would find no error in a pool on any node, in addition to what makes it
// sound: devices have distinct names, and valid node selectors.
func hasNoPoolError(list []*resourceapi.ResourceSlice) bool {
	names := map[string]bool{} // device -> is there
	for _, slice := range list {
		for i := range slice.Spec.Devices {
			if names[slice.Spec.Devices[i].Name] {
				return false
			}
			names[slice.Spec.Devices[i].Name] = true
		}
		if sel := slice.Spec.NodeSelector; sel != nil {
			if _, err := nodeaffinity.NewNodeSelector(sel); err != nil {
				return false
			}
		}
	}
	return true
}

// nothingLeft reports whether no device of a sound pool can be allocated.
func (inv *Inventory) nothingLeft(p *pool) bool {
	left := inv.countersLeft(p)
	for _, slice := range p.slices {
		for i := range slice.Spec.Devices {
			d := &slice.Spec.Devices[i]
			id := structured.MakeDeviceID(p.id.driver, p.id.name, d.Name)
			several := d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations
			switch {
			case inv.state.AllocatedDevices.Has(id):
			case several && len(d.ConsumesCounters) > 0:
				return false // its first user pays for all
			case several && inv.partLeft(id, d):
				return false
			case !several && covers(left, d.ConsumesCounters):
				return false
			}
		}
	}
	return true
}

// countersLeft returns the free amount of each counter: counter set -> counter -> amount.
func (inv *Inventory) countersLeft(p *pool) map[string]map[string]apiresource.Quantity {
	left := map[string]map[string]apiresource.Quantity{}
	for _, slice := range p.slices {
		for _, set := range slice.Spec.SharedCounters {
			amounts := map[string]apiresource.Quantity{}
			for name, c := range set.Counters { // order: into a map
				amounts[name] = c.Value.DeepCopy()
			}
			left[set.Name] = amounts
		}
	}
	for _, slice := range p.slices {
		for i := range slice.Spec.Devices {
			d := &slice.Spec.Devices[i]
			if !inv.state.AllocatedDevices.Has(structured.MakeDeviceID(p.id.driver, p.id.name, d.Name)) {
				continue
			}
			for _, takes := range d.ConsumesCounters {
				for name, c := range takes.Counters { // order: sums
					q := left[takes.CounterSet][name]
					q.Sub(c.Value)
					left[takes.CounterSet][name] = q
				}
			}
		}
	}
	return left
}

func covers(left map[string]map[string]apiresource.Quantity, takes []resourceapi.DeviceCounterConsumption) bool {
	for _, set := range takes {
		for name, c := range set.Counters { // order: all must suffice
			q := left[set.CounterSet][name]
			if order := q.Cmp(c.Value); order < 0 {
				return false
			}
		}
	}
	return true
}

// partLeft reports whether the smallest part of a device that a claim can have is free.
func (inv *Inventory) partLeft(id structured.DeviceID, d *resourceapi.Device) bool {
	used := inv.state.AggregatedCapacity[id]
	for name, c := range d.Capacity { // order: any insufficient one decides
		is := used[name]
		if is == nil {
			continue
		}
		rest := c.Value.DeepCopy()
		rest.Sub(*is)
		if least := leastPart(&c); least != nil && rest.Cmp(*least) < 0 {
			return false
		}
	}
	return true
}

// leastPart returns the smallest amount of a capacity that a claim takes (KEP-5075); nil if that is unknown.
func leastPart(c *resourceapi.DeviceCapacity) *apiresource.Quantity {
	if c.RequestPolicy == nil {
		return &c.Value // always all of it
	}
	if r := c.RequestPolicy.ValidRange; r != nil {
		return r.Min
	}
	var least *apiresource.Quantity
	for i := range c.RequestPolicy.ValidValues {
		if v := &c.RequestPolicy.ValidValues[i]; least == nil || v.Cmp(*least) < 0 {
			least = v
		}
	}
	return least
}

// soundlyRead is whether all devices of a pool can be read for the claims of a shape without an error.
type soundlyRead struct {
	epoch, slices uint64 // Inventory.epoch and pool.slicesAt when it was computed
	is            bool
}

// hides returns a function that reports whether a pool can be hidden for the claims of a decision.
func (pr *prepared) hides(v *variant, claims []*resourceapi.ResourceClaim) func(*pool) bool {
	requests, freeOnly := pr.plainRequests(claims)
	if !freeOnly {
		return func(*pool) bool { return false }
	}
	inv, sh := pr.pl.inv, pr.shapeOf(v)
	return func(p *pool) bool {
		if !inv.spent(p) {
			return false
		}
		if sh.read == nil || len(sh.read) > 2*len(inv.pools) {
			sh.read = map[poolID]soundlyRead{}
		}
		r := sh.read[p.id]
		if r.epoch != inv.epoch || r.slices != p.slicesAt {
			r = soundlyRead{inv.epoch, p.slicesAt, pr.readable(p, requests)}
			sh.read[p.id] = r
		}
		return r.is
	}
}

// plainRequest is what the allocator requires of a device.
type plainRequest struct {
	class     *resourceapi.DeviceClass
	selectors []resourceapi.DeviceSelector
	capacity  *resourceapi.CapacityRequirements
}

// plainRequests returns all requests and alternatives of claims. They are for free devices only if none requests all
// matching devices, free or not, or admin access to devices that others have.
func (pr *prepared) plainRequests(claims []*resourceapi.ResourceClaim) (out []plainRequest, freeOnly bool) {
	freeOnly = true
	add := func(class string, mode resourceapi.DeviceAllocationMode, admin *bool,
		selectors []resourceapi.DeviceSelector, capacity *resourceapi.CapacityRequirements) {
		c, _ := cluster.Find[*resourceapi.DeviceClass](pr.s, "", class)
		out = append(out, plainRequest{c, selectors, capacity})
		if mode == resourceapi.DeviceAllocationModeAll || admin != nil && *admin {
			freeOnly = false
		}
	}
	for _, c := range claims {
		for i := range c.Spec.Devices.Requests {
			r := &c.Spec.Devices.Requests[i]
			if e := r.Exactly; e != nil {
				add(e.DeviceClassName, e.AllocationMode, e.AdminAccess, e.Selectors, e.Capacity)
			}
			for j := range r.FirstAvailable {
				e := &r.FirstAvailable[j]
				add(e.DeviceClassName, e.AllocationMode, nil, e.Selectors, e.Capacity)
			}
		}
	}
	return out, freeOnly
}

// readable reads all devices of a pool as the allocator does, and reports whether it met no error.
func (pr *prepared) readable(p *pool, requests []plainRequest) bool {
	for _, slice := range p.slices {
		if slice.Spec.PerDeviceNodeSelection != nil {
			return false
		}
		for i := range slice.Spec.Devices {
			d := &slice.Spec.Devices[i]
			for _, r := range requests {
				if r.class == nil || !pr.reads(d, p.id.driver, &r) {
					return false
				}
			}
		}
	}
	return true
}

// reads reports whether a request can be evaluated on a device without an error.
func (pr *prepared) reads(d *resourceapi.Device, driver string, r *plainRequest) bool {
	if r.capacity != nil {
		for name := range r.capacity.Requests { // order: all must exist
			if _, has := d.Capacity[name]; !has {
				return false
			}
		}
	}
	for _, selectors := range [][]resourceapi.DeviceSelector{r.class.Spec.Selectors, r.selectors} {
		for _, sel := range selectors {
			if sel.CEL == nil {
				return false
			}
			expr := pr.pl.cel.GetOrCompile(sel.CEL.Expression)
			if expr.Error != nil {
				return false
			}
			ok, _, err := expr.DeviceMatches(context.Background(), cel.Device{Driver: driver,
				AllowMultipleAllocations: d.AllowMultipleAllocations,
				Attributes:               d.Attributes, Capacity: d.Capacity})
			if err != nil {
				return false
			}
			if !ok {
				return true // it is not read further
			}
		}
	}
	return true
}
