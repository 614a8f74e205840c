// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// assumes-nothing, unseen-free
func TestTwoPodsOfABurstDoNotGetOneDevice(t *testing.T) {
	w := twoGPUs(t)
	for _, name := range []string{"p", "q", "r"} {
		w.claim(name, want("r", 1))
	}
	p, q, r := w.pod("p", uses("p")), w.pod("q", uses("q")), w.pod("r", uses("r"))
	_, first := w.place(p, "a")
	expect(t, "p gets", devicesOf(first), []string{"a/d0"})
	expect(t, "left for q", w.fits(q), []string{"b"})
	_, second := w.place(q, "b")
	expect(t, "left for r", w.fits(r), []string{})

	// The writes show one after the other; at no time is a device free.
	w.set(w.api("p")) // the finalizer
	expect(t, "left for r after the finalizer", w.fits(r), []string{})
	w.carryOut(first)
	expect(t, "left for r after p is written", w.fits(r), []string{})
	w.carryOut(second)
	expect(t, "left for r in the end", w.fits(r), []string{})
	expect(t, "p's claim is used by", len(w.api("p").Status.ReservedFor), 1)
}

// Another profile has a plugin of its own, with the same inventory or another one: the store is what they share.
func TestAnotherProfileSeesWhatIsHeld(t *testing.T) {
	w := twoGPUs(t)
	w.claim("p", want("r", 1))
	w.claim("q", want("r", 1))
	p, q := w.pod("p", uses("p")), w.pod("q", uses("q"))
	other := w.plugin(DefaultArgs(), NewInventory(DefaultFeatures()))
	w.pl, other = other, w.pl
	expect(t, "q fits", w.fits(q), []string{"a", "b"})
	w.pl, other = other, w.pl
	w.place(p, "a")
	w.pl = other
	expect(t, "q fits then", w.fits(q), []string{"b"})
}

// reserveOnly is a decision that another plugin refuses at once.
func (w *world) reserveOnly(p *cluster.Pod, node string) plugin.Reservation {
	w.fits(p)
	var got plugin.Reserved
	w.txn(func() {
		t := w.store.Trial()
		n, _ := w.s().Find(node)
		t.Assume(p, n)
		got = w.pl.Reserve(t, p, n)
		t.Commit()
	})
	return got.Hold
}

// release-keeps, void-counts
func TestAFailedAttemptGivesItsDevicesBack(t *testing.T) {
	w := twoGPUs(t)
	w.claim("p", want("r", 1))
	w.claim("q", want("r", 1))
	p, q := w.pod("p", uses("p")), w.pod("q", uses("q"))
	hold := w.reserveOnly(p, "a")
	expect(t, "while p is on its way", w.fits(q), []string{"b"})
	w.txn(func() {
		tr := w.store.Trial()
		expect(t, "nothing was written", len(hold.Release(tr, false)), 0)
		tr.Commit()
	})
	expect(t, "given back", w.fits(q), []string{"a", "b"})
	w.txn(func() { w.store.Forget(p.UID) })

	// A pod that is gone without an end to its attempt does not hold its devices either.
	w.place(p, "a")
	expect(t, "held again", w.fits(q), []string{"b"})
	w.txn(func() { w.store.Forget(p.UID) })
	expect(t, "p has vanished", w.fits(q), []string{"a", "b"})
	expect(t, "and its claim can be allocated", w.fits(p), []string{"a", "b"})
}

// consumer-stays
func TestAWrittenAllocationStaysWithoutItsPod(t *testing.T) {
	w := twoGPUs(t)
	w.claim("shared", want("r", 1))
	w.claim("q", want("r", 1))
	p, q := w.pod("p", uses("shared")), w.pod("q", uses("q"))
	hold, writes := w.place(p, "a")
	w.carryOut(writes)
	w.carryOut(w.release(p, hold, true))
	c := w.api("shared")
	if c.Status.Allocation == nil || len(c.Status.ReservedFor) != 0 {
		t.Fatalf("claim %+v", c.Status)
	}
	expect(t, "its device is not free", w.fits(q), []string{"b"})
	expect(t, "p can use it where it is", w.fits(p), []string{"a"})
	_, again := w.place(p, "a")
	expect(t, "and only has to be a consumer again", again,
		[]cluster.Write{cluster.AllocateClaim{Target: targetOf(c), ReservedFor: consumer(p)}})
}

// release-forgets
func TestWhatMayHaveBeenWrittenIsNotGivenAway(t *testing.T) {
	w := twoGPUs(t)
	w.claim("p", want("r", 1))
	w.claim("q", want("r", 1))
	p, q := w.pod("p", uses("p")), w.pod("q", uses("q"))
	hold, writes := w.place(p, "a")
	back := w.release(p, hold, true) // the bind failed, and the watch has not shown what was written
	expect(t, "at once", w.fits(q), []string{"b"})
	_, reject, err := w.verdicts(p)
	expect(t, "p", reject, "")
	expect(t, "p", fmt.Sprint(err), "resource claim ns/p may have been allocated by an attempt that failed")
	w.set(w.api("p")) // the finalizer
	expect(t, "a little later", w.fits(q), []string{"b"})
	w.carryOut(writes)
	w.carryOut(back)
	expect(t, "when it has shown", w.fits(q), []string{"b"})
	expect(t, "p, then", w.fits(p), []string{"a"})

	// When it was not written after all, the devices are free after a while.
	hold, _ = w.place(q, "b")
	w.release(q, hold, true)
	w.claim("r", want("r", 1))
	r := w.pod("r", uses("r"))
	expect(t, "r at once", w.fits(r), []string{})
	w.now += leftFor
	expect(t, "r later", w.fits(r), []string{"b"})
	expect(t, "q later", w.fits(q), []string{"b"})
}

// pending-shared
func TestASharedClaimIsWaitedForUntilItIsWritten(t *testing.T) {
	w := twoGPUs(t)
	w.claim("shared", want("r", 1))
	p, q := w.pod("p", uses("shared")), w.pod("q", uses("shared"))
	_, writes := w.place(p, "a")
	_, reject, _ := w.verdicts(q)
	expect(t, "q", reject, "resource claim ns/shared is in the process of being allocated")
	old, _ := cluster.Find[*resourceapi.ResourceClaim](w.s(), "ns", "shared")
	w.carryOut(writes)
	now := w.api("shared")
	hint := claimHint(q, plugin.Change{OldObject: old, NewObject: now, State: w.s()})
	expect(t, "q is woken", hint, plugin.QueueHint)
	expect(t, "q", w.fits(q), []string{"a"})
	hold, second := w.place(q, "a")
	w.carryOut(second)
	expect(t, "consumers", len(w.api("shared").Status.ReservedFor), 2)
	expect(t, "ready", hold.Ready(w.s(), w.now), plugin.Readiness{Ready: true})
}

// reserved-again
func TestAConsumerIsNotAddedTwice(t *testing.T) {
	w := twoGPUs(t)
	w.set(usedBy(allocated(newClaim("c", want("r", 1)), "a", "d0"), "p"))
	p := w.pod("p", uses("c"))
	hold, writes := w.place(p, "a")
	expect(t, "writes", len(writes), 0)
	// Upstream takes it out of the consumers when the attempt fails, though it did not put it there.
	expect(t, "release", len(w.release(p, hold, false)), 1)
}

func TestAClaimThatIsNamedTwiceIsAllocatedOnce(t *testing.T) {
	w := twoGPUs(t)
	w.slice("a", device("d0", "x"), device("d1", "x"))
	w.claim("c", want("r", 1))
	p := w.pod("p", uses("c"), uses("c"))
	_, writes := w.place(p, "a")
	expect(t, "writes", devicesOf(writes), []string{"a/d0"})
}

// Reserve looks again when something has changed since the decision, and refuses when it does not fit any more.
func TestReserveTrustsNothingThatHasChanged(t *testing.T) {
	w := twoGPUs(t)
	w.claim("c", want("r", 1))
	p := w.pod("p", uses("c"))
	w.fits(p)
	w.set(allocated(newClaim("taken"), "a", "d0"))
	var got plugin.Reserved
	w.txn(func() {
		tr := w.store.Trial()
		n, _ := w.s().Find("a")
		tr.Assume(p, n)
		got = w.pl.Reserve(tr, p, n)
		tr.Discard()
	})
	expect(t, "reject", got.Reject, "cannot allocate all claims")
}

// bindable devices wait for "attached" and give up on "broken".
func attachable(d *resourceapi.Device) {
	d.BindsToNode = new(bool)
	d.BindingConditions = []string{"attached"}
	d.BindingFailureConditions = []string{"broken"}
}

// fabric is a world with one device that has to be attached, and a pod that is decided and whose writes are done.
func fabric(t *testing.T) (*world, *cluster.Pod, plugin.Reservation) {
	w := newWorld(t)
	w.class("gpu")
	w.node("a")
	w.slice("a", device("d0", "x", attachable))
	w.claim("c", want("r", 1))
	p := w.pod("p", uses("c"))
	hold, writes := w.place(p, "a")
	w.carryOut(writes)
	return w, p, hold
}

// says is what the driver writes into the status of a claim.
func (w *world) says(claim, condition string) {
	c := w.api(claim)
	r := c.Status.Allocation.Devices.Results[0]
	c.Status.Devices = []resourceapi.AllocatedDeviceStatus{{Driver: r.Driver, Pool: r.Pool, Device: r.Device,
		Conditions: []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue, Reason: "Driver",
			Message: "so it is"}}}}
	w.set(c)
}

// no-wait, conditions-ignored
func TestAPodWaitsForItsDeviceToBeAttached(t *testing.T) {
	w, _, hold := fabric(t)
	start := w.now
	r := hold.Ready(w.s(), w.now)
	if r.Ready || r.Err != nil || r.Again <= w.now {
		t.Fatalf("at first: %+v", r)
	}
	expect(t, "notice", hold.(plugin.Announcer).Announce(), plugin.Notice{Reason: "BindingConditionsPending",
		Action: "Scheduling",
		Note:   "waiting for binding conditions for device on node a"})
	w.now += record.Time(time.Minute)
	w.says("c", "attached")
	expect(t, "then", hold.Ready(w.s(), w.now), plugin.Readiness{Ready: true})
	if r.Again > start+record.Time(10*time.Minute)+1 {
		t.Fatalf("asked again only at %v", r.Again-start)
	}
}

// failure-ignored, stuck-passes
func TestADeviceThatCannotBeAttachedIsGivenUp(t *testing.T) {
	w, p, hold := fabric(t)
	w.says("c", "broken")
	r := hold.Ready(w.s(), w.now)
	if r.Err == nil || r.Err.Error() != `device binding failed: claim=c, reason=Driver, message="so it is"` {
		t.Fatalf("%+v", r)
	}
	w.carryOut(w.release(p, hold, true))
	byNode, _, _ := w.verdicts(p)
	expect(t, "the next attempt", byNode, map[string]string{"a": "resourceclaim not available on the node"})
	writes, message := w.pl.Remedy(w.s(), p)
	expect(t, "remedy", message, "deallocation of ResourceClaim completed")
	w.carryOut(writes)
	expect(t, "the attempt after that", w.fits(p), []string{"a"})
}

// waits-forever
func TestBindingConditionsHaveATimeLimit(t *testing.T) {
	w, p, hold := fabric(t)
	r := hold.Ready(w.s(), w.now)
	w.now = r.Again
	if late := hold.Ready(w.s(), w.now); late.Err == nil ||
		late.Err.Error() != "device binding timeout: context deadline exceeded" {
		t.Fatalf("at %v: %+v", w.now, late)
	}
	w.now++
	if late := hold.Ready(w.s(), w.now); late.Err == nil || late.Err.Error() != "device binding timeout: claim=c" {
		t.Fatalf("a moment later: %+v", late)
	}
	w.carryOut(w.release(p, hold, true))
	byNode, _, _ := w.verdicts(p)
	expect(t, "the next attempt", byNode["a"], "resourceclaim not available on the node")
}

// A claim that is being attached for another pod is usable: this pod waits for it too.
func TestAClaimThatIsBeingAttachedIsShared(t *testing.T) {
	w, _, _ := fabric(t)
	q := w.pod("q", uses("c"))
	hold, writes := w.place(q, "a")
	w.carryOut(writes)
	if r := hold.Ready(w.s(), w.now); r.Ready || r.Err != nil {
		t.Fatalf("%+v", r)
	}
}

// An allocation that the API server shows replaces a decided one: the write of the decided one will fail.
func TestAnAllocationMadeElsewhereCounts(t *testing.T) {
	w := twoGPUs(t)
	w.claim("c", want("r", 1, model("old")))
	w.claim("other", want("r", 1, model("old")))
	w.place(w.pod("p", uses("c")), "a")
	q := w.pod("q", uses("other"))
	expect(t, "while it is decided", w.fits(q), []string{})
	w.set(allocated(w.api("c"), "b", "d0"))
	expect(t, "its device is free", w.fits(q), []string{"a"})
	expect(t, "the claim is where it was allocated", w.fits(w.pod("r", uses("c"))), []string{"b"})
}
