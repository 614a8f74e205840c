// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"cmp"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// Inventory is the state derived of slices, claims and classes, and is kept between decisions: one for each
// scheduler, updated (sync) before it is read.
type Inventory struct {
	features Features

	seen    bool   // sync has run
	clock   uint64 // counts changes of slices and of allocations
	epoch   uint64 // counts changes of classes
	classes uint64 // revision of the classes that are indexed
	taints  uint64 // revision of the taint rules that are applied
	// sliceSeq and claimSeq are the positions up to which the store's journals are applied.
	sliceSeq, claimSeq uint64

	published

	// held is the devices of each claim.
	held map[cluster.ObjectKey]*holding // claim -> its devices
	// unseen are the claims in held whose allocation is not observed in the API server yet.
	unseen map[cluster.ObjectKey]unseen // claim -> as it was counted
	state  structured.AllocatedState
	// times counts how often a device is allocated, if that is more than once; only claims written by hand do that.
	times map[structured.DeviceID]int // device -> claims that take it, from 2
	// sharers counts the shares of a device.
	sharers map[structured.DeviceID]int // device -> shares

	// madeFor are the claims that were created for extended resources.
	madeFor map[podID]cluster.ObjectKey // pod -> claim
	// backing are the classes that back extended resources.
	backing map[v1.ResourceName]*resourceapi.DeviceClass // resource -> class
}

// holding is the devices of one claim.
type holding struct {
	devices  []structured.DeviceID
	shares   []structured.SharedDeviceID
	capacity []structured.DeviceConsumedCapacity
	pools    []poolID
	madeFor  podID
}

// unseen is an assumed claim. Whether it counts can change although the claim does not: with its pod, or with time.
type unseen struct {
	claim *resourceapi.ResourceClaim
	void  bool
}

// NewInventory returns an empty inventory.
func NewInventory(f Features) *Inventory {
	return &Inventory{features: f.inOrder()}
}

// sync applies the changes of the store.
func (inv *Inventory) sync(s cluster.Snapshot) {
	if r := s.KindRevision(cluster.KindDeviceClass); !inv.seen || r != inv.classes {
		inv.classes = r
		inv.epoch++
		inv.backing = BackingClasses(s)
	}
	if r := s.KindRevision(cluster.KindDeviceTaint); inv.features.TaintRules && (!inv.seen || r != inv.taints) {
		inv.taints = r
		inv.applyRules(plugin.DeviceTaintRules(s))
	}
	slices, next, ok := s.KindChanges(cluster.KindResourceSlice, inv.sliceSeq)
	inv.sliceSeq = next
	if !inv.seen || !ok {
		inv.indexAll(s)
	} else {
		for _, key := range slices {
			inv.reindex(s, key)
		}
	}
	claims, next, ok := s.KindChanges(cluster.KindDeviceClaim, inv.claimSeq)
	inv.claimSeq = next
	switch {
	case !inv.seen || !ok:
		inv.countAll(s)
	default:
		for _, key := range claims {
			inv.recount(s, key)
		}
		for key, was := range inv.unseen { // order: each claim is handled on its own
			if void(s, was.claim) != was.void {
				inv.recount(s, key)
			}
		}
	}
	inv.seen = true
}

// countAll counts all allocations again.
func (inv *Inventory) countAll(s cluster.Snapshot) {
	inv.held = map[cluster.ObjectKey]*holding{}
	inv.unseen = map[cluster.ObjectKey]unseen{}
	inv.madeFor = map[podID]cluster.ObjectKey{}
	inv.times, inv.sharers = map[structured.DeviceID]int{}, map[structured.DeviceID]int{}
	inv.state = structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	inv.clock++
	for _, p := range inv.pools { // order: each pool is marked on its own
		p.changed = inv.clock
	}
	cluster.Each(s, func(claim *resourceapi.ResourceClaim) bool {
		inv.recount(s, cluster.KeyOf(claim))
		return true
	})
}

// recount replaces what is counted for one claim.
func (inv *Inventory) recount(s cluster.Snapshot, key cluster.ObjectKey) {
	claim, _ := cluster.Find[*resourceapi.ResourceClaim](s, key.Namespace, key.Name)
	is := &holding{}
	delete(inv.unseen, key)
	if claim != nil {
		waits := pending(s, claim)
		isVoid := waits && void(s, claim)
		if waits {
			inv.unseen[key] = unseen{claim, isVoid}
		}
		if !isVoid {
			is = inv.holds(claim)
		}
		is.madeFor = madeForPod(claim)
	}
	was := inv.held[key]
	if was != nil && was.equal(is) {
		return
	}
	if was != nil {
		inv.count(was, -1)
		if was.madeFor != (podID{}) && inv.madeFor[was.madeFor] == key {
			delete(inv.madeFor, was.madeFor)
		}
	}
	delete(inv.held, key)
	if claim != nil {
		inv.held[key] = is
		inv.count(is, 1)
		if is.madeFor != (podID{}) {
			inv.madeFor[is.madeFor] = key
		}
	}
}

func (h *holding) equal(o *holding) bool {
	if h.madeFor != o.madeFor || len(h.devices) != len(o.devices) || len(h.shares) != len(o.shares) ||
		len(h.capacity) != len(o.capacity) {
		return false
	}
	for i := range h.devices {
		if h.devices[i] != o.devices[i] {
			return false
		}
	}
	for i := range h.shares { // a share ID stands for one allocation, so for its capacity too
		if h.shares[i] != o.shares[i] {
			return false
		}
	}
	return true
}

// holds returns the devices of a claim's allocation. Devices with admin access are not allocated, and shares of a
// device are devices if no device can be shared (upstream: foreachAllocatedDevice).
func (inv *Inventory) holds(claim *resourceapi.ResourceClaim) *holding {
	h, sharing := &holding{}, inv.features.Allocator.ConsumableCapacity
	if claim.Status.Allocation == nil {
		return h
	}
	for i := range claim.Status.Allocation.Devices.Results {
		r := &claim.Status.Allocation.Devices.Results[i]
		if r.AdminAccess != nil && *r.AdminAccess {
			continue
		}
		h.pools = append(h.pools, poolID{r.Driver, r.Pool})
		id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
		if r.ShareID == nil || !sharing {
			h.devices = append(h.devices, id)
			continue
		}
		h.shares = append(h.shares, structured.MakeSharedDeviceID(id, r.ShareID))
		if r.ConsumedCapacity != nil {
			h.capacity = append(h.capacity, structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
		}
	}
	return h
}

// count adds (1) or subtracts (-1) a holding.
func (inv *Inventory) count(h *holding, sign int) {
	if len(h.pools) == 0 {
		return
	}
	inv.clock++
	for _, id := range h.pools {
		if p := inv.pools[id]; p != nil {
			p.changed = inv.clock
		}
	}
	for _, id := range h.devices {
		inv.countDevice(id, sign)
	}
	for _, id := range h.shares {
		device := id.GetDeviceID()
		if inv.sharers[device] += sign; inv.sharers[device] == 0 {
			delete(inv.sharers, device)
		}
		if sign > 0 {
			inv.state.AllocatedSharedDeviceIDs.Insert(id)
		} else {
			inv.state.AllocatedSharedDeviceIDs.Delete(id)
		}
	}
	for _, c := range h.capacity {
		if sign > 0 {
			inv.state.AggregatedCapacity.Insert(c)
		} else {
			inv.state.AggregatedCapacity.Remove(c)
		}
	}
}

func (inv *Inventory) countDevice(id structured.DeviceID, sign int) {
	n := inv.times[id]
	if n == 0 && inv.state.AllocatedDevices.Has(id) {
		n = 1
	}
	n += sign
	if n > 0 {
		inv.state.AllocatedDevices.Insert(id)
	} else {
		inv.state.AllocatedDevices.Delete(id)
	}
	if n > 1 {
		inv.times[id] = n
	} else {
		delete(inv.times, id)
	}
}

// podID identifies a pod that an owner reference names. The zero value is no pod.
type podID struct {
	name string
	uid  cluster.UID
}

// madeForPod returns the pod for whose extended resources a claim was created; the zero value for all other claims. An
// owner reference may have no field `controller`.
func madeForPod(claim *resourceapi.ResourceClaim) podID {
	if claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] != "true" {
		return podID{}
	}
	owner := metav1.GetControllerOfNoCopy(claim)
	if owner == nil {
		return podID{}
	}
	return podID{owner.Name, cluster.UID(owner.UID)}
}

// BackingClasses returns the class that backs each extended resource: by its implicit name, or by the one it
// declares, with preference for the newest class, and among equally old ones for the first by name. If two classes
// declare one name, upstream's cache depends on the order in which it observed them; this does not.
func BackingClasses(s cluster.Snapshot) map[v1.ResourceName]*resourceapi.DeviceClass {
	backing := map[v1.ResourceName]*resourceapi.DeviceClass{}
	cluster.Each(s, func(class *resourceapi.DeviceClass) bool {
		backing[v1.ResourceName(resourceapi.ResourceDeviceClassPrefix+class.Name)] = class
		if class.Spec.ExtendedResourceName == nil {
			return true
		}
		name := v1.ResourceName(*class.Spec.ExtendedResourceName)
		if was := backing[name]; was == nil || newer(class, was) {
			backing[name] = class
		}
		return true
	})
	return backing
}

func newer(a, b *resourceapi.DeviceClass) bool {
	age := cmp.Compare(a.CreationTimestamp.UnixNano(), b.CreationTimestamp.UnixNano())
	return age > 0 || age == 0 && a.Name < b.Name
}

// mayBeBacked reports whether a device class can back a resource of this name at all (upstream:
// scheduler/util.IsDRAExtendedResourceName).
func mayBeBacked(name v1.ResourceName) bool {
	return strings.HasPrefix(string(name), resourceapi.ResourceDeviceClassPrefix) || resource.IsExtended(name)
}
