// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

const gpuResource = "example.com/gpu"

// backed is a world in which the class gpu backs example.com/gpu: a has two devices, the kubelet of b offers four
// itself, c has neither.
func backed(t fataler) *world {
	w := newWorld(t)
	w.class("gpu", backs(gpuResource))
	w.node("a")
	w.node("b", offers(gpuResource, "4"))
	w.node("c")
	w.slice("a", device("d0", "x"), device("d1", "x"))
	return w
}

// extended-ignored, plugin-passed-over
func TestExtendedResourcesAreBackedByDevices(t *testing.T) {
	w := backed(t)
	p := w.pod("p", asks(gpuResource, "2"))
	byNode, _, _ := w.verdicts(p)
	expect(t, "verdicts", byNode, map[string]string{"a": "", "b": "", "c": "cannot allocate all claims"})

	hold, writes := w.place(p, "b")
	expect(t, "a device plugin needs no claim", len(writes), 0)
	if hold != nil {
		t.Fatalf("held: %+v", hold)
	}
	w.txn(func() { w.store.Forget(p.UID) })

	hold, writes = w.place(p, "a")
	expect(t, "devices", devicesOf(writes), []string{"a/d0", "a/d1"})
	made := writes[0].(cluster.CreateClaim)
	expect(t, "mappings", made.Mappings, []cluster.ExtendedMapping{{Container: "c0", Resource: gpuResource,
		Request: "container-0-request-0"}})
	if n := made.Claim.Name; !strings.HasPrefix(n, "p-extended-resources-") ||
		len(n) != len("p-extended-resources-")+5 {
		t.Fatalf("name %q", n)
	}
	if o := metav1.GetControllerOf(made.Claim); o == nil || o.UID != "uid-p" ||
		made.Claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] != "true" {
		t.Fatalf("claim %+v", made.Claim.ObjectMeta)
	}
	q := w.pod("q", asks(gpuResource, "1"))
	expect(t, "left for q while the claim is not made", w.fits(q), []string{"b"})
	w.carryOut(writes)
	expect(t, "left for q when it is", w.fits(q), []string{"b"})
	expect(t, "ready", hold.Ready(w.s(), w.now).Ready, true)
	w.carryOut(w.release(p, hold, true))
	expect(t, "left for q when p has failed", w.fits(q), []string{"a", "b"})
}

func TestAnAttemptThatFailsBeforeTheClaimIsMadeLeavesNothing(t *testing.T) {
	w := backed(t)
	p := w.pod("p", asks(gpuResource, "2"))
	hold, first := w.place(p, "a")
	w.release(p, hold, false)
	expect(t, "left", w.fits(w.pod("q", asks(gpuResource, "2"))), []string{"a", "b"})
	_, second := w.place(p, "a")
	expect(t, "the name of the second attempt is that of the first", second[0].(cluster.CreateClaim).Claim.Name,
		first[0].(cluster.CreateClaim).Claim.Name)
}

func TestTheImplicitNameOfAClass(t *testing.T) {
	w := backed(t)
	p := w.pod("p", asks("deviceclass.resource.kubernetes.io/gpu", "1"))
	expect(t, "implicit", w.fits(p), []string{"a"})
	// No class backs it and no node offers it: the claims of the pod are not what is wrong.
	byNode, _, _ := w.verdicts(w.pod("q", asks("deviceclass.resource.kubernetes.io/tpu", "1", gpuResource, "1")))
	expect(t, "half", byNode["a"], "cannot fit resource")
	expect(t, "none backed", w.fits(w.pod("r", asks("deviceclass.resource.kubernetes.io/tpu", "1"))),
		[]string{"a", "b", "c"})
	expect(t, "zero of it", w.fits(w.pod("z", asks(gpuResource, "0"))), []string{"a", "b", "c"})
}

// older-class-wins
func TestOfTwoClassesTheNewerOneBacks(t *testing.T) {
	w := backed(t)
	w.class("gpu", backs(gpuResource), createdAt(100))
	w.class("better", backs(gpuResource), createdAt(200))
	w.class("alike", backs(gpuResource), createdAt(200))
	_, writes := w.place(w.pod("p", asks(gpuResource, "1")), "a")
	expect(t, "class", writes[0].(cluster.CreateClaim).Claim.Spec.Devices.Requests[0].Exactly.DeviceClassName, "alike")
}

// stale-used
func TestAClaimLeftFromAnEarlierAttemptIsDeletedFirst(t *testing.T) {
	w := backed(t)
	controller := true
	stale := newClaim("p-extended-resources-x", want("container-0-request-0", 1))
	stale.Annotations = map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"}
	stale.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "uid-p",
		Controller: &controller}}
	w.set(stale)
	p := w.pod("p", asks(gpuResource, "1"))
	expect(t, "nowhere", w.fits(p), []string{})
	byNode, _, _ := w.verdicts(p)
	expect(t, "reason", byNode["b"], "cannot schedule extended resource claim")
	writes, message := w.pl.Remedy(w.s(), p)
	expect(t, "message", message, "deletion of ResourceClaim completed")
	expect(t, "writes", writes, []cluster.Write{cluster.DeleteClaim{Target: targetOf(stale), Pod: p.Ref()}})
	w.carryOut(writes)
	expect(t, "then", w.fits(p), []string{"a", "b"})
	expect(t, "another pod was never affected", w.fits(w.pod("q", asks(gpuResource, "1"))), []string{"a", "b"})
}

// Only the pod that an owner reference names as its controller owns a claim.
func TestClaimsWithOddOwners(t *testing.T) {
	controller := true
	for _, c := range []struct {
		what  string
		owner metav1.OwnerReference
		want  []string
	}{
		{"the pod", metav1.OwnerReference{Name: "p", UID: "uid-p", Controller: &controller}, []string{}},
		{"no controller", metav1.OwnerReference{Name: "p", UID: "uid-p"}, []string{"a", "b"}},
		{"not as controller", metav1.OwnerReference{Name: "p", UID: "uid-p", Controller: new(bool)}, []string{"a", "b"}},
		{"another name", metav1.OwnerReference{Name: "q", UID: "uid-p", Controller: &controller}, []string{"a", "b"}},
		{"another UID", metav1.OwnerReference{Name: "p", UID: "uid-q", Controller: &controller}, []string{"a", "b"}},
	} {
		w := backed(t)
		stale := newClaim("p-extended-resources-x", want("container-0-request-0", 1))
		stale.Annotations = map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"}
		stale.OwnerReferences = []metav1.OwnerReference{c.owner}
		w.set(stale)
		expect(t, c.what, w.fits(w.pod("p", asks(gpuResource, "1"))), c.want)
	}
}

func TestClaimsAndExtendedResourcesTogether(t *testing.T) {
	w := backed(t)
	w.claim("one", want("r", 1))
	p := w.pod("p", uses("one"), asks(gpuResource, "1"))
	expect(t, "both need a device", w.fits(p), []string{"a"})
	_, writes := w.place(p, "a")
	expect(t, "devices", devicesOf(writes), []string{"a/d0", "a/d1"})

	// Where the node offers the resource and has a device too, only the claim is written. Upstream makes a claim
	// without requests there, and then fails for want of mappings.
	w.slice("b", device("d0", "x"))
	q := w.pod("q", uses("two"), asks(gpuResource, "1"))
	w.claim("two", want("r", 1))
	_, writes = w.place(q, "b")
	expect(t, "writes", len(writes), 1)
	expect(t, "devices", devicesOf(writes), []string{"b/d0"})
}

// init-devices-apart
func TestInitContainersUseTheDevicesOfThoseAfterThem(t *testing.T) {
	request := func(name string, count int) string { return fmt.Sprintf("%s:%d", name, count) }
	for _, c := range []struct {
		name     string
		pod      []podOption
		requests []string
		mappings string // container>request
	}{
		{"one container", []podOption{asks(gpuResource, "2")}, []string{request("container-0-request-0", 2)},
			"c0>container-0-request-0"},
		{"rank among the container's resources", []podOption{asks("cpu", "1", gpuResource, "1", "memory", "1Gi")},
			[]string{request("container-0-request-1", 1)}, "c0>container-0-request-1"},
		{"an init container that needs less", []podOption{initAsks(false, gpuResource, "1"), asks(gpuResource, "2")},
			[]string{request("container-1-request-0", 2)}, "c0>container-1-request-0 i0>container-1-request-0"},
		{"one that needs more", []podOption{initAsks(false, gpuResource, "3"), asks(gpuResource, "2")},
			[]string{request("container-0-request-0", 1), request("container-1-request-0", 2)},
			"c0>container-1-request-0 i0>container-1-request-0 i0>container-0-request-0"},
		{"two that need more share the most", []podOption{initAsks(false, gpuResource, "2"),
			initAsks(false, gpuResource, "3"), asks(gpuResource, "1")},
			[]string{request("container-1-request-0", 2), request("container-2-request-0", 1)},
			"c0>container-2-request-0 i0>container-2-request-0 i0>container-1-request-0 " +
				"i1>container-2-request-0 i1>container-1-request-0"},
		{"a sidecar keeps what it has", []podOption{initAsks(true, gpuResource, "1"), asks(gpuResource, "1")},
			[]string{request("container-0-request-0", 1), request("container-1-request-0", 1)},
			"i0>container-0-request-0 c0>container-1-request-0"},
		{"a sidecar that started before is not for init containers after it",
			[]podOption{initAsks(true, gpuResource, "1"), initAsks(false, gpuResource, "1")},
			[]string{request("container-0-request-0", 1), request("container-1-request-0", 1)},
			"i0>container-0-request-0 i1>container-1-request-0"},
		{"several containers", []podOption{asks(gpuResource, "1"), asks("cpu", "1"), asks(gpuResource, "2")},
			[]string{request("container-0-request-0", 1), request("container-2-request-0", 2)},
			"c0>container-0-request-0 c2>container-2-request-0"},
	} {
		w := backed(t)
		w.slice("a", device("d0", "x"), device("d1", "x"), device("d2", "x"), device("d3", "x"))
		_, writes := w.place(w.pod("p", c.pod...), "a")
		made := writes[0].(cluster.CreateClaim)
		var requests []string
		for _, r := range made.Claim.Spec.Devices.Requests {
			requests = append(requests, request(r.Name, int(r.Exactly.Count)))
		}
		expect(t, c.name+": requests", requests, c.requests)
		var mappings []string
		for _, m := range made.Mappings {
			mappings = append(mappings, m.Container+">"+m.Request)
		}
		expect(t, c.name+": mappings", strings.Join(mappings, " "), c.mappings)
	}
}

func TestANameThatIsTakenIsNotUsed(t *testing.T) {
	w := backed(t)
	p := w.pod(strings.Repeat("p", 80), asks(gpuResource, "1"))
	hold, writes := w.place(p, "a")
	name := writes[0].(cluster.CreateClaim).Claim.Name
	expect(t, "length", len(name), 63)
	w.release(p, hold, false)
	foreign := newClaim(name)
	foreign.UID = types.UID("foreign")
	w.set(foreign)
	_, writes = w.place(p, "a")
	if again := writes[0].(cluster.CreateClaim).Claim.Name; again == name || len(again) != 63 {
		t.Fatalf("name %q", again)
	}
}
