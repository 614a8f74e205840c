// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// Drivers of devices: one on nodes, one whose pools any node can reach.
const (
	gpuDriver = "gpu.example.com"
	netDriver = "net.example.com"
)

// deviceClasses; the last exists nowhere.
var deviceClasses = []string{"gpu", "gpu", "gpu", "gpu", "net", "any", "any", "big", "wrong", "absent"}

// deviceObjects makes classes, slices and claims in every state.
func (m *maker) deviceObjects(s *scenario.Scenario, nodes []*v1.Node) {
	m.devices, m.deviceClaims, m.given, m.resourceOf = 0, nil, map[string]bool{}, map[string]string{}
	if !m.has["DynamicResources"] || !m.Chance(60) {
		return
	}
	m.devices, m.deviceClaims = Pick(m.Rand, 10, 30, 60), map[string][]string{}
	m.deviceClassObjects(s)
	share := Pick(m.Rand, 15, 40, 80)
	if len(nodes) > 200 {
		share = 10 // upstream sorts all pools for each pod
	}
	var pools []string
	for _, n := range nodes {
		if m.Chance(share) {
			for _, slice := range m.nodePool(n) {
				add(s, slice)
			}
			pools = append(pools, n.Name)
		}
	}
	for i := range m.Intn(3) {
		add(s, m.netPool(i))
	}
	for i := range m.Range(4, 12) {
		ns := Pick(m.Rand, namespaces...)
		c := m.deviceClaim(ns, fmt.Sprintf("claim-%d", i), pools)
		m.deviceClaims[ns] = append(m.deviceClaims[ns], c.Name)
		add(s, c)
	}
	// Rules have a stream of their own, so what is drawn after them is as without them.
	rules := *m
	rules.Rand = NewRand(m.Rand.state, 1)
	for i := range rules.Intn(3) {
		add(s, rules.taintRule(i, pools))
	}
}

// taintRule taints few devices, mostly.
func (m *maker) taintRule(i int, pools []string) *resourceapi.DeviceTaintRule {
	r := &resourceapi.DeviceTaintRule{ObjectMeta: m.meta("", fmt.Sprintf("rule-%d", i))}
	r.Spec.Taint = resourceapi.DeviceTaint{Key: Pick(m.Rand, "broken", "reserved"), Value: "yes",
		Effect: Pick(m.Rand, resourceapi.DeviceTaintEffectNoSchedule, resourceapi.DeviceTaintEffectNoExecute, resourceapi.DeviceTaintEffectNone)}
	if m.Rare(6) { // selects nothing
		return r
	}
	sel := &resourceapi.DeviceTaintSelector{}
	r.Spec.DeviceSelector = sel
	if m.Chance(50) {
		driver := Pick(m.Rand, gpuDriver, netDriver)
		sel.Driver = &driver
	}
	if m.Chance(80) {
		pool := Pick(m.Rand, append([]string{"nets-0"}, pools...)...)
		sel.Pool = &pool
	}
	if m.Chance(60) {
		device := Pick(m.Rand, "net-0", "gpu-0", "gpu-1")
		sel.Device = &device
	}
	return r
}

func (m *maker) deviceClassObjects(s *scenario.Scenario) {
	class := func(name, expression string) *resourceapi.DeviceClass {
		c := &resourceapi.DeviceClass{ObjectMeta: m.meta("", name)}
		if expression != "" {
			c.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}}
		}
		return c
	}
	for _, c := range []*resourceapi.DeviceClass{
		class("gpu", `device.driver == "gpu.example.com"`),
		class("net", `device.driver == "net.example.com"`),
		class("any", ""),
		class("big", `device.driver == "gpu.example.com" && device.capacity["gpu.example.com"].memory.compareTo(quantity("20Gi")) >= 0`),
		class("wrong", Pick(m.Rand, `device.attributes["gpu.example.com"].nothing == "x"`, `this does not parse`, `device.driver`)),
	} {
		if c.Name == "gpu" && m.Chance(50) {
			name := Pick(m.Rand, "example.com/gpu", "example.com/dra")
			c.Spec.ExtendedResourceName = &name
		}
		if m.Chance(93) {
			add(s, c)
			m.resourceOf[c.Name] = stated(c)
		}
	}
}

// nodePool is the slices of one node's GPUs: complete and at their newest, mostly.
func (m *maker) nodePool(n *v1.Node) []*resourceapi.ResourceSlice {
	slice := func(part string) *resourceapi.ResourceSlice {
		sl := &resourceapi.ResourceSlice{ObjectMeta: m.meta("", n.Name+"-gpus"+part)}
		name := n.Name
		sl.Spec = resourceapi.ResourceSliceSpec{Driver: gpuDriver, NodeName: &name, Pool: resourceapi.ResourcePool{Name: n.Name, Generation: 2, ResourceSliceCount: 1}}
		return sl
	}
	sl := slice("")
	counted := m.Chance(20)
	for i := range m.Range(1, 4) {
		sl.Spec.Devices = append(sl.Spec.Devices, m.gpu(i, counted))
	}
	out := []*resourceapi.ResourceSlice{sl}
	if counted {
		// Counters stand in a slice of their own.
		counters := slice("-counters")
		counters.Spec.SharedCounters = []resourceapi.CounterSet{{Name: "board", Counters: map[string]resourceapi.Counter{"memory": {Value: resource.MustParse(Pick(m.Rand, "20Gi", "40Gi"))}}}}
		sl.Spec.Pool.ResourceSliceCount, counters.Spec.Pool.ResourceSliceCount = 2, 2
		out = append(out, counters)
	}
	switch {
	case m.Rare(20): // a slice is missing; all state the same count, of several upstream takes any
		for _, part := range out {
			part.Spec.Pool.ResourceSliceCount++
		}
	case m.Rare(25): // an old generation lies about
		old := slice("-old")
		old.Spec.Pool.Generation = 1
		old.Spec.Devices = []resourceapi.Device{m.gpu(7, false)}
		out = append(out, old)
	case m.Rare(30): // one name twice
		sl.Spec.Devices = append(sl.Spec.Devices, sl.Spec.Devices[0])
	}
	return out
}

func (m *maker) gpu(i int, counted bool) resourceapi.Device {
	model, rank, fast := Pick(m.Rand, "a100", "a100", "h100"), int64(m.Intn(3)), m.Chance(50)
	d := resourceapi.Device{Name: fmt.Sprintf("gpu-%d", i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		"model": {StringValue: &model}, "rank": {IntValue: &rank}, "fast": {BoolValue: &fast},
	}}
	if m.Chance(90) {
		d.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse(Pick(m.Rand, "10Gi", "20Gi", "40Gi"))}}
	}
	if counted {
		d.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: "board", Counters: map[string]resourceapi.Counter{"memory": {Value: resource.MustParse(Pick(m.Rand, "10Gi", "20Gi"))}}}}
	}
	if m.Rare(6) {
		shared := true
		d.AllowMultipleAllocations = &shared
		if c, ok := d.Capacity["memory"]; ok && m.Chance(50) {
			least, most, step := resource.MustParse("1Gi"), resource.MustParse("16Gi"), resource.MustParse("1Gi")
			c.RequestPolicy = &resourceapi.CapacityRequestPolicy{Default: &least, ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: &least, Max: &most, Step: &step}}
			d.Capacity["memory"] = c
		}
	}
	if m.Rare(6) {
		d.Taints = []resourceapi.DeviceTaint{{Key: Pick(m.Rand, "broken", "reserved"), Value: "yes", Effect: Pick(m.Rand, resourceapi.DeviceTaintEffectNoSchedule, resourceapi.DeviceTaintEffectNoExecute, resourceapi.DeviceTaintEffectNone)}}
	}
	if m.Rare(12) {
		d.BindingConditions = []string{"example.com/attached"}
		d.BindingFailureConditions = []string{"example.com/failed"}
		if m.Chance(50) {
			on := true
			d.BindsToNode = &on
		}
	}
	return d
}

// netPool is devices that several nodes reach.
func (m *maker) netPool(i int) *resourceapi.ResourceSlice {
	yes := true
	sl := &resourceapi.ResourceSlice{ObjectMeta: m.meta("", fmt.Sprintf("nets-%d", i))}
	sl.Spec = resourceapi.ResourceSliceSpec{Driver: netDriver, Pool: resourceapi.ResourcePool{Name: fmt.Sprintf("nets-%d", i), Generation: 1, ResourceSliceCount: 1}}
	zone := func() *v1.NodeSelector {
		return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpIn, Values: []string{Pick(m.Rand, m.zones...)}}}}}}
	}
	perDevice := false
	switch m.Intn(4) {
	case 0:
		sl.Spec.AllNodes = &yes
	case 1:
		sl.Spec.PerDeviceNodeSelection, perDevice = &yes, true
	default:
		sl.Spec.NodeSelector = zone()
	}
	for j := range m.Range(1, 3) {
		fabric := Pick(m.Rand, "left", "right")
		d := resourceapi.Device{Name: fmt.Sprintf("net-%d", j), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"fabric": {StringValue: &fabric}}}
		if perDevice {
			if m.Chance(30) {
				d.AllNodes = &yes
			} else {
				d.NodeSelector = zone()
			}
		}
		sl.Spec.Devices = append(sl.Spec.Devices, d)
	}
	return sl
}

// deviceClaim is pending, allocated, reserved, or going away.
func (m *maker) deviceClaim(ns, name string, pools []string) *resourceapi.ResourceClaim {
	c := &resourceapi.ResourceClaim{ObjectMeta: m.meta(ns, name)}
	for i := range m.Range(1, Pick(m.Rand, 1, 1, 2)) {
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, m.deviceRequest(fmt.Sprintf("req-%d", i)))
	}
	if m.Chance(25) {
		attribute := resourceapi.FullyQualifiedName(Pick(m.Rand, "gpu.example.com/model", "gpu.example.com/rank", "net.example.com/fabric"))
		constraint := resourceapi.DeviceConstraint{MatchAttribute: &attribute}
		if m.Chance(40) {
			constraint = resourceapi.DeviceConstraint{DistinctAttribute: &attribute}
		}
		c.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{constraint}
	}
	switch n := m.Intn(100); {
	case n < 60:
	case n < 93:
		m.allocate(c, pools)
	case n < 97:
		at := Created
		c.DeletionTimestamp, c.Finalizers = &at, []string{"resource.kubernetes.io/delete-protection"}
	default:
		c.Spec.Devices.Requests[0] = resourceapi.DeviceRequest{Name: "req-0"}
	}
	return c
}

func (m *maker) deviceRequest(name string) resourceapi.DeviceRequest {
	r := resourceapi.DeviceRequest{Name: name}
	if m.Chance(35) {
		for i := range m.Range(1, 3) {
			e := m.exactly()
			r.FirstAvailable = append(r.FirstAvailable, resourceapi.DeviceSubRequest{
				Name: fmt.Sprintf("sub-%d", i), DeviceClassName: e.DeviceClassName, Selectors: e.Selectors, AllocationMode: e.AllocationMode,
				Count: e.Count, Tolerations: e.Tolerations, Capacity: e.Capacity,
			})
		}
		return r
	}
	r.Exactly = m.exactly()
	return r
}

func (m *maker) exactly() *resourceapi.ExactDeviceRequest {
	e := &resourceapi.ExactDeviceRequest{DeviceClassName: Pick(m.Rand, deviceClasses...), AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(Pick(m.Rand, 1, 1, 1, 2, 3))}
	if m.Rare(6) {
		e.AllocationMode, e.Count = resourceapi.DeviceAllocationModeAll, 0
	}
	if m.Rare(14) {
		e.AllocationMode = "Most"
	}
	if m.Chance(30) {
		e.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: Pick(m.Rand,
			`device.attributes["gpu.example.com"].model == "a100"`,
			`device.attributes["gpu.example.com"].rank >= 1`,
			`"fast" in device.attributes["gpu.example.com"] && device.attributes["gpu.example.com"].fast`,
			`device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("15Gi"))`,
		)}}}
	}
	if m.Rare(10) {
		yes := true
		e.AdminAccess = &yes
	}
	if m.Rare(6) {
		e.Tolerations = []resourceapi.DeviceToleration{{Key: Pick(m.Rand, "broken", "reserved", ""), Operator: resourceapi.DeviceTolerationOpExists}}
	}
	if m.Rare(7) {
		e.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse(Pick(m.Rand, "1Gi", "8Gi", "15Gi", "30Gi"))}}
	}
	return e
}

// allocate gives the claim a device, and consumers now and then.
func (m *maker) allocate(c *resourceapi.ResourceClaim, pools []string) {
	c.Finalizers = []string{"resource.kubernetes.io/delete-protection"}
	a := &resourceapi.AllocationResult{}
	if len(pools) > 0 && m.Chance(80) {
		node := Pick(m.Rand, pools...)
		a.Devices.Results = []resourceapi.DeviceRequestAllocationResult{{Request: c.Spec.Devices.Requests[0].Name, Driver: gpuDriver, Pool: node, Device: m.free(node, "gpu", 4)}}
		a.NodeSelector = &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{node}}}}}}
		if m.Rare(8) {
			yes := true
			a.Devices.Results[0].AdminAccess = &yes
		}
	} else {
		a.Devices.Results = []resourceapi.DeviceRequestAllocationResult{{Request: c.Spec.Devices.Requests[0].Name, Driver: netDriver, Pool: "nets-0", Device: m.free("nets-0", "net", 3)}}
		if m.Chance(60) {
			a.NodeSelector = &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{m.requirement(m.Rare(10))}}}}
		}
	}
	c.Status.Allocation = a
	switch n := m.Intn(10); {
	case n < 3:
		c.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "another", UID: "uid-another"}}
	case n < 4:
		for i := range resourceapi.ResourceClaimReservedForMaxSize {
			c.Status.ReservedFor = append(c.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: fmt.Sprintf("p-%d", i), UID: types.UID(fmt.Sprintf("uid-p-%d", i))})
		}
	}
}

// free draws a device that no claim has been given, one that is not there if all have:
// upstream forgets that a second claim has a device when the first one goes.
func (m *maker) free(pool, kind string, count int) string {
	for i := m.Intn(count); ; i++ {
		name := fmt.Sprintf("%s-%d", kind, i)
		if key := pool + "/" + name; !m.given[key] {
			m.given[key] = true
			return name
		}
	}
}

// claimDevices lets the pod ask for devices in percent of the draws.
func (m *maker) claimDevices(p *v1.Pod, percent int) {
	if m.devices == 0 || !m.Chance(percent) {
		return
	}
	if m.Chance(25) {
		m.deviceExtended(p)
		return
	}
	for i := range m.Range(1, Pick(m.Rand, 1, 1, 2)) {
		ref := v1.PodResourceClaim{Name: fmt.Sprintf("dev-%d", i)}
		names := m.deviceClaims[p.Namespace]
		name := "missing"
		if len(names) > 0 && !m.Rare(25) {
			name = Pick(m.Rand, names...)
		}
		if m.Chance(70) {
			ref.ResourceClaimName = &name
		} else {
			template := "template"
			ref.ResourceClaimTemplateName = &template
			m.generated(p, &ref)
		}
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, ref)
		c := &p.Spec.Containers[m.Intn(len(p.Spec.Containers))]
		c.Resources.Claims = append(c.Resources.Claims, v1.ResourceClaim{Name: ref.Name})
	}
}

// generated is the claim made from a template for the pod: existing, missing, not needed, or
// owned by another object.
func (m *maker) generated(p *v1.Pod, ref *v1.PodResourceClaim) {
	name := p.Name + "-" + ref.Name + "-x"
	if m.Rare(10) {
		return // no status yet
	}
	st := v1.PodResourceClaimStatus{Name: ref.Name}
	if !m.Rare(15) {
		st.ResourceClaimName = &name
		if !m.Rare(12) {
			c := m.deviceClaim(p.Namespace, name, nil)
			yes := true
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: &yes}}
			if m.Rare(10) {
				c.OwnerReferences[0].UID = "uid-another"
			}
			m.made = append(m.made, scenario.Object{APIObject: c})
		}
	}
	p.Status.ResourceClaimStatuses = append(p.Status.ResourceClaimStatuses, st)
}

// deviceExtended asks for an extended resource that a class may back.
func (m *maker) deviceExtended(p *v1.Pod) {
	name := Pick[v1.ResourceName](m.Rand, "example.com/gpu", "example.com/dra", "deviceclass.resource.kubernetes.io/gpu", "deviceclass.resource.kubernetes.io/absent")
	c := &p.Spec.Containers[m.Intn(len(p.Spec.Containers))]
	if c.Resources.Requests == nil {
		c.Resources.Requests = v1.ResourceList{}
	}
	c.Resources.Requests[name] = resource.MustParse(Pick(m.Rand, "0", "1", "1", "2"))
	if len(p.Spec.InitContainers) > 0 && m.Chance(40) {
		p.Spec.InitContainers[0].Resources.Requests = v1.ResourceList{name: resource.MustParse("1")}
	}
}

// changedDevices is changed for objects of devices.
func (m *maker) changedDevices(o scenario.APIObject) scenario.APIObject {
	switch old := o.(type) {
	case *resourceapi.ResourceClaim:
		if old.Status.Allocation != nil {
			// An allocation never changes; it goes, or its users do.
			old.Status.ReservedFor = nil
			if m.Chance(60) {
				old.Status.Allocation = nil
			}
			return old
		}
		next := m.deviceClaim(old.Namespace, old.Name, nil)
		next.OwnerReferences = old.OwnerReferences
		next.ResourceVersion = old.ResourceVersion
		return next
	case *resourceapi.DeviceClass:
		return m.changedClass(old)
	case *resourceapi.ResourceSlice:
		for i := range old.Spec.Devices {
			if old.Spec.Driver == gpuDriver {
				old.Spec.Devices[i] = m.gpu(i, len(old.Spec.Devices[i].ConsumesCounters) > 0)
			}
		}
		return old
	}
	return nil
}

// changedClass returns another version of a class, nil where upstream's cache of extended resources would become wrong:
// see sharesResource.
func (m *maker) changedClass(c *resourceapi.DeviceClass) scenario.APIObject {
	name := Pick(m.Rand, "example.com/gpu", "example.com/dra", "")
	switch {
	case m.Chance(40): // something else of it changes
		c.Labels = map[string]string{"changed": "yes"}
	case name == "":
		c.Spec.ExtendedResourceName = nil
	default:
		c.Spec.ExtendedResourceName = &name
	}
	had, next := m.resourceOf[c.Name], stated(c)
	if had != "" && had != next && (m.sharesResource(c.Name) || next != "" && m.isStated(next)) {
		return nil
	}
	m.resourceOf[c.Name] = next
	return c
}

// sharesResource reports whether another class states the extended resource of the class, too. Such a class must not
// leave the resource: upstream's cache forgets the other class with it, and pods that request the resource are
// scheduled as if no class backed it.
func (m *maker) sharesResource(class string) bool {
	for other, name := range m.resourceOf { // order: any other class will do
		if other != class && name != "" && name == m.resourceOf[class] {
			return true
		}
	}
	return false
}

// isStated reports whether a class states the extended resource. A class that states one must not change to such a
// resource: if upstream's cache prefers the other class, it keeps the former resource of this one.
func (m *maker) isStated(resource string) bool {
	for _, name := range m.resourceOf { // order: any class will do
		if name == resource {
			return true
		}
	}
	return false
}

// stated returns the extended resource that a class states, empty for none.
func stated(c *resourceapi.DeviceClass) string {
	if c.Spec.ExtendedResourceName == nil {
		return ""
	}
	return *c.Spec.ExtendedResourceName
}
