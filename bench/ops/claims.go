// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"fmt"
	"path"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

// createDriver publishes the devices of a driver on the nodes of an operation: one pool for each node, in as many slices as
// the devices need.
func (r *run) createDriver(ctx context.Context, op *workload.CreateResourceDriver) error {
	list, err := r.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	var slices []*resourceapi.ResourceSlice
	for i := range list.Items {
		node := list.Items[i].Name
		matches, err := path.Match(op.Nodes, node)
		if err != nil {
			return fmt.Errorf("pattern of nodes %s: %w", op.Nodes, err)
		}
		if matches {
			slices = append(slices, deviceSlices(op.Driver, node, op.ClaimsPerNode)...)
		}
	}
	if len(slices) == 0 {
		return fmt.Errorf("no node is called %s", op.Nodes)
	}
	return r.each(ctx, len(slices), func(ctx context.Context, i int) error {
		if _, err := r.Client.ResourceV1().ResourceSlices().Create(ctx, slices[i], metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create ResourceSlice %s: %w", slices[i].Name, err)
		}
		return nil
	})
}

// deviceSlices list count devices of a driver on a node, as those of scheduler_perf (dra.go) look: selectors of its
// workloads read their attributes.
func deviceSlices(driver, node string, count int) []*resourceapi.ResourceSlice {
	model, family, version := "A100", "GPU", "1.2.3"
	parts := max(1, (count+resourceapi.ResourceSliceMaxDevices-1)/resourceapi.ResourceSliceMaxDevices)
	out := make([]*resourceapi.ResourceSlice, parts)
	for part := range out {
		out[part] = &resourceapi.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%s-%d", node, driver, part)},
			Spec: resourceapi.ResourceSliceSpec{
				Driver: driver, NodeName: &node,
				Pool: resourceapi.ResourcePool{Name: node, ResourceSliceCount: int64(parts)},
			},
		}
	}
	for i := range count {
		number := int64(i)
		spec := &out[i/resourceapi.ResourceSliceMaxDevices].Spec
		spec.Devices = append(spec.Devices, resourceapi.Device{
			Name: fmt.Sprintf("instance-%d", i),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"model": {StringValue: &model}, "family": {StringValue: &family}, "driverVersion": {VersionValue: &version},
				"dra.example.com/numa": {IntValue: &number},
			},
			Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse("1Gi")}},
		})
	}
	return out
}

// classes is the list of device classes that the allocator reads.
type classes struct {
	list   []*resourceapi.DeviceClass
	byName map[string]*resourceapi.DeviceClass // name -> class
}

var _ structured.DeviceClassLister = (*classes)(nil)

// List gives all.
func (c *classes) List() ([]*resourceapi.DeviceClass, error) { return c.list, nil }

// Get gives one.
func (c *classes) Get(name string) (*resourceapi.DeviceClass, error) {
	if class := c.byName[name]; class != nil {
		return class, nil
	}
	return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclasses"), name)
}

// allFeatures makes the allocator read all fields that the API server accepts.
var allFeatures = structured.Features{
	AdminAccess: true, ConsumableCapacity: true, DeviceTaints: true, ListTypeAttributes: true, PartitionableDevices: true,
	PrioritizedList: true, CompatibilityGroups: true,
}

// celCacheSize is how many compiled selectors are kept.
const celCacheSize = 10

// devices are the devices to allocate, as listed at the start: nothing else changes them during the operation.
type devices struct {
	classes *classes
	slices  []*resourceapi.ResourceSlice
	nodes   []*corev1.Node
	taken   structured.AllocatedState
	cel     *cel.Cache
}

func (r *run) devices(ctx context.Context) (*devices, error) {
	d := &devices{
		classes: &classes{byName: map[string]*resourceapi.DeviceClass{}},
		cel:     cel.NewCache(celCacheSize, cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true}),
		taken: structured.AllocatedState{
			AllocatedDevices: sets.New[structured.DeviceID](), AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
			AggregatedCapacity: structured.NewConsumedCapacityCollection(),
		},
	}
	classList, err := r.Client.ResourceV1().DeviceClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list DeviceClasses: %w", err)
	}
	for i := range classList.Items {
		class := &classList.Items[i]
		d.classes.list = append(d.classes.list, class)
		d.classes.byName[class.Name] = class
	}
	sliceList, err := r.Client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list ResourceSlices: %w", err)
	}
	for i := range sliceList.Items {
		d.slices = append(d.slices, &sliceList.Items[i])
	}
	nodeList, err := r.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	for i := range nodeList.Items {
		d.nodes = append(d.nodes, &nodeList.Items[i])
	}
	return d, nil
}

// take records the devices of an allocation.
func (d *devices) take(a *resourceapi.AllocationResult) {
	for i := range a.Devices.Results {
		got := &a.Devices.Results[i]
		if got.AdminAccess != nil && *got.AdminAccess {
			continue
		}
		id := structured.MakeDeviceID(got.Driver, got.Pool, got.Device)
		if got.ShareID == nil {
			d.taken.AllocatedDevices.Insert(id)
			continue
		}
		d.taken.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, got.ShareID))
		if got.ConsumedCapacity != nil {
			d.taken.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, got.ConsumedCapacity))
		}
	}
}

// allocate returns devices for a claim on the first node that has some, beginning with a given node; nil if no node
// has.
func (d *devices) allocate(ctx context.Context, claim *resourceapi.ResourceClaim, from int) (*resourceapi.AllocationResult, error) {
	allocator, err := structured.NewAllocator(ctx, allFeatures, d.taken, d.classes, d.slices, d.cel)
	if err != nil {
		return nil, err
	}
	for i := range d.nodes {
		results, err := allocator.Allocate(ctx, d.nodes[(from+i)%len(d.nodes)], []*resourceapi.ResourceClaim{claim})
		if err != nil {
			return nil, err
		}
		if len(results) > 0 {
			return &results[0], nil
		}
	}
	return nil, nil
}

// allocClaims allocates devices to claims without an allocation and without pods, one after the other and node by
// node. scheduler_perf draws the nodes at random; here every run has the same devices.
func (r *run) allocClaims(ctx context.Context, op *workload.AllocResourceClaims) error {
	d, err := r.devices(ctx)
	if err != nil {
		return err
	}
	all, err := r.Client.ResourceV1().ResourceClaims(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list ResourceClaims: %w", err)
	}
	var wanted []*resourceapi.ResourceClaim
	for i := range all.Items {
		switch claim := &all.Items[i]; {
		case claim.Status.Allocation != nil:
			d.take(claim.Status.Allocation)
		case op.Namespace == "" || claim.Namespace == op.Namespace:
			wanted = append(wanted, claim)
		}
	}
	for i, claim := range wanted {
		got, err := d.allocate(ctx, claim, i)
		if err != nil {
			return fmt.Errorf("allocate claim %s/%s: %w", claim.Namespace, claim.Name, err)
		}
		if got == nil {
			return fmt.Errorf("allocate claim %s/%s, number %d of %d: no node has devices for it", claim.Namespace, claim.Name, i, len(wanted))
		}
		claim.Status.Allocation = got
		if _, err := r.Client.ResourceV1().ResourceClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("write the allocation of claim %s/%s: %w", claim.Namespace, claim.Name, err)
		}
		d.take(got)
	}
	return nil
}
