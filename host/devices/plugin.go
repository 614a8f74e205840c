// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Name is the plugin's name in configurations.
const Name = "DynamicResources"

// Args are the arguments (upstream: DynamicResourcesArgs).
type Args struct {
	// FilterTimeout bounds the search for devices on one node; 0 means no bound.
	FilterTimeout time.Duration
	// BindingTimeout is how long a pod waits for the binding conditions of its devices; at least a second.
	BindingTimeout time.Duration
}

// DefaultArgs are upstream's defaults.
func DefaultArgs() Args {
	return Args{FilterTimeout: 10 * time.Second, BindingTimeout: 10 * time.Minute}
}

// Features are what depends on settings of the whole scheduler; see DefaultFeatures.
type Features struct {
	// Allocator are the features of upstream's allocator. Those of them that are about more than the allocator count
	// here, too: without PrioritizedList, claims with alternatives are rejected; without DeviceBindingAndStatus, no pod
	// waits for binding conditions; without ConsumableCapacity, a device that is shared is allocated.
	Allocator structured.Features
	// TaintRules applies the taints of DeviceTaintRules to devices (upstream: the gate DRADeviceTaintRules). Without
	// it, the kind need not be watched.
	TaintRules bool
}

// DefaultFeatures are those of kube-scheduler 1.37.1 with its default feature gates.
func DefaultFeatures() Features {
	return Features{TaintRules: true, Allocator: structured.Features{
		AdminAccess:            true,
		ConsumableCapacity:     true,
		DeviceBindingAndStatus: true,
		DeviceTaints:           true,
		PartitionableDevices:   true,
		PrioritizedList:        true,
	}}
}

// inOrder returns features for which the library goes through pools by name. For few features it picks its oldest
// allocator, which goes through them in map order. Ranges in fractions are not read where no capacity can be shared,
// and only the allocator of the default features knows them.
func (f Features) inOrder() Features {
	a := &f.Allocator
	if !a.ConsumableCapacity && !a.DeviceBindingAndStatus {
		a.FractionalCapacityRange = true
	}
	return f
}

// Plugin is DynamicResources (upstream: plugins/dynamicresources).
type Plugin struct {
	args Args
	inv  *Inventory
	cel  *cel.Cache
	// unusable returns why a request cannot be allocated with the scheduler's features; empty if it can.
	unusable func(c *podClaim, r *resourceapi.DeviceRequest) string

	last    *prepared // the result of the last PrepareFilter, for the later steps
	answers answers
	nodes   []nodeCopy // by row
	space   []answer   // of the last decision, by row
}

var (
	_ plugin.Gate           = (*Plugin)(nil)
	_ plugin.Filter         = (*Plugin)(nil)
	_ plugin.UncachedScorer = (*Plugin)(nil)
	_ plugin.Reserver       = (*Plugin)(nil)
	_ plugin.Remedier       = (*Plugin)(nil)
	_ plugin.Waker          = (*Plugin)(nil)
)

// celExpressions is the number of compiled selectors that are kept.
const celExpressions = 128

// New returns the plugin. Profiles of one scheduler share the inventory.
func New(args Args, inv *Inventory) (*Plugin, error) {
	switch {
	case args.FilterTimeout < 0:
		return nil, fmt.Errorf("%s: filterTimeout %v: must be zero or positive", Name, args.FilterTimeout)
	case inv.features.Allocator.DeviceBindingAndStatus && args.BindingTimeout < time.Second:
		return nil, fmt.Errorf("%s: bindingTimeout %v: must be at least 1 second", Name, args.BindingTimeout)
	}
	pl := &Plugin{args: args, inv: inv, cel: inv.features.selectors(), unusable: anyUsable}
	if !inv.features.Allocator.PrioritizedList {
		pl.unusable = alternativesUnusable
	}
	return pl, nil
}

// selectors returns a cache of compiled selectors of devices.
func (f Features) selectors() *cel.Cache {
	return cel.NewCache(celExpressions, cel.Features{EnableConsumableCapacity: f.Allocator.ConsumableCapacity})
}

func anyUsable(*podClaim, *resourceapi.DeviceRequest) string { return "" }

// alternativesUnusable rejects requests with alternatives.
func alternativesUnusable(c *podClaim, r *resourceapi.DeviceRequest) string {
	if r.Exactly != nil || len(r.FirstAvailable) == 0 {
		return ""
	}
	return fmt.Sprintf("resource claim %s, request %s: has subrequests, but the DRAPrioritizedList feature is disabled",
		keyOf(c.ResourceClaim), r.Name)
}

// Name returns the plugin's name.
func (*Plugin) Name() string { return Name }

// Reads declares claims, devices and what is allocated on any node, and the time that the allocator takes.
func (*Plugin) Reads() plugin.Reads {
	return plugin.ReadsNode | plugin.ReadsPods | plugin.ReadsRows | plugin.ReadsObjects | plugin.ReadsWholePod |
		plugin.ReadsOutside
}

// Gated reports whether a pod must wait because a claim that it names is missing, is being deleted, or belongs to
// another owner.
func (*Plugin) Gated(s cluster.Snapshot, p *cluster.Pod) (reason string, ok bool) {
	if p.Spec.Devices == nil {
		return "", true
	}
	if _, err := claimsOf(s, p); err != nil {
		return err.Error(), false
	}
	return "", true
}
