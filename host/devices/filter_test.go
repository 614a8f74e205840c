// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// twoGPUs is a world with a class and two nodes with one device each, and a node without.
func twoGPUs(t fataler) *world {
	w := newWorld(t)
	w.class("gpu")
	for _, n := range []string{"a", "b", "plain"} {
		w.node(n)
	}
	w.slice("a", device("d0", "old"))
	w.slice("b", device("d0", "new"))
	return w
}

// gate-open, claim-deleted-used, claim-of-others-used
func TestAPodIsKeptBackUntilItsClaimsAreThere(t *testing.T) {
	w := twoGPUs(t)
	gone := newClaim("going")
	now := metav1.Now()
	gone.DeletionTimestamp = &now
	w.set(gone)
	w.claim("there", want("r", 1))
	owned := newClaim("p-gpu")
	controller := true
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "uid-p",
		Controller: &controller}}
	w.set(owned)

	for _, c := range []struct {
		pod  string
		what podOption
		want string
	}{
		{"p", uses("missing"), `could not find ResourceClaim "ns/missing"`},
		{"p", uses("going"), `resourceclaim "going" is being deleted`},
		{"p", uses("there"), ""},
		{"p", generated("gpu", ""), `pod "ns/p": ResourceClaim not created yet`},
		{"p", generated("gpu", "p-gpu"), ""},
		{"q", generated("gpu", "p-gpu"), "ResourceClaim ns/p-gpu was not created for Pod ns/q (Pod is not owner)"},
	} {
		p := w.pod(c.pod, c.what)
		reason, ok := w.pl.Gated(w.s(), p)
		expect(t, "reason", reason, c.want)
		expect(t, "open", ok, c.want == "")
		_, reject, err := w.verdicts(p)
		expect(t, "PreFilter", reject, c.want)
		expect(t, "error", err, nil)
	}
	if reason, ok := w.pl.Gated(w.s(), w.pod("none")); !ok {
		t.Fatalf("a pod without claims is kept back: %s", reason)
	}
}

func TestADeviceIsFoundWhereItIs(t *testing.T) {
	w := twoGPUs(t)
	w.claim("any", want("r", 1))
	w.claim("new", want("r", 1, model("new")))
	w.claim("two", want("r", 2))
	expect(t, "any", w.fits(w.pod("p", uses("any"))), []string{"a", "b"})
	expect(t, "new", w.fits(w.pod("p", uses("new"))), []string{"b"})
	expect(t, "two", w.fits(w.pod("p", uses("two"))), []string{})
	expect(t, "any and new", w.fits(w.pod("p", uses("any"), uses("new"))), []string{})
	byNode, _, _ := w.verdicts(w.pod("p", uses("two")))
	expect(t, "reason", byNode["plain"], "cannot allocate all claims")
	expect(t, "no claims", w.fits(w.pod("p")), []string{"a", "b", "plain"})
}

// resolvable
func TestNoEvictionHelps(t *testing.T) {
	w := twoGPUs(t)
	w.claim("two", want("r", 2))
	s, p := w.s(), w.pod("p", uses("two"))
	f := w.pl.PrepareFilter(s, p).Filter
	n, _ := s.Find("a")
	if code := f.Plain(s, s.View(n)); code&(1<<22) == 0 {
		t.Fatalf("code %b", code)
	}
}

// class-missing-passes
func TestADeviceClassMustExist(t *testing.T) {
	w := twoGPUs(t)
	request := want("r", 1)
	request.Exactly.DeviceClassName = "tpu"
	w.claim("c", request)
	alternative := either("r", "new")
	alternative.FirstAvailable[0].DeviceClassName = "tpu"
	w.claim("alternatives", alternative)
	w.claim("odd", resourceapi.DeviceRequest{Name: "r"})
	nameless := want("r", 1)
	nameless.Exactly.DeviceClassName = ""
	w.claim("nameless", nameless)

	for claim, want := range map[string]string{
		"c":            "request r: device class tpu does not exist",
		"alternatives": "request r/sub-new: device class tpu does not exist",
		"odd":          "resource claim ns/odd, request r: unknown request type",
	} {
		_, reject, err := w.verdicts(w.pod("p", uses(claim)))
		expect(t, claim, reject, want)
		expect(t, claim, err, nil)
	}
	_, _, err := w.verdicts(w.pod("p", uses("nameless")))
	expect(t, "nameless", err.Error(), "request r: unsupported request type")
	w.class("tpu")
	expect(t, "then", w.fits(w.pod("p", uses("c"))), []string{"a", "b"})
}

// selector-ignored
func TestAnAllocatedClaimIsUsedWhereItReaches(t *testing.T) {
	w := twoGPUs(t)
	w.set(usedBy(allocated(newClaim("shared", want("r", 1)), "a", "d0"), "other"))
	byNode, _, _ := w.verdicts(w.pod("p", uses("shared")))
	expect(t, "verdicts", byNode, map[string]string{"a": "", "b": "resourceclaim not available on the node",
		"plain": "resourceclaim not available on the node"})

	w.claim("more", want("r", 1))
	expect(t, "with another device on the same node", w.fits(w.pod("p", uses("shared"), uses("more"))), []string{})
	w.slice("a", device("d0", "old"), device("d1", "old"))
	expect(t, "once there are two", w.fits(w.pod("p", uses("shared"), uses("more"))), []string{"a"})
}

// inventory-stale, answer-stale
func TestWhatIsTakenIsNotFree(t *testing.T) {
	w := twoGPUs(t)
	w.claim("one", want("r", 1))
	p := w.pod("p", uses("one"))
	expect(t, "before", w.fits(p), []string{"a", "b"})
	taken := allocated(newClaim("taken"), "a", "d0")
	w.set(taken)
	expect(t, "taken", w.fits(p), []string{"b"})
	w.set(newClaim("taken"))
	expect(t, "given back", w.fits(p), []string{"a", "b"})
	w.set(allocated(newClaim("taken"), "b", "d0"))
	expect(t, "the other", w.fits(p), []string{"a"})
	w.slice("a")
	expect(t, "unplugged", w.fits(p), []string{})
}

// admin-takes
func TestAdminAccessTakesNothing(t *testing.T) {
	w := twoGPUs(t)
	admin := true
	watching := allocated(newClaim("watching"), "a", "d0")
	watching.Status.Allocation.Devices.Results[0].AdminAccess = &admin
	w.set(watching)
	w.claim("one", want("r", 1))
	expect(t, "user", w.fits(w.pod("p", uses("one"))), []string{"a", "b"})

	w.set(allocated(newClaim("taken"), "a", "d0"))
	monitor := want("r", 1)
	monitor.Exactly.AdminAccess = &admin
	w.claim("monitor", monitor)
	expect(t, "monitor", w.fits(w.pod("p", uses("monitor"))), []string{"a", "b"})
}

func tainted(effect resourceapi.DeviceTaintEffect) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) {
		d.Taints = []resourceapi.DeviceTaint{{Key: "broken", Value: "fan", Effect: effect}}
	}
}

func TestTaintedDevicesNeedAToleration(t *testing.T) {
	w := twoGPUs(t)
	w.slice("a", device("d0", "old", tainted(resourceapi.DeviceTaintEffectNoSchedule)))
	w.slice("b", device("d0", "old", tainted(resourceapi.DeviceTaintEffectNone)))
	w.claim("plain", want("r", 1))
	expect(t, "without", w.fits(w.pod("p", uses("plain"))), []string{"b"})
	brave := want("r", 1)
	brave.Exactly.Tolerations = []resourceapi.DeviceToleration{{Key: "broken",
		Operator: resourceapi.DeviceTolerationOpExists}}
	w.claim("brave", brave)
	expect(t, "with", w.fits(w.pod("p", uses("brave"))), []string{"a", "b"})
}

// A whole device and its halves draw on one counter: a pod that has a half leaves no whole.
func TestPartitionsShareCounters(t *testing.T) {
	w := newWorld(t)
	w.class("gpu")
	w.node("a")
	draws := func(memory string) func(*resourceapi.Device) {
		return func(d *resourceapi.Device) {
			d.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: "card",
				Counters: counters(memory)}}
		}
	}
	node := "a"
	pool := resourceapi.ResourcePool{Name: "a", Generation: 1, ResourceSliceCount: 2}
	w.set(&resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "counters"},
		Spec: resourceapi.ResourceSliceSpec{Driver: driver, NodeName: &node, Pool: pool,
			SharedCounters: []resourceapi.CounterSet{{Name: "card", Counters: counters("80Gi")}}}})
	w.set(&resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "devices"},
		Spec: resourceapi.ResourceSliceSpec{Driver: driver, NodeName: &node, Pool: pool,
			Devices: []resourceapi.Device{device("whole", "whole", draws("80Gi")),
				device("half-0", "half", draws("40Gi")), device("half-1", "half", draws("40Gi"))}}})
	w.claim("whole", want("r", 1, model("whole")))
	w.claim("half", want("r", 1, model("half")))
	w.claim("halves", want("r", 2, model("half")))
	w.claim("too much", want("r", 1, model("whole")), want("s", 1, model("half")))
	expect(t, "whole", w.fits(w.pod("p", uses("whole"))), []string{"a"})
	expect(t, "halves", w.fits(w.pod("p", uses("halves"))), []string{"a"})
	expect(t, "both", w.fits(w.pod("p", uses("too much"))), []string{})
	w.set(allocated(newClaim("taken"), "a", "half-1"))
	expect(t, "whole, when a half is taken", w.fits(w.pod("p", uses("whole"))), []string{})
	expect(t, "half, when a half is taken", w.fits(w.pod("p", uses("half"))), []string{"a"})
}

func counters(memory string) map[string]resourceapi.Counter {
	return map[string]resourceapi.Counter{"memory": {Value: quantity(memory)}}
}

// capacity-free
func TestSharesOfADeviceAddUp(t *testing.T) {
	w := newWorld(t)
	w.class("gpu")
	w.node("a")
	w.slice("a", device("d0", "big", sharable("10Gi")))
	p := func(name, memory string) *claimPod {
		c := newClaim(name, want("r", 1))
		c.Spec.Devices.Requests[0].Exactly.Capacity = &resourceapi.CapacityRequirements{Requests: capacity(memory)}
		w.set(c)
		return &claimPod{w.pod(name, uses(name))}
	}
	first, second, third := p("first", "6Gi"), p("second", "4Gi"), p("third", "1Gi")
	_, writes := w.place(first.Pod, "a")
	w.carryOut(writes)
	_, writes = w.place(second.Pod, "a")
	expect(t, "while it is decided only", w.fits(third.Pod), []string{})
	w.carryOut(writes)
	expect(t, "when it is written", w.fits(third.Pod), []string{})
	w.set(newClaim("first"))
	expect(t, "when one has left", w.fits(third.Pod), []string{"a"})
}

// share-ids-random
func TestSharesHaveNamesThatCanBeRepeated(t *testing.T) {
	ids := func() []string {
		w := newWorld(t)
		w.class("gpu")
		w.node("a")
		w.slice("a", device("d0", "big", sharable("10Gi")))
		w.claim("c", want("r", 1), want("s", 1))
		_, writes := w.place(w.pod("p", uses("c")), "a")
		w.carryOut(writes)
		var out []string
		for _, r := range w.api("c").Status.Allocation.Devices.Results {
			out = append(out, string(*r.ShareID))
		}
		return out
	}
	first, second := ids(), ids()
	expect(t, "again", second, first)
	if len(first) != 2 || first[0] == first[1] || len(first[0]) != 36 || strings.ToLower(first[0]) != first[0] {
		t.Fatalf("share IDs %v", first)
	}
}

// Upstream fails the attempt: the selector is broken, and no other node makes it whole.
func TestABrokenSelectorFailsTheAttempt(t *testing.T) {
	w := twoGPUs(t)
	w.claim("broken", want("r", 1, expr("device.attributes[")))
	_, reject, err := w.verdicts(w.pod("p", uses("broken")))
	if err == nil || !strings.HasPrefix(err.Error(), "claim ns/broken: selector #0: CEL compile error: ") ||
		reject != "" {
		t.Fatalf("%q %v", reject, err)
	}
	w.claim("sound", want("r", 1))
	expect(t, "others go on", w.fits(w.pod("p", uses("sound"))), []string{"a", "b"})
}

func TestAPoolThatIsBeingReplacedIsNotUsed(t *testing.T) {
	w := twoGPUs(t)
	node := "a"
	half := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice-a"},
		Spec: resourceapi.ResourceSliceSpec{Driver: driver, NodeName: &node,
			Devices: []resourceapi.Device{device("d0", "old")},
			Pool:    resourceapi.ResourcePool{Name: "a", Generation: 2, ResourceSliceCount: 2}}}
	w.set(half)
	w.claim("one", want("r", 1))
	expect(t, "incomplete", w.fits(w.pod("p", uses("one"))), []string{"b"})
	all := want("r", 0)
	all.Exactly.AllocationMode = resourceapi.DeviceAllocationModeAll
	w.claim("all", all)
	_, _, err := w.verdicts(w.pod("p", uses("all")))
	expect(t, "all of them", err.Error(),
		"claim ns/all, request r: asks for all devices, but resource pool gpu.example.com/a is currently being updated")
	twice := half.DeepCopy()
	twice.Name = "slice-a-2"
	w.set(twice)
	byNode, _, _ := w.verdicts(w.pod("p", uses("one")))
	expect(t, "a name twice", byNode["a"], "invalid resource pools were encountered")
}

func TestDevicesOfTheNetworkFollowLabels(t *testing.T) {
	w := twoGPUs(t)
	w.node("z1", label("zone", "z"))
	w.set(&resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "fabric"},
		Spec: resourceapi.ResourceSliceSpec{Driver: driver,
			NodeSelector: selector("zone", "z"), Devices: []resourceapi.Device{device("f0", "fabric")},
			Pool: resourceapi.ResourcePool{Name: "fabric", Generation: 1, ResourceSliceCount: 1}}})
	w.claim("f", want("r", 1, model("fabric")))
	p := w.pod("p", uses("f"))
	expect(t, "zone", w.fits(p), []string{"z1"})
	w.node("plain", label("zone", "z"))
	expect(t, "a label is set", w.fits(p), []string{"plain", "z1"})
	w.set(allocated(newClaim("taken"), "fabric", "f0"))
	expect(t, "taken", w.fits(p), []string{})
}

// The only clock: a search that never ends is an error of the attempt.
func TestTheSearchOnANodeIsBounded(t *testing.T) {
	w := newWorld(t)
	w.pl = w.plugin(Args{FilterTimeout: time.Nanosecond, BindingTimeout: time.Minute}, NewInventory(DefaultFeatures()))
	w.class("gpu")
	w.node("a")
	w.slice("a", device("d0", "x"))
	w.claim("c", want("r", 1))
	_, _, err := w.verdicts(w.pod("p", uses("c")))
	if err == nil || err.Error() != "node a: timed out trying to allocate devices" {
		t.Fatalf("error %v", err)
	}
}

func TestArgumentsAreChecked(t *testing.T) {
	if _, err := New(Args{FilterTimeout: -1, BindingTimeout: time.Minute}, NewInventory(DefaultFeatures())); err == nil {
		t.Fatal("a negative filterTimeout")
	}
	if _, err := New(Args{BindingTimeout: time.Millisecond}, NewInventory(DefaultFeatures())); err == nil {
		t.Fatal("a bindingTimeout below a second")
	}
	if _, err := New(DefaultArgs(), NewInventory(DefaultFeatures())); err != nil {
		t.Fatal(err)
	}
}

// A claim whose device skips operations on its node can be used only where the kubelet declares that it supports this.
func TestSkippedOperationsNeedAFeature(t *testing.T) {
	w := twoGPUs(t)
	w.node("b", func(n *v1.Node) { n.Status.DeclaredFeatures = []string{"A", "DRAOptionalNodeOperations"} })
	c := allocated(newClaim("c", want("r", 1)), "a", "d0")
	c.Status.Allocation.NodeSelector = nil // a device of the network
	c.Status.Allocation.Devices.Results[0].SkipNodeOperations = []resourceapi.SkipNodeOperation{"*"}
	w.set(c)
	p := w.pod("p", uses("c"))
	expect(t, "nodes", w.fits(p), []string{"b"})
	byNode, _, _ := w.verdicts(p)
	expect(t, "reason", byNode["a"], "resourceclaim not available on the node")
	c = w.api("c")
	c.Status.Allocation.Devices.Results[0].SkipNodeOperations = nil
	w.set(c)
	expect(t, "no operation is skipped", w.fits(p), []string{"a", "b", "plain"})
}
