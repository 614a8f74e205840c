// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"
	"time"

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

// Gates are the allocator's feature gates at the defaults of 1.36.3. Only DRAListTypeAttributes is off.
var Gates = structured.Features{
	AdminAccess:            true,
	ConsumableCapacity:     true,
	DeviceBindingAndStatus: true,
	DeviceTaints:           true,
	PartitionableDevices:   true,
	PrioritizedList:        true,
}

// Plugin is DynamicResources (upstream: plugins/dynamicresources).
type Plugin struct {
	args Args
	inv  *Inventory
	cel  *cel.Cache

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
	case args.BindingTimeout < time.Second:
		return nil, fmt.Errorf("%s: bindingTimeout %v: must be at least 1 second", Name, args.BindingTimeout)
	}
	return &Plugin{
		args: args,
		inv:  inv,
		cel:  cel.NewCache(celExpressions, cel.Features{EnableConsumableCapacity: Gates.ConsumableCapacity}),
	}, nil
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
