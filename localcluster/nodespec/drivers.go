// SPDX-License-Identifier: Apache-2.0

package nodespec

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Drivers is what drivers publish about a node.
type Drivers struct {
	// CSINode is nil for a node without CSI drivers.
	CSINode *storagev1.CSINode
	Slices  []*resourceapi.ResourceSlice
}

// Drivers lists what drivers publish, by position in Nodes. The objects have no
// owner yet: that is the node as the API server made it.
func (s Spec) Drivers() []Drivers {
	out := make([]Drivers, 0, s.Count())
	for _, shape := range s.Shapes {
		for i := range shape.Count {
			name := fmt.Sprintf("%s-%04d", shape.Name, i)
			d := Drivers{CSINode: shape.csiNode(name)}
			for _, c := range shape.Claimable {
				d.Slices = append(d.Slices, c.slice(name))
			}
			out = append(out, d)
		}
	}
	return out
}

// CSIDrivers are the CSI drivers of all shapes, sorted.
func (s Spec) CSIDrivers() []string {
	// all: driver -> is there.
	all := map[string]bool{}
	for _, shape := range s.Shapes {
		for driver := range shape.CSI {
			all[driver] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// topologyKey is where a volume of a node can be reached from.
func (s Shape) topologyKey() string {
	if len(s.Zones) > 0 {
		return v1.LabelTopologyZone
	}
	return v1.LabelHostname
}

func (s Shape) csiNode(name string) *storagev1.CSINode {
	if len(s.CSI) == 0 {
		return nil
	}
	n := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, driver := range slices.Sorted(maps.Keys(s.CSI)) {
		d := storagev1.CSINodeDriver{Name: driver, NodeID: name, TopologyKeys: []string{s.topologyKey()}}
		if limit := s.CSI[driver]; limit > 0 {
			d.Allocatable = &storagev1.VolumeNodeResources{Count: &limit}
		}
		n.Spec.Drivers = append(n.Spec.Drivers, d)
	}
	return n
}

func (c Claimable) slice(node string) *resourceapi.ResourceSlice {
	s := &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node + "-" + c.Driver},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: c.Driver, NodeName: &node,
			Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
		},
	}
	for i := range c.Count {
		d := resourceapi.Device{Name: fmt.Sprintf("device-%d", i)}
		for _, name := range slices.Sorted(maps.Keys(c.Attributes)) {
			if d.Attributes == nil {
				d.Attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}
			}
			value := c.Attributes[name]
			d.Attributes[resourceapi.QualifiedName(name)] = resourceapi.DeviceAttribute{StringValue: &value}
		}
		for _, name := range slices.Sorted(maps.Keys(c.Capacity)) {
			if d.Capacity == nil {
				d.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{}
			}
			d.Capacity[resourceapi.QualifiedName(name)] = resourceapi.DeviceCapacity{Value: c.Capacity[name]}
		}
		s.Spec.Devices = append(s.Spec.Devices, d)
	}
	return s
}
