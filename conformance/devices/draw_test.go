// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"
	"math/rand/v2"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// maker draws objects from few words, so that they meet.
type maker struct {
	*rand.Rand
	nodes  []string
	slices []*resourceapi.ResourceSlice
	shares int
	// sharing: claims can share a device. If they cannot, no device is in two claims: upstream frees it with the first
	// of them, kumiki with the last (docs/compatibility.md).
	sharing bool
	taken   map[string]bool // device -> some claim has it for itself
	now     time.Time
}

func (m *maker) chance(percent int) bool { return m.IntN(100) < percent }

func one[T any](m *maker, from ...T) T { return from[m.IntN(len(from))] }

func q(s string) resource.Quantity { return resource.MustParse(s) }

const (
	ns          = "ns"
	gpuResource = "example.com/gpu" // backed by the class gpu
	anyResource = "example.com/any" // backed by the class any, sometimes
)

var drivers = []string{"a.example.com", "b.example.com"}

func cel(expression string) resourceapi.DeviceSelector {
	return resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}
}

func (m *maker) node(name string) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"zone": one(m, "z", "w")}}}
	if m.chance(50) {
		n.Status.DeclaredFeatures = []string{"A", "DRAOptionalNodeOperations"}
	}
	n.Status.Allocatable = v1.ResourceList{"pods": q("100"), "cpu": q(one(m, "3", "10", "10"))}
	if m.chance(30) {
		n.Status.Allocatable[gpuResource] = q(one(m, "0", "2"))
	}
	if m.chance(20) {
		n.Status.Allocatable["example.com/foo"] = q(one(m, "0", "2"))
	}
	return n
}

func (m *maker) classes() []*resourceapi.DeviceClass {
	class := func(name string) *resourceapi.DeviceClass {
		return &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	gpu, anything := class("gpu"), class("any")
	gpu.Spec.Selectors = []resourceapi.DeviceSelector{cel(`device.driver == "a.example.com"`)}
	gpu.Spec.ExtendedResourceName = new(string)
	*gpu.Spec.ExtendedResourceName = gpuResource
	if m.chance(30) {
		anything.Spec.ExtendedResourceName = new(string)
		*anything.Spec.ExtendedResourceName = anyResource
	}
	if m.chance(20) {
		anything.Spec.Config = []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: resourceapi.DeviceConfiguration{
			Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: drivers[0]}}}}
	}
	return []*resourceapi.DeviceClass{gpu, anything}
}

func (m *maker) device(i int, counted bool) resourceapi.Device {
	d := resourceapi.Device{Name: fmt.Sprintf("d%d", i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}}
	yes, one1Gi := true, q("1Gi")
	if m.chance(90) {
		model := one(m, "x", "y")
		d.Attributes["model"] = resourceapi.DeviceAttribute{StringValue: &model}
	}
	if m.chance(70) {
		numa := int64(m.IntN(2))
		d.Attributes["numa"] = resourceapi.DeviceAttribute{IntValue: &numa}
	}
	if m.chance(30) {
		serial := fmt.Sprint(m.IntN(1000))
		d.Attributes["serial"] = resourceapi.DeviceAttribute{StringValue: &serial}
	}
	if m.chance(30) {
		d.AllowMultipleAllocations = &yes
		d.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: q("4Gi"),
			RequestPolicy: &resourceapi.CapacityRequestPolicy{Default: &one1Gi, ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: &one1Gi}}}}
	}
	if d.Capacity != nil && m.chance(30) {
		d.Capacity["cores"] = resourceapi.DeviceCapacity{Value: q("3"), RequestPolicy: fractions()}
	}
	if m.chance(15) {
		d.Taints = []resourceapi.DeviceTaint{{Key: "broken", Effect: resourceapi.DeviceTaintEffect(one(m, "NoSchedule", "NoExecute", "None"))}}
	}
	if m.chance(10) {
		d.BindingConditions, d.BindingFailureConditions = []string{"attached"}, []string{"broken"}
	}
	if counted {
		set := "card"
		if m.chance(3) {
			set = "nosuch"
		}
		d.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: set, Counters: counter(one(m, "20Gi", "40Gi", "80Gi"))}}
	}
	return d
}

// fractions is a range of shared capacity in fractions of a unit.
func fractions() *resourceapi.CapacityRequestPolicy {
	least, most, step := q("300m"), q("2500m"), q("200m")
	return &resourceapi.CapacityRequestPolicy{Default: &least, ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: &least, Max: &most, Step: &step}}
}

func counter(memory string) map[string]resourceapi.Counter {
	return map[string]resourceapi.Counter{"memory": {Value: q(memory)}}
}

func (m *maker) devices(n int, counted bool) (out []resourceapi.Device) {
	for i := range n {
		out = append(out, m.device(i, counted))
	}
	if len(out) > 1 && m.chance(3) {
		out[1].Name = out[0].Name
	}
	return out
}

func (m *maker) add(name string, spec resourceapi.ResourceSliceSpec) {
	m.slices = append(m.slices, &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec})
}

// publish draws the pools of a driver. A pool has the driver in its name: upstream's allocator mixes up the counters of
// pools of one name, in an order that depends on which node it is asked about first.
func (m *maker) publish(driver string) {
	for _, node := range m.nodes {
		if m.chance(70) {
			m.publishOn(driver, node)
		}
	}
	if m.chance(50) {
		m.publishShared(driver)
	}
}

func (m *maker) publishOn(driver, node string) {
	name := driver + "-" + node
	spec := resourceapi.ResourceSliceSpec{Driver: driver, NodeName: &node, Pool: resourceapi.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: 1}}
	if m.chance(10) {
		spec.Pool = resourceapi.ResourcePool{Name: driver + "-common", Generation: 1 + int64(m.IntN(2)), ResourceSliceCount: 1 + int64(m.IntN(3))}
	}
	if m.chance(7) {
		spec.Pool.ResourceSliceCount = 2
	}
	counted := m.chance(30)
	spec.Devices = m.devices(m.IntN(4), counted)
	if counted {
		spec.Pool.ResourceSliceCount = 2
		sets := spec
		sets.Devices, sets.SharedCounters = nil, []resourceapi.CounterSet{{Name: "card", Counters: counter("80Gi")}}
		m.add(name+"-counters", sets)
		if m.chance(7) {
			m.add(name+"-counters-again", sets)
		}
		if m.chance(10) {
			return
		}
	}
	m.add(name, spec)
	if m.chance(5) {
		spec.Pool.Generation, spec.Devices = 2, m.devices(m.IntN(3), false)
		m.add(name+"-next", spec)
	}
}

func (m *maker) publishShared(driver string) {
	spec := resourceapi.ResourceSliceSpec{Driver: driver, Devices: m.devices(1+m.IntN(3), false),
		Pool: resourceapi.ResourcePool{Name: driver + "-fabric", Generation: 1, ResourceSliceCount: 1}}
	zone := &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchExpressions: []v1.NodeSelectorRequirement{{Key: "zone", Operator: v1.NodeSelectorOpIn, Values: []string{"z"}}}}}}
	yes := true
	switch m.IntN(4) {
	case 0:
		spec.AllNodes = &yes
	case 1:
		spec.NodeSelector = zone
	case 2:
		spec.PerDeviceNodeSelection = &yes
		for i := range spec.Devices {
			switch m.IntN(3) {
			case 0:
				node := one(m, m.nodes...)
				spec.Devices[i].NodeName = &node
			case 1:
				spec.Devices[i].NodeSelector = zone
			case 2:
				spec.Devices[i].AllNodes = &yes
			}
		}
	}
	m.add(driver+"-fabric", spec)
}

// rule draws a version of a rule that taints devices.
func (m *maker) rule(number int) *resourceapi.DeviceTaintRule {
	r := &resourceapi.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("rule%d", number)}}
	r.Spec.Taint = resourceapi.DeviceTaint{Key: one(m, "worn", "hot"), Value: one(m, "", "yes"),
		Effect: resourceapi.DeviceTaintEffect(one(m, "NoSchedule", "NoExecute", "None"))}
	if m.chance(30) {
		r.Spec.Taint.TimeAdded = &metav1.Time{Time: m.now}
	}
	if m.chance(10) {
		return r
	}
	sel := &resourceapi.DeviceTaintSelector{}
	r.Spec.DeviceSelector = sel
	driver := one(m, drivers...)
	if m.chance(60) {
		sel.Driver = &driver
	}
	if m.chance(60) {
		pool := driver + "-" + one(m, append([]string{"common", "fabric"}, m.nodes...)...)
		sel.Pool = &pool
	}
	if m.chance(40) {
		device := fmt.Sprintf("d%d", m.IntN(3))
		sel.Device = &device
	}
	return r
}

func (m *maker) exact() *resourceapi.ExactDeviceRequest {
	yes := true
	e := &resourceapi.ExactDeviceRequest{DeviceClassName: one(m, "gpu", "gpu", "gpu", "any", "any"), AllocationMode: resourceapi.DeviceAllocationModeExactCount,
		Count: 1 + int64(m.IntN(2))}
	if m.chance(40) {
		e.Selectors = append(e.Selectors, cel(one(m, `device.attributes["a.example.com"].model == "x"`, `device.attributes["b.example.com"].?model.orValue("x") == "x"`,
			`"model" in device.attributes["a.example.com"] && device.attributes["a.example.com"].model == "y"`,
			`cel.bind(d, device.attributes["a.example.com"], !has(d.serial) || d.serial < "5")`)))
	}
	for _, odd := range []func(){
		func() { e.DeviceClassName = "none" },
		func() { e.DeviceClassName = "" },
		func() { e.Selectors = append(e.Selectors, cel(`device.attributes[`)) },
		func() { e.Count = 40 },
		func() { e.AllocationMode = "Odd" },
	} {
		if m.chance(2) {
			odd()
		}
	}
	if m.chance(15) {
		e.AllocationMode, e.Count = resourceapi.DeviceAllocationModeAll, 0
	}
	if m.chance(10) {
		e.AdminAccess = &yes
	}
	if m.chance(20) {
		e.Tolerations = []resourceapi.DeviceToleration{{Operator: resourceapi.DeviceTolerationOpExists}}
	}
	if m.chance(8) {
		e.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{"cores": q(one(m, "100m", "700m", "1", "1600m"))}}
	} else if m.chance(30) {
		e.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{"memory": q(one(m, "1Gi", "2Gi", "3Gi", "5Gi"))}}
	}
	return e
}

func (m *maker) requests() (out []resourceapi.DeviceRequest) {
	for i := range 1 + m.IntN(2) {
		r := resourceapi.DeviceRequest{Name: fmt.Sprintf("r%d", i)}
		switch {
		case m.chance(30):
			for j := range 1 + m.IntN(3) {
				e := m.exact()
				r.FirstAvailable = append(r.FirstAvailable, resourceapi.DeviceSubRequest{Name: fmt.Sprintf("s%d", j), DeviceClassName: e.DeviceClassName,
					Selectors: e.Selectors, AllocationMode: e.AllocationMode, Count: e.Count, Tolerations: e.Tolerations, Capacity: e.Capacity})
			}
		case m.chance(98):
			r.Exactly = m.exact()
		}
		out = append(out, r)
	}
	return out
}

func (m *maker) claim(name string) *resourceapi.ResourceClaim {
	c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID("uid-" + name)}}
	c.Spec.Devices.Requests = m.requests()
	if m.chance(20) {
		a := resourceapi.FullyQualifiedName(one(m, "a.example.com/model", "a.example.com/numa", "b.example.com/model"))
		constraint := resourceapi.DeviceConstraint{MatchAttribute: &a}
		switch {
		case m.chance(40):
			constraint = resourceapi.DeviceConstraint{DistinctAttribute: &a}
		case m.chance(5):
			constraint = resourceapi.DeviceConstraint{}
		}
		c.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{constraint}
	}
	if m.chance(10) {
		c.Spec.Devices.Config = []resourceapi.DeviceClaimConfiguration{{Requests: one(m, nil, []string{"r0"}, []string{"r0/s0"}), DeviceConfiguration: resourceapi.DeviceConfiguration{
			Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: drivers[1]}}}}
	}
	return c
}

// allocate gives a claim devices that are there, and that no other claim has been given for itself: of two claims with
// one device, upstream takes it for free once one has given it back.
func (m *maker) allocate(c *resourceapi.ResourceClaim) {
	a := &resourceapi.AllocationResult{}
	yes := true
	for range 1 + m.IntN(2) {
		if len(m.slices) == 0 {
			break
		}
		slice := one(m, m.slices...)
		if len(slice.Spec.Devices) == 0 {
			continue
		}
		d := one(m, slice.Spec.Devices...)
		r := resourceapi.DeviceRequestAllocationResult{Request: "r0", Driver: slice.Spec.Driver, Pool: slice.Spec.Pool.Name, Device: d.Name,
			BindingConditions: d.BindingConditions, BindingFailureConditions: d.BindingFailureConditions}
		if len(c.Spec.Devices.Requests) > 0 && len(c.Spec.Devices.Requests[0].FirstAvailable) > 0 {
			r.Request = "r0/s0"
		}
		if d.AllowMultipleAllocations != nil && m.chance(80) {
			m.shares++
			share := types.UID(fmt.Sprintf("share-%d", m.shares))
			r.ShareID = &share
			r.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{"memory": q(one(m, "1Gi", "2Gi"))}
		}
		if m.chance(10) {
			r.SkipNodeOperations = []resourceapi.SkipNodeOperation{"*"}
		}
		if m.chance(10) {
			r.AdminAccess = &yes
		} else if id := r.Pool + "/" + r.Device; r.ShareID == nil || !m.sharing {
			if m.taken[id] {
				continue
			}
			m.taken[id] = true
		}
		a.Devices.Results = append(a.Devices.Results, r)
		if slice.Spec.NodeName != nil {
			a.NodeSelector = &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{*slice.Spec.NodeName}}}}}}
		}
		if len(r.BindingConditions) > 0 && m.chance(70) {
			status := resourceapi.AllocatedDeviceStatus{Driver: r.Driver, Pool: r.Pool, Device: r.Device}
			for _, t := range []string{"attached", "broken"} {
				if m.chance(40) {
					status.Conditions = append(status.Conditions, metav1.Condition{Type: t, Status: metav1.ConditionStatus(one(m, "True", "False", "Unknown"))})
				}
			}
			c.Status.Devices = append(c.Status.Devices, status)
		}
	}
	if m.chance(70) {
		a.AllocationTimestamp = &metav1.Time{Time: m.now.Add(-time.Duration(m.IntN(2)) * time.Hour)}
	}
	c.Status.Allocation = a
	for _, name := range []string{"pending", "other"} {
		if m.chance(30) {
			c.Status.ReservedFor = append(c.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: name, UID: types.UID("uid-" + name)})
		}
	}
}

// pod draws a pod; its claims are those that it names and that are there.
func (m *maker) pod(name string, number int) (*v1.Pod, []*resourceapi.ResourceClaim) {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID("uid-" + name)}}
	var claims []*resourceapi.ResourceClaim
	for i := range m.IntN(3) {
		claim := fmt.Sprintf("c%d-%d", number, i)
		if m.chance(97) {
			c := m.claim(claim)
			if m.chance(30) {
				m.allocate(c)
			}
			if m.chance(3) {
				c.DeletionTimestamp = &metav1.Time{Time: m.now}
			}
			claims = append(claims, c)
		}
		asked, template := v1.PodResourceClaim{Name: "for-" + claim}, "template"
		switch {
		case m.chance(90):
			asked.ResourceClaimName = &claim
		case m.chance(50):
			asked.ResourceClaimTemplateName = &template
		default:
			asked.ResourceClaimTemplateName = &template
			p.Status.ResourceClaimStatuses = append(p.Status.ResourceClaimStatuses, v1.PodResourceClaimStatus{Name: asked.Name, ResourceClaimName: &claim})
		}
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, asked)
	}
	always := v1.ContainerRestartPolicyAlways
	for i := range 1 + m.IntN(3) {
		c := v1.Container{Name: fmt.Sprintf("c%d", i)}
		c.Resources.Requests = v1.ResourceList{"cpu": q("1")}
		for range m.IntN(2) {
			name := one(m, gpuResource, gpuResource, anyResource, "example.com/foo", "deviceclass.resource.kubernetes.io/any", "deviceclass.resource.kubernetes.io/none")
			c.Resources.Requests[v1.ResourceName(name)] = q(one(m, "0", "1", "1", "2"))
		}
		if !m.chance(30) {
			p.Spec.Containers = append(p.Spec.Containers, c)
			continue
		}
		if m.chance(30) {
			c.RestartPolicy = &always
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	return p, claims
}

// stale is a claim that an earlier attempt has left for a pod's extended resources.
func (m *maker) stale(p *v1.Pod, name string) *resourceapi.ResourceClaim {
	c, controller := m.claim(name), true
	c.Annotations = map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: &controller}
	for _, odd := range []func(){
		func() { owner.Controller = nil },
		func() { owner.Controller = new(bool) },
		func() { owner.Name = "another" },
		func() { owner.UID = "another" },
	} {
		if m.chance(5) {
			odd()
		}
	}
	c.OwnerReferences = []metav1.OwnerReference{owner}
	if m.chance(5) {
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "another", UID: "another"}, owner}
	}
	if m.chance(40) {
		m.allocate(c)
	}
	return c
}
