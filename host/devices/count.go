// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"context"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Counter counts devices for the scores of NodeResourcesFit and NodeResourcesBalancedAllocation, if their arguments
// name a resource that a class backs (upstream: noderesources, calculateDRAResourceTotals). All slices count,
// including those of pools that are being replaced, and tainted devices too.
//
// It always uses the current devices and nodes. Upstream caches without limit which devices match a class and which
// nodes a selector, so that it scores by outdated labels and attributes; and its NodeResourcesBalancedAllocation has
// no cache of compiled selectors, and crashes if a class with selectors backs one of its resources.
type Counter struct {
	inv *Inventory
	cel *cel.Cache

	counted map[countKey]counted // the last counts; at most maxCounted
}

// maxCounted bounds the cache: nodes may be added and removed under new names without limit.
const maxCounted = 1 << 16

type countKey struct {
	node     string
	resource v1.ResourceName
}

type count struct{ devices, taken int64 }

// counted is a count, valid while the node, the classes and the assignment of pools to nodes are the same and nothing
// in those pools changes. A decision changes one node's pools, so the counts of the other nodes stay valid.
type counted struct {
	count
	node              *cluster.Node
	epoch, layout, at uint64
}

var _ plugin.DeviceCounts = (*Counter)(nil)

// NewCounter returns a Counter over an inventory.
func NewCounter(inv *Inventory) *Counter {
	return &Counter{inv: inv, cel: inv.features.selectors()}
}

// Revision changes with slices, classes, and what is allocated.
func (c *Counter) Revision(s cluster.Snapshot) uint64 {
	c.inv.sync(s)
	return c.inv.clock + c.inv.epoch
}

// Count returns how many devices of the class that backs a resource a node could use, and how many of them are
// allocated. A selector that fails makes both 0.
func (c *Counter) Count(s cluster.Snapshot, n cluster.NodeIdx, resource v1.ResourceName) (devices, taken int64) {
	class := c.inv.backing[resource]
	if class == nil {
		return 0, 0
	}
	node := s.Node(n)
	key := countKey{node.Name, resource}
	got, known := c.counted[key]
	if !known || got.node != node || got.epoch != c.inv.epoch || got.layout != c.inv.layout ||
		got.at < c.lastChange(node) {
		if c.counted == nil || len(c.counted) >= maxCounted {
			c.counted = map[countKey]counted{}
		}
		got = counted{c.count(node, class), node, c.inv.epoch, c.inv.layout, c.inv.clock}
		c.counted[key] = got
	}
	return got.devices, got.taken
}

// lastChange returns when a device that the node might use was last changed, allocated or freed.
func (c *Counter) lastChange(node *cluster.Node) uint64 {
	return max(touched(c.inv.poolsOf[node.Name]), touched(c.inv.sharedPools))
}

func (c *Counter) count(node *cluster.Node, class *resourceapi.DeviceClass) (total count) {
	api := asNode(node)
	for _, slice := range c.inv.slicesFor(c.inv.poolsOf[node.Name], func(*pool) bool { return false }) {
		part, err := c.inSlice(api, slice, class)
		if err != nil {
			return count{}
		}
		total.devices += part.devices
		total.taken += part.taken
	}
	return total
}

func (c *Counter) inSlice(node *v1.Node, slice *resourceapi.ResourceSlice,
	class *resourceapi.DeviceClass) (part count, err error) {
	spec := &slice.Spec
	perDevice := spec.PerDeviceNodeSelection != nil && *spec.PerDeviceNodeSelection
	if !perDevice {
		if ok, err := c.here(node, spec.NodeName, spec.AllNodes, spec.NodeSelector, true); !ok || err != nil {
			return count{}, err
		}
	}
	for i := range spec.Devices {
		d := &spec.Devices[i]
		if perDevice {
			if ok, err := c.here(node, d.NodeName, d.AllNodes, d.NodeSelector, false); err != nil {
				return count{}, err
			} else if !ok {
				continue
			}
		}
		ok, err := c.matches(d, spec.Driver, class)
		if err != nil {
			return count{}, err
		}
		if !ok {
			continue
		}
		part.devices++
		id := structured.MakeDeviceID(spec.Driver, spec.Pool.Name, d.Name)
		if c.inv.state.AllocatedDevices.Has(id) || c.inv.sharers[id] > 0 {
			part.taken++
		}
	}
	return part, nil
}

// here reports whether a node can use a slice or a device. As in upstream, a slice without a node counts on every
// node, and a device without a node on none.
func (c *Counter) here(node *v1.Node, name *string, all *bool, selector *v1.NodeSelector, silent bool) (bool, error) {
	switch {
	case all != nil && *all:
		return true, nil
	case name != nil && *name != "" && *name == node.Name:
		return true, nil
	case selector != nil:
		return structured.NodeMatches(c.inv.features.Allocator, node, valueOf(name), false, selector)
	}
	return silent && valueOf(name) == "", nil
}

func valueOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (c *Counter) matches(d *resourceapi.Device, driver string, class *resourceapi.DeviceClass) (bool, error) {
	for _, sel := range class.Spec.Selectors {
		if sel.CEL == nil {
			continue
		}
		expr := c.cel.GetOrCompile(sel.CEL.Expression)
		if expr.Error != nil {
			return false, expr.Error
		}
		ok, _, err := expr.DeviceMatches(context.Background(), cel.Device{Driver: driver, Attributes: d.Attributes,
			Capacity: d.Capacity})
		if err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}
