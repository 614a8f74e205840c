// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// fataler is what *testing.T and *rapid.T have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// world is a small cluster with one plugin.
type world struct {
	t       fataler
	store   *cluster.Store
	intake  *convert.Intake
	pl      *Plugin
	now     record.Time
	version int
	pods    map[string]*v1.Pod // name -> as the API server has it
}

func newWorld(t fataler) *world {
	w := &world{t: t, store: cluster.NewStore(), intake: convert.NewIntake(), now: record.Time(time.Hour),
		pods: map[string]*v1.Pod{}}
	w.pl = w.plugin(DefaultArgs(), NewInventory(DefaultFeatures()))
	return w
}

func (w *world) plugin(args Args, inv *Inventory) *Plugin {
	pl, err := New(args, inv)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	return pl
}

func (w *world) s() cluster.Snapshot {
	w.store.SetNow(w.now)
	return w.store.Snapshot()
}

func (w *world) txn(f func()) {
	w.store.Begin()
	f()
	w.store.Commit()
}

// set gives an object its next version.
func (w *world) set(obj cluster.Object) (old cluster.Object) {
	w.version++
	obj.SetResourceVersion(strconv.Itoa(w.version))
	w.txn(func() { old = w.store.SetObject(obj) })
	return old
}

func (w *world) node(name string, options ...func(*v1.Node)) {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name),
		Labels: map[string]string{"kubernetes.io/hostname": name}}}
	for _, o := range options {
		o(n)
	}
	w.txn(func() { w.store.SetNode(w.intake.Node(n)) })
}

func label(key, value string) func(*v1.Node) {
	return func(n *v1.Node) { n.Labels[key] = value }
}

func offers(pairs ...string) func(*v1.Node) {
	return func(n *v1.Node) { n.Status.Allocatable = list(pairs...) }
}

func list(pairs ...string) v1.ResourceList {
	l := v1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[v1.ResourceName(pairs[i])] = apiresource.MustParse(pairs[i+1])
	}
	return l
}

const driver = "gpu.example.com"

// device makes a device with a model.
func device(name, model string, options ...func(*resourceapi.Device)) resourceapi.Device {
	d := resourceapi.Device{Name: name, Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		"model": {StringValue: &model}}}
	for _, o := range options {
		o(&d)
	}
	return d
}

// slice publishes the devices of a node, in a pool of the node's name.
func (w *world) slice(node string, devices ...resourceapi.Device) {
	w.set(&resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "slice-" + node},
		Spec: resourceapi.ResourceSliceSpec{Driver: driver, NodeName: &node, Devices: devices,
			Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}},
	})
}

// taintRule adds a taint to the devices that a selector selects.
func taintRule(name string, sel *resourceapi.DeviceTaintSelector,
	effect resourceapi.DeviceTaintEffect) *resourceapi.DeviceTaintRule {
	return &resourceapi.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.DeviceTaintRuleSpec{DeviceSelector: sel,
			Taint: resourceapi.DeviceTaint{Key: "broken", Effect: effect}}}
}

func (w *world) rule(name string, sel *resourceapi.DeviceTaintSelector, effect resourceapi.DeviceTaintEffect) {
	w.set(taintRule(name, sel, effect))
}

func (w *world) class(name string, options ...func(*resourceapi.DeviceClass)) {
	c := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{expr(`device.driver == "` + driver +
			`"`)}}}
	for _, o := range options {
		o(c)
	}
	w.set(c)
}

func backs(resource string) func(*resourceapi.DeviceClass) {
	return func(c *resourceapi.DeviceClass) { c.Spec.ExtendedResourceName = &resource }
}

func createdAt(seconds int64) func(*resourceapi.DeviceClass) {
	return func(c *resourceapi.DeviceClass) { c.CreationTimestamp = metav1.Unix(seconds, 0) }
}

func expr(expression string) resourceapi.DeviceSelector {
	return resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}
}

func model(name string) resourceapi.DeviceSelector {
	return expr(`device.attributes["` + driver + `"].model == "` + name + `"`)
}

// want is a request for some devices of the class gpu.
func want(name string, count int64, selectors ...resourceapi.DeviceSelector) resourceapi.DeviceRequest {
	return resourceapi.DeviceRequest{Name: name, Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu",
		Count:          count,
		AllocationMode: resourceapi.DeviceAllocationModeExactCount, Selectors: selectors}}
}

// either is a request with alternatives, the better ones first.
func either(name string, models ...string) resourceapi.DeviceRequest {
	r := resourceapi.DeviceRequest{Name: name}
	for _, m := range models {
		r.FirstAvailable = append(r.FirstAvailable, resourceapi.DeviceSubRequest{Name: "sub-" + m,
			DeviceClassName: "gpu", Count: 1,
			AllocationMode: resourceapi.DeviceAllocationModeExactCount,
			Selectors:      []resourceapi.DeviceSelector{model(m)}})
	}
	return r
}

func newClaim(name string, requests ...resourceapi.DeviceRequest) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name,
		UID: types.UID("uid-" + name)},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: requests}}}
}

func (w *world) claim(name string, requests ...resourceapi.DeviceRequest) {
	w.set(newClaim(name, requests...))
}

// api is a claim as the API server has it, to be changed and set.
func (w *world) api(name string) *resourceapi.ResourceClaim {
	c, ok := cluster.FindAPI[*resourceapi.ResourceClaim](w.s(), "ns", name)
	if !ok {
		w.t.Helper()
		w.t.Fatalf("no claim %s", name)
	}
	return c.DeepCopy()
}

// allocated is a claim with devices of the pool of a node, usable there only.
func allocated(c *resourceapi.ResourceClaim, node string, devices ...string) *resourceapi.ResourceClaim {
	a := &resourceapi.AllocationResult{NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn,
			Values: []string{node}}}}}}}
	for _, d := range devices {
		a.Devices.Results = append(a.Devices.Results, resourceapi.DeviceRequestAllocationResult{Request: "r",
			Driver: driver, Pool: node, Device: d})
	}
	c.Status.Allocation = a
	return c
}

func usedBy(c *resourceapi.ResourceClaim, pods ...string) *resourceapi.ResourceClaim {
	for _, p := range pods {
		c.Status.ReservedFor = append(c.Status.ReservedFor,
			resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: p, UID: types.UID("uid-" + p)})
	}
	return c
}

type podOption func(*v1.Pod)

func uses(claim string) podOption {
	return func(p *v1.Pod) {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, v1.PodResourceClaim{Name: "c-" + claim,
			ResourceClaimName: &claim})
	}
}

// generated is a claim that is made from a template; made is its name, empty while it is not there.
func generated(name, made string) podOption {
	return func(p *v1.Pod) {
		template := "template"
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, v1.PodResourceClaim{Name: name,
			ResourceClaimTemplateName: &template})
		if made != "" {
			p.Status.ResourceClaimStatuses = append(p.Status.ResourceClaimStatuses,
				v1.PodResourceClaimStatus{Name: name, ResourceClaimName: &made})
		}
	}
}

func asks(pairs ...string) podOption {
	return func(p *v1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: fmt.Sprintf("c%d", len(p.Spec.Containers)),
			Resources: v1.ResourceRequirements{Requests: list(pairs...)}})
	}
}

func initAsks(sidecar bool, pairs ...string) podOption {
	return func(p *v1.Pod) {
		c := v1.Container{Name: fmt.Sprintf("i%d", len(p.Spec.InitContainers)),
			Resources: v1.ResourceRequirements{Requests: list(pairs...)}}
		if sidecar {
			always := v1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
}

func (w *world) pod(name string, options ...podOption) *cluster.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name),
		ResourceVersion: "1"}}
	for _, o := range options {
		o(p)
	}
	w.pods[name] = p
	return w.intake.Pod(p)
}

// verdicts are what the column form says: node -> why not, empty where the pod fits.
func (w *world) verdicts(p *cluster.Pod) (byNode map[string]string, reject string, err error) {
	s := w.s()
	plan := w.pl.PrepareFilter(s, p)
	byNode = map[string]string{}
	out := make([]plugin.Verdict, s.Rows())
	if plan.Err != nil || plan.Reject != "" {
		return nil, plan.Reject, plan.Err
	}
	if plan.Filter != nil {
		plan.Filter.Column(s, 0, cluster.NodeIdx(s.Rows()), plugin.TagOf(0), out)
		if err := plan.Filter.(plugin.Failing).Failed(); err != nil {
			return nil, "", err
		}
	}
	for n := range out {
		node := s.Node(cluster.NodeIdx(n))
		if node == nil {
			continue
		}
		byNode[node.Name] = ""
		if out[n] != plugin.Fits {
			byNode[node.Name] = plan.Filter.Reasons(out[n].Code())[0]
		}
	}
	return byNode, "", nil
}

// fits is the list of nodes on which a pod fits, by row; a rejection of the pod as a whole is fatal.
func (w *world) fits(p *cluster.Pod) (nodes []string) {
	w.t.Helper()
	byNode, reject, err := w.verdicts(p)
	if reject != "" || err != nil {
		w.t.Fatalf("%s: rejected %q, %v", p.Name, reject, err)
	}
	s := w.s()
	for n := range s.Rows() {
		if name := s.NodeName(cluster.NodeIdx(n)); byNode[name] == "" {
			nodes = append(nodes, name)
		}
	}
	return nodes
}

// place decides for a node as the engine does, and holds what the pod needs.
func (w *world) place(p *cluster.Pod, node string) (plugin.Reservation, []cluster.Write) {
	w.t.Helper()
	if byNode, reject, err := w.verdicts(p); reject != "" || err != nil || byNode[node] != "" {
		w.t.Fatalf("%s does not fit %s: %q %q %v", p.Name, node, byNode[node], reject, err)
	}
	var got plugin.Reserved
	w.txn(func() {
		t := w.store.Trial()
		n, _ := w.s().Find(node)
		t.Assume(p, n)
		got = w.pl.Reserve(t, p, n)
		t.Commit()
	})
	if got.Reject != "" || got.Err != nil {
		w.t.Fatalf("%s on %s: %q %v", p.Name, node, got.Reject, got.Err)
	}
	if got.Hold == nil {
		return nil, nil
	}
	return got.Hold, got.Hold.Writes()
}

// release is a failed attempt: what is held goes back, and the pod leaves its node.
func (w *world) release(p *cluster.Pod, hold plugin.Reservation, written bool) (writes []cluster.Write) {
	w.txn(func() {
		t := w.store.Trial()
		writes = hold.Release(t, written)
		t.Commit()
		w.store.Forget(p.UID)
	})
	return writes
}

// carryOut does to claims what the API server would do, one write after the other, each of them seen.
func (w *world) carryOut(writes []cluster.Write) {
	w.t.Helper()
	for _, wr := range writes {
		switch wr := wr.(type) {
		case cluster.AllocateClaim:
			c := w.api(wr.Name)
			c.Finalizers = []string{resourceapi.Finalizer}
			w.set(c)
			w.write(c.DeepCopy(), wr.Allocation, wr.ReservedFor)
		case cluster.CreateClaim:
			c := wr.Claim.DeepCopy()
			c.UID, c.Status = "uid-"+types.UID(c.Name), resourceapi.ResourceClaimStatus{}
			w.set(c)
			w.write(c.DeepCopy(), wr.Claim.Status.Allocation, wr.Claim.Status.ReservedFor[0])
		case cluster.ReleaseClaim:
			c := w.api(wr.Name)
			if wr.Deallocate {
				if c.ResourceVersion != wr.ResourceVersion {
					w.t.Fatalf("conflict: claim %s is at %s, not %s", wr.Name, c.ResourceVersion, wr.ResourceVersion)
				}
				c.Status = resourceapi.ResourceClaimStatus{}
			}
			var rest []resourceapi.ResourceClaimConsumerReference
			for _, r := range c.Status.ReservedFor {
				if string(r.UID) != string(wr.Consumer) {
					rest = append(rest, r)
				}
			}
			c.Status.ReservedFor = rest
			w.set(c)
		case cluster.DeleteClaim:
			w.txn(func() {
				w.store.DeleteObject(cluster.KindDeviceClaim, cluster.ObjectKey{Namespace: wr.Namespace, Name: wr.Name})
			})
		}
	}
}

func (w *world) write(c *resourceapi.ResourceClaim, a *resourceapi.AllocationResult,
	r resourceapi.ResourceClaimConsumerReference) {
	if a != nil {
		c.Status.Allocation = a.DeepCopy()
		at := metav1.NewTime(time.Unix(0, int64(w.now)))
		c.Status.Allocation.AllocationTimestamp = &at
	}
	c.Status.ReservedFor = append(c.Status.ReservedFor, r)
	w.set(c)
}

// devicesOf lists what the writes allocate.
func devicesOf(writes []cluster.Write) (names []string) {
	for _, wr := range writes {
		var a *resourceapi.AllocationResult
		switch wr := wr.(type) {
		case cluster.AllocateClaim:
			a = wr.Allocation
		case cluster.CreateClaim:
			a = wr.Claim.Status.Allocation
		}
		if a == nil {
			continue
		}
		for _, r := range a.Devices.Results {
			names = append(names, r.Pool+"/"+r.Device)
		}
	}
	return names
}

func expect[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if fmt.Sprintf("%v", got) != fmt.Sprintf("%v", want) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

// claimPod is a pod that uses the claim of its own name.
type claimPod struct{ *cluster.Pod }

func quantity(s string) apiresource.Quantity { return apiresource.MustParse(s) }

func capacity(memory string) map[resourceapi.QualifiedName]apiresource.Quantity {
	return map[resourceapi.QualifiedName]apiresource.Quantity{"memory": quantity(memory)}
}

// sharable lets claims take parts of a device's memory; one that does not say how much takes 1Gi.
func sharable(memory string) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) {
		yes, one := true, quantity("1Gi")
		d.AllowMultipleAllocations = &yes
		d.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: quantity(memory),
			RequestPolicy: &resourceapi.CapacityRequestPolicy{Default: &one,
				ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: &one}}}}
	}
}

func selector(key, value string) *v1.NodeSelector {
	return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchExpressions: []v1.NodeSelectorRequirement{{Key: key, Operator: v1.NodeSelectorOpIn,
			Values: []string{value}}}}}}
}

type (
	claimType       = resourceapi.ResourceClaim
	sliceType       = resourceapi.ResourceSlice
	deviceClassType = resourceapi.DeviceClass
)

// found is an object as the API server has it, nil when it is gone.
func found[T cluster.Object](v cluster.Snapshot, key cluster.ObjectKey) cluster.Object {
	obj, ok := cluster.FindAPI[T](v, key.Namespace, key.Name)
	if !ok {
		return nil
	}
	return obj
}
