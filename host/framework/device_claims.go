// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/host/devices"
)

// deviceManager gives the devices of the cluster and the claims to them, with what native decisions and plugins have
// allocated since. Native plugins do not see what plugins note here.
type deviceManager struct {
	h *Host

	mu      sync.Mutex
	pending map[types.UID]*pendingClaim                      // claim -> what plugins will allocate
	assumed map[cluster.ObjectKey]*resourceapi.ResourceClaim // claim -> as a plugin has written it
}

// pendingClaim is a claim that will be allocated for some pods.
type pendingClaim struct {
	claim *resourceapi.ResourceClaim
	users int // Invariant: > 0
}

var (
	_ fwk.SharedDRAManager     = (*deviceManager)(nil)
	_ fwk.ResourceClaimTracker = deviceClaims{}
)

// ResourceClaims returns the claims.
func (m *deviceManager) ResourceClaims() fwk.ResourceClaimTracker { return deviceClaims{m} }

// ResourceSlices returns the devices.
func (m *deviceManager) ResourceSlices() fwk.ResourceSliceLister { return deviceSlices{m.h} }

// DeviceClasses returns the classes of devices.
func (m *deviceManager) DeviceClasses() fwk.DeviceClassLister { return deviceClasses{m.h} }

// DeviceClassResolver returns which class backs an extended resource.
func (m *deviceManager) DeviceClassResolver() fwk.DeviceClassResolver { return deviceClasses{m.h} }

// deviceSlices lists slices of devices.
type deviceSlices struct{ h *Host }

// ListWithDeviceTaintRules returns the slices with the taints of the rules that the scheduler watches.
func (l deviceSlices) ListWithDeviceTaintRules() ([]*resourceapi.ResourceSlice, error) {
	list, err := listOf[*resourceapi.ResourceSlice](l.h)
	if err != nil {
		return nil, err
	}
	rules := plugin.DeviceTaintRules(l.h.infos.state)
	for i := range list {
		list[i] = plugin.TaintedSlice(list[i], rules)
	}
	return list, nil
}

// deviceClasses lists classes of devices.
type deviceClasses struct{ h *Host }

// List returns all classes, by name.
func (l deviceClasses) List() ([]*resourceapi.DeviceClass, error) {
	return listOf[*resourceapi.DeviceClass](l.h)
}

// Get returns a class.
func (l deviceClasses) Get(name string) (*resourceapi.DeviceClass, error) {
	return objectNamed[*resourceapi.DeviceClass](l.h, "", name, func() error {
		return apierrors.NewNotFound(resourceapi.Resource("deviceclasses"), name)
	})
}

// GetDeviceClass returns the class that backs an extended resource, nil for none.
func (l deviceClasses) GetDeviceClass(name v1.ResourceName) *resourceapi.DeviceClass {
	s, err := l.h.readable()
	if err != nil {
		return nil
	}
	return devices.BackingClasses(s)[name]
}

// deviceClaims are the claims, as plugins read and change them. Reading needs a call in progress; noting does not.
type deviceClaims struct{ m *deviceManager }

// now returns a claim as a plugin has written it, or else the version of the engine. m.mu must be held.
func (c deviceClaims) now(claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	key := cluster.KeyOf(claim)
	written := c.m.assumed[key]
	if written == nil {
		return claim
	}
	order, err := resourceversion.CompareResourceVersion(claim.ResourceVersion, written.ResourceVersion)
	if err != nil || order >= 0 || claim.UID != written.UID {
		delete(c.m.assumed, key) // it is observed, or another claim is
		return claim
	}
	return written
}

// List returns all claims, by namespace and name.
func (c deviceClaims) List() ([]*resourceapi.ResourceClaim, error) {
	list, err := listOf[*resourceapi.ResourceClaim](c.m.h)
	if err != nil {
		return nil, err
	}
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	for i := range list {
		list[i] = c.now(list[i])
	}
	return list, nil
}

// Get returns a claim.
func (c deviceClaims) Get(namespace, name string) (*resourceapi.ResourceClaim, error) {
	claim, err := objectNamed[*resourceapi.ResourceClaim](c.m.h, namespace, name, func() error {
		return apierrors.NewNotFound(resourceapi.Resource("resourceclaims"), name)
	})
	if err != nil {
		return nil, err
	}
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	return c.now(claim), nil
}

// ListAllAllocatedDevices returns the devices that claims have or will have, those with admin access left out.
func (c deviceClaims) ListAllAllocatedDevices() (sets.Set[structured.DeviceID], error) {
	state, err := c.GatherAllocatedState()
	if err != nil {
		return nil, err
	}
	return state.AllocatedDevices, nil
}

// GatherAllocatedState returns what claims have or will have of devices.
func (c deviceClaims) GatherAllocatedState() (*structured.AllocatedState, error) {
	list, err := c.List()
	if err != nil {
		return nil, err
	}
	list = append(list, c.signalled()...)
	state := &structured.AllocatedState{AllocatedDevices: sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection()}
	for _, claim := range list {
		if claim.Status.Allocation != nil {
			countDevices(state, claim.Status.Allocation.Devices.Results)
		}
	}
	return state, nil
}

// signalled returns the claims that will be allocated, by namespace and name.
func (c deviceClaims) signalled() (claims []*resourceapi.ResourceClaim) {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	for _, p := range c.m.pending { // order: sorted below
		claims = append(claims, p.claim)
	}
	slices.SortFunc(claims, func(a, b *resourceapi.ResourceClaim) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return claims
}

// countDevices adds what a claim has.
func countDevices(state *structured.AllocatedState, results []resourceapi.DeviceRequestAllocationResult) {
	for i := range results {
		r := &results[i]
		if r.AdminAccess != nil && *r.AdminAccess {
			continue
		}
		id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
		if r.ShareID == nil {
			state.AllocatedDevices.Insert(id)
			continue
		}
		state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, r.ShareID))
		if r.ConsumedCapacity != nil {
			state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
		}
	}
}

// SignalClaimPendingAllocation notes that a claim will be allocated. If that is noted already, the allocation noted
// first stays, and has one more user. A claim that is allocated is left as it is.
func (c deviceClaims) SignalClaimPendingAllocation(uid types.UID, claim *resourceapi.ResourceClaim) error {
	if claim == nil || claim.Status.Allocation == nil {
		return errors.New("the pending allocation of a claim is missing")
	}
	c.m.mu.Lock()
	if p := c.m.pending[uid]; p != nil {
		p.users++
		c.m.mu.Unlock()
		return nil
	}
	c.m.mu.Unlock()
	if claim.ResourceVersion != "" { // else it is yet to be created
		now, err := c.Get(claim.Namespace, claim.Name)
		if err != nil {
			return fmt.Errorf("looking up claim %s/%s: %w", claim.Namespace, claim.Name, err)
		}
		if now.UID == uid && now.Status.Allocation != nil {
			return nil
		}
	}
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	c.m.pending[uid] = &pendingClaim{claim, 1}
	return nil
}

// GetPendingAllocation returns the allocation that a claim will have, nil for none.
func (c deviceClaims) GetPendingAllocation(uid types.UID) *resourceapi.AllocationResult {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if p := c.m.pending[uid]; p != nil {
		return p.claim.Status.Allocation
	}
	return nil
}

// MaybeRemoveClaimPendingAllocation removes one user of a pending allocation, or all. It reports whether none is left.
func (c deviceClaims) MaybeRemoveClaimPendingAllocation(uid types.UID, all bool) bool {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	p := c.m.pending[uid]
	if p == nil {
		return false
	}
	if p.users--; p.users > 0 && !all {
		return false
	}
	delete(c.m.pending, uid)
	return true
}

// AssumeClaimAfterAPICall notes a claim as the API server has returned it, until the engine observes that version.
func (c deviceClaims) AssumeClaimAfterAPICall(claim *resourceapi.ResourceClaim) error {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	c.m.assumed[cluster.KeyOf(claim)] = claim
	return nil
}

// AssumedClaimRestore forgets such a note.
func (c deviceClaims) AssumedClaimRestore(namespace, name string) {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	delete(c.m.assumed, cluster.ObjectKey{Namespace: namespace, Name: name})
}
