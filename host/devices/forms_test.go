// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// history is a world in which things happen at random.
type history struct {
	*world
	t     *rapid.T
	nodes []string
	holds []flying
	made  int // claims so far
}

type flying struct {
	pod    *cluster.Pod
	hold   plugin.Reservation
	writes []cluster.Write
}

var models = []string{"x", "y"}

func newHistory(t *rapid.T) *history {
	h := &history{world: newWorld(t), t: t}
	h.class("gpu", backs(gpuResource))
	for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
		h.nodes = append(h.nodes, fmt.Sprintf("n%d", i))
		h.relabel(h.nodes[i])
		if !h.dice("bare", 3) {
			h.plug(h.nodes[i])
		}
	}
	return h
}

func (h *history) pick(what string, from []string) string {
	return rapid.SampledFrom(from).Draw(h.t, what)
}
func (h *history) coin(what string) bool { return rapid.Bool().Draw(h.t, what) }
func (h *history) dice(what string, sides int) bool {
	return rapid.IntRange(1, sides).Draw(h.t, what) == 1
}

func (h *history) relabel(node string) {
	h.node(node, label("zone", h.pick("zone", []string{"z", "w"})))
	if h.dice("device plugin", 4) {
		h.node(node, offers(gpuResource, "2"))
	}
}

func (h *history) someDevices(of string) []resourceapi.Device {
	var devices []resourceapi.Device
	for i := range rapid.IntRange(0, 3).Draw(h.t, "devices of "+of) {
		var options []func(*resourceapi.Device)
		if h.dice("sharable", 4) {
			options = append(options, sharable("4Gi"))
		}
		if h.dice("tainted", 5) {
			options = append(options, tainted(resourceapi.DeviceTaintEffectNoSchedule))
		}
		if h.dice("attachable", 6) {
			options = append(options, attachable)
		}
		options = append(options, serial(fmt.Sprintf("%s-%d", of, i)))
		if h.dice("odd", 3) {
			options = append(options, func(d *resourceapi.Device) { delete(d.Attributes, "serial") })
		}
		devices = append(devices, device(fmt.Sprintf("d%d", i), h.pick("model", models), options...))
	}
	return devices
}

// plug publishes the devices of a node, sometimes as a pool of two slices, sometimes an unfinished one, or with
// counters.
func (h *history) plug(node string) {
	spec := resourceapi.ResourceSliceSpec{Driver: driver, NodeName: &node, Devices: h.someDevices(node),
		Pool: resourceapi.ResourcePool{Name: node, Generation: int64(h.version + 1), ResourceSliceCount: 1}}
	if h.dice("unfinished", 6) {
		spec.Pool.ResourceSliceCount = 2
	}
	if h.dice("counters", 3) {
		spec.Pool.ResourceSliceCount = 2
		for i := range spec.Devices {
			spec.Devices[i].ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: "card",
				Counters: counters(h.pick("draws", []string{"20Gi", "40Gi", "80Gi"}))}}
		}
		sets := spec
		sets.Devices, sets.SharedCounters = nil, []resourceapi.CounterSet{{Name: "card", Counters: counters("80Gi")}}
		h.set(&resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "counters-" + node}, Spec: sets})
	}
	h.set(&resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice-" + node}, Spec: spec})
}

// cable publishes devices that several nodes can use.
func (h *history) cable() {
	spec := resourceapi.ResourceSliceSpec{Driver: driver, Devices: h.someDevices("fabric"),
		Pool: resourceapi.ResourcePool{Name: "fabric", Generation: int64(h.version + 1), ResourceSliceCount: 1}}
	yes := true
	switch rapid.IntRange(0, 2).Draw(h.t, "reach") {
	case 0:
		spec.AllNodes = &yes
	case 1:
		spec.NodeSelector = selector("zone", "z")
	case 2:
		spec.PerDeviceNodeSelection = &yes
		for i := range spec.Devices {
			if h.coin("one node") {
				node := h.pick("node", h.nodes)
				spec.Devices[i].NodeName = &node
			} else {
				spec.Devices[i].NodeSelector = selector("zone", "w")
			}
		}
	}
	h.set(&resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "fabric"}, Spec: spec})
}

func (h *history) request(name string) resourceapi.DeviceRequest {
	if h.dice("alternatives", 4) {
		return either(name, "x", "y")
	}
	var r resourceapi.DeviceRequest
	if h.dice("odd selector", 5) {
		at := `device.attributes["` + driver + `"]`
		return want(name, 1, expr(h.pick("odd", []string{at + `.serial == "n1-0"`, `cel.bind(a, ` + at +
			`, a.serial == "n0-1")`, `"model" in ` + at,
			`["n2-0", "n0-0"].exists(s, s == ` + at + `.serial)`, `device.driver == "` + driver + `"`})))
	}
	if h.coin("model matters") {
		r = want(name, rapid.Int64Range(1, 2).Draw(h.t, "count"), model(h.pick("wanted", models)))
	} else {
		r = want(name, rapid.Int64Range(1, 2).Draw(h.t, "count"))
	}
	switch {
	case h.dice("all", 8):
		r.Exactly.AllocationMode, r.Exactly.Count = resourceapi.DeviceAllocationModeAll, 0
	case h.dice("capacity", 3):
		r.Exactly.Capacity = &resourceapi.CapacityRequirements{Requests: capacity(h.pick("memory",
			[]string{"1Gi", "2Gi", "3Gi"}))}
	}
	if h.dice("admin", 8) {
		admin := true
		r.Exactly.AdminAccess = &admin
	}
	return r
}

// somePod is a pod with claims, new and old, or extended resources, or both.
func (h *history) somePod() *cluster.Pod {
	h.made++
	name := fmt.Sprintf("p%d", h.made)
	var options []podOption
	for i := range rapid.IntRange(0, 2).Draw(h.t, "claims") {
		if h.made > 1 && h.dice("shared", 4) {
			if c, ok := cluster.FindAPI[*resourceapi.ResourceClaim](h.s(), "ns", fmt.Sprintf("c%d-0", h.made-1)); ok {
				options = append(options, uses(c.Name))
				continue
			}
		}
		claim := newClaim(fmt.Sprintf("c%d-%d", h.made, i), h.request("r"))
		if h.coin("second request") {
			claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, h.request("s"))
		}
		if h.dice("same model", 5) {
			attribute := resourceapi.FullyQualifiedName(driver + h.pick("constrained", []string{"/model", "/serial"}))
			claim.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: &attribute}}
			if h.coin("distinct") {
				claim.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{DistinctAttribute: &attribute}}
			}
		}
		h.set(claim)
		options = append(options, uses(claim.Name))
	}
	if h.dice("extended", 3) || len(options) == 0 {
		options = append(options, asks(gpuResource, h.pick("gpus", []string{"1", "2"})))
	}
	return h.pod(name, options...)
}

// happen lets one thing happen.
func (h *history) happen() {
	if h.dice("time passes", 4) {
		h.now += leftFor
	}
	switch rapid.IntRange(0, 10).Draw(h.t, "happens") {
	case 0, 8, 9:
		h.plug(h.pick("node", h.nodes))
	case 1:
		if h.coin("cable") {
			h.cable()
		}
	case 2:
		h.relabel(h.pick("node", h.nodes))
	case 3, 4:
		if len(h.holds) == 0 {
			return
		}
		i := rapid.IntRange(0, len(h.holds)-1).Draw(h.t, "which")
		f := h.holds[i]
		h.holds = slices.Delete(h.holds, i, i+1)
		if h.coin("written") {
			h.carryOut(f.writes)
			if h.coin("bound") {
				return
			}
			h.carryOut(h.release(f.pod, f.hold, true))
			return
		}
		h.release(f.pod, f.hold, false)
	case 5:
		h.txn(func() { h.store.DeleteObject(cluster.KindResourceSlice, cluster.ObjectKey{Name: "fabric"}) })
	case 6:
		var all []string
		cluster.Each(h.s(), func(c *resourceapi.ResourceClaim) bool {
			if api, ok := cluster.FindAPI[*resourceapi.ResourceClaim](h.s(), c.Namespace, c.Name); ok &&
				api.Status.Allocation != nil {
				all = append(all, c.Name)
			}
			return true
		})
		if len(all) > 0 {
			c := h.api(h.pick("ends", all))
			c.Status = resourceapi.ResourceClaimStatus{}
			h.set(c)
		}
	case 10:
		name := h.pick("rule", []string{"r0", "r1"})
		if h.coin("ends") {
			h.txn(func() { h.store.DeleteObject(cluster.KindDeviceTaint, cluster.ObjectKey{Name: name}) })
			return
		}
		sel := &resourceapi.DeviceTaintSelector{}
		if h.coin("one pool") {
			pool := h.pick("pool", append([]string{"fabric"}, h.nodes...))
			sel.Pool = &pool
		}
		if h.coin("one device") {
			device := h.pick("device", []string{"d0", "d1"})
			sel.Device = &device
		}
		h.rule(name, sel, resourceapi.DeviceTaintEffect(h.pick("effect", []string{"NoSchedule", "None"})))
	case 7:
		h.class("gpu", backs(h.pick("backs", []string{gpuResource, "example.com/other"})))
	}
}

// said is a verdict with what would be allocated, share IDs left out.
func said(pr *prepared, code plugin.Code, n cluster.NodeIdx) string {
	if code != plugin.Fit {
		return pr.Reasons(code)[0]
	}
	a := pr.found(n)
	text := fmt.Sprint(a.out != nil)
	if a.out == nil {
		return text
	}
	node := pr.s.NodeName(n)
	results := a.out.at(node, pr.pl.inv.poolsOf[node])
	for i := range results {
		for _, r := range results[i].Devices.Results {
			text += fmt.Sprintf(" %d:%s=%s/%s", i, r.Request, r.Pool, r.Device)
		}
		text += fmt.Sprint(" ", results[i].NodeSelector)
	}
	return text
}

// same compares the two forms for a pod and returns the rows that fit.
func (h *history) same(p *cluster.Pod) (fit []cluster.NodeIdx) {
	s := h.s()
	plan := h.pl.PrepareFilter(s, p)
	if plan.Filter == nil {
		return nil
	}
	pr := plan.Filter.(*prepared)
	out := make([]plugin.Verdict, s.Rows())
	pr.Column(s, 0, cluster.NodeIdx(len(out)), plugin.TagOf(3), out)
	failed := pr.failed
	column := make([]string, len(out))
	for n := range out {
		if s.Node(cluster.NodeIdx(n)) != nil && failed == nil {
			column[n] = said(pr, out[n].Code(), cluster.NodeIdx(n))
			if out[n] == plugin.Fits {
				fit = append(fit, cluster.NodeIdx(n))
			}
		}
	}
	pr.failed = nil
	var plainFailed error
	for n := range out {
		if s.Node(cluster.NodeIdx(n)) == nil {
			continue
		}
		code := pr.Plain(s, s.View(cluster.NodeIdx(n)))
		if pr.failed != nil {
			plainFailed = pr.failed
			break
		}
		if plain := said(pr, code, cluster.NodeIdx(n)); failed == nil && plain != column[n] {
			h.t.Fatalf("%s on %s: plain %q, column %q", p.Name, s.NodeName(cluster.NodeIdx(n)), plain, column[n])
		}
	}
	if fmt.Sprint(failed) != fmt.Sprint(plainFailed) {
		h.t.Fatalf("%s: plain fails with %v, column with %v", p.Name, plainFailed, failed)
	}
	if failed != nil {
		return nil
	}
	return fit
}

// The plain form gathers all anew and knows the whole cluster; the column form remembers and knows single pools. Both
// say the same and would allocate the same, whatever has happened before.
func TestFormsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			h.happen()
			p := h.somePod()
			fit := h.same(p)
			h.counted()
			if len(fit) == 0 {
				continue
			}
			h.pl.last = nil // Reserve asks again, by the remembered answers
			n := rapid.SampledFrom(fit).Draw(t, "node")
			var got plugin.Reserved
			h.txn(func() {
				tr := h.store.Trial()
				tr.Assume(p, n)
				got = h.pl.Reserve(tr, p, n)
				tr.Commit()
			})
			if got.Err != nil || got.Reject != "" {
				t.Fatalf("%s fitted row %d: %q %v", p.Name, n, got.Reject, got.Err)
			}
			if got.Hold != nil {
				h.holds = append(h.holds, flying{p, got.Hold, got.Hold.Writes()})
			}
			h.noDeviceTwice()
		}
	})
}

// counted compares the inventory with one that counts everything anew.
func (h *history) counted() {
	fresh := NewInventory(DefaultFeatures())
	fresh.sync(h.s())
	h.pl.inv.sync(h.s())
	text := func(inv *Inventory) string {
		return fmt.Sprintf("%v %v %v made %v", sorted(inv.state.AllocatedDevices),
			sorted(inv.state.AllocatedSharedDeviceIDs), consumed(inv.state), inv.madeFor)
	}
	if got, want := text(h.pl.inv), text(fresh); got != want {
		h.t.Fatalf("kept up:   %s\ncounted anew: %s", got, want)
	}
}

func sorted[K interface {
	comparable
	String() string
}, V any](set map[K]V) []string {
	var names []string
	for k := range maps.Keys(set) {
		names = append(names, k.String())
	}
	slices.Sort(names)
	return names
}

func consumed(state structured.AllocatedState) []string {
	var texts []string
	for id, c := range state.AggregatedCapacity {
		for name, q := range c {
			texts = append(texts, fmt.Sprintf("%s %s %s", id, name, q))
		}
	}
	slices.Sort(texts)
	return texts
}

// noDeviceTwice is an invariant: no claim gets a device that another holds, unless it can be shared or has admin
// access.
func (h *history) noDeviceTwice() {
	owner := map[string]string{} // device -> claim
	cluster.Each(h.s(), func(c *resourceapi.ResourceClaim) bool {
		if c.Status.Allocation == nil || pending(h.s(), c) && void(h.s(), c) {
			return true
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			if r.ShareID != nil || r.AdminAccess != nil {
				continue
			}
			id := r.Pool + "/" + r.Device
			if other := owner[id]; other != "" {
				h.t.Fatalf("%s is held by %s and %s", id, other, c.Name)
			}
			owner[id] = c.Name
		}
		return true
	})
}
