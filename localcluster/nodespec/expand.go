// SPDX-License-Identifier: Apache-2.0

package nodespec

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RackLabel is the label of Shape.Racks.
const RackLabel = "topology.kumiki.dev/rack"

// KubeletVersion is what nodes report; the API server and clients compare it with their own. Set when a program of
// another release is linked, see ldflags-1.36.txt; nothing else changes it.
var KubeletVersion = "v1.37.1"

const (
	defaultPods      = "110"
	defaultEphemeral = "100Gi"
)

// Nodes expands the spec in order: shape by shape, index by index.
func (s Spec) Nodes() []*v1.Node {
	out := make([]*v1.Node, 0, s.Count())
	for _, shape := range s.Shapes {
		capacity, allocatable := shape.resources()
		for i := range shape.Count {
			out = append(out, shape.node(i, len(out), capacity, allocatable))
		}
	}
	return out
}

// resources gives capacity and allocatable as a kubelet reports them: memory
// for pods is less by all huge pages, used or not.
func (s Shape) resources() (capacity, allocatable v1.ResourceList) {
	capacity = v1.ResourceList{
		v1.ResourcePods:             resource.MustParse(defaultPods),
		v1.ResourceEphemeralStorage: resource.MustParse(defaultEphemeral),
	}
	for name, q := range s.Capacity {
		capacity[name] = q.DeepCopy()
	}
	var hugeBytes resource.Quantity
	for _, size := range slices.Sorted(maps.Keys(s.HugePages)) {
		page := resource.MustParse(size)
		pool := resource.NewQuantity(page.Value()*s.HugePages[size], resource.BinarySI)
		capacity[v1.ResourceName(v1.ResourceHugePagesPrefix+size)] = *pool
		hugeBytes.Add(*pool)
	}
	for name, n := range s.Devices {
		capacity[v1.ResourceName(name)] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	allocatable = capacity.DeepCopy()
	for name, q := range s.Reserved {
		left := allocatable[name]
		left.Sub(q)
		allocatable[name] = left
	}
	memory := allocatable[v1.ResourceMemory]
	memory.Sub(hugeBytes)
	allocatable[v1.ResourceMemory] = memory
	for name, q := range s.Allocatable {
		allocatable[name] = q.DeepCopy()
	}
	return capacity, allocatable
}

// node makes node i of the shape; index counts over all shapes.
func (s Shape) node(i, index int, capacity, allocatable v1.ResourceList) *v1.Node {
	name := fmt.Sprintf("%s-%04d", s.Name, i)
	supplementalGroups := true
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: s.labels(name, i), Annotations: maps.Clone(s.Annotations)},
		Spec:       v1.NodeSpec{Taints: slices.Clone(s.Taints), Unschedulable: s.Unschedulable},
		Status: v1.NodeStatus{
			Capacity:    capacity.DeepCopy(),
			Allocatable: allocatable.DeepCopy(),
			Addresses: []v1.NodeAddress{
				{Type: v1.NodeInternalIP, Address: Address(index)},
				{Type: v1.NodeHostName, Address: name},
			},
			NodeInfo: v1.NodeSystemInfo{
				Architecture: "amd64", OperatingSystem: "linux", OSImage: "kumiki-localcluster",
				KernelVersion: "none", ContainerRuntimeVersion: "none://0", KubeletVersion: KubeletVersion,
			},
			Images:           slices.Clone(s.Images),
			Features:         &v1.NodeFeatures{SupplementalGroupsPolicy: &supplementalGroups},
			DeclaredFeatures: slices.Clone(s.DeclaredFeatures),
		},
	}
}

func (s Shape) labels(name string, i int) map[string]string {
	labels := map[string]string{
		v1.LabelHostname:           name,
		v1.LabelOSStable:           "linux",
		v1.LabelArchStable:         "amd64",
		v1.LabelInstanceTypeStable: s.Name,
		// The node lifecycle controller adds these when they are missing, with
		// two calls for each node.
		"beta.kubernetes.io/os":   "linux",
		"beta.kubernetes.io/arch": "amd64",
	}
	zone := 0
	if len(s.Zones) > 0 {
		zone = i % len(s.Zones)
		labels[v1.LabelTopologyZone] = s.Zones[zone]
		i /= len(s.Zones)
	}
	if s.Racks > 0 {
		rack := strconv.Itoa(i % s.Racks)
		if len(s.Zones) > 0 {
			rack = s.Zones[zone] + "-" + rack
		}
		labels[RackLabel] = "rack-" + rack
	}
	if s.Region != "" {
		labels[v1.LabelTopologyRegion] = s.Region
	}
	maps.Copy(labels, s.Labels)
	return labels
}

// Address is the made-up internal address of node index.
func Address(index int) string {
	n := index + 1
	return fmt.Sprintf("10.%d.%d.%d", 128+n>>16&63, n>>8&255, n&255)
}
