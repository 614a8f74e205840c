// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"testing"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// remedy-takes-used, remedy-blind
func TestAnIdleClaimInTheWrongPlaceIsFreed(t *testing.T) {
	w := twoGPUs(t)
	w.set(allocated(newClaim("x", want("r", 1)), "a", "d0"))
	w.set(allocated(newClaim("y", want("r", 1)), "b", "d0"))
	p := w.pod("p", uses("x"), uses("y"))
	expect(t, "nowhere", w.fits(p), []string{})
	writes, message := w.pl.Remedy(w.s(), p)
	expect(t, "message", message, "deallocation of ResourceClaim completed")
	expect(t, "writes", writes, []cluster.Write{cluster.ReleaseClaim{Target: versioned(w, "x"), Deallocate: true}})
	w.carryOut(writes)
	expect(t, "the devices are where they are", w.fits(p), []string{})

	w.slice("b", device("d0", "new"), device("d1", "new"))
	expect(t, "and one more comes", w.fits(p), []string{"b"})
	if writes, _ := w.pl.Remedy(w.s(), w.pod("other", uses("x"))); writes != nil {
		t.Fatalf("asked about a pod that was not decided about: %v", writes)
	}
}

func versioned(w *world, name string) cluster.Target {
	c := w.api(name)
	target := targetOf(c)
	target.ResourceVersion = c.ResourceVersion
	return target
}

func TestAClaimInUseIsNotFreed(t *testing.T) {
	w := twoGPUs(t)
	w.set(usedBy(allocated(newClaim("x", want("r", 1)), "a", "d0"), "other"))
	w.set(usedBy(allocated(newClaim("y", want("r", 1)), "b", "d0"), "p"))
	p := w.pod("p", uses("x"), uses("y"))
	w.fits(p)
	writes, _ := w.pl.Remedy(w.s(), p)
	expect(t, "only its own", writes, []cluster.Write{cluster.ReleaseClaim{Target: versioned(w, "y"),
		Deallocate: true}})

	w.set(usedBy(allocated(newClaim("y", want("r", 1)), "b", "d0"), "p", "another"))
	w.fits(p)
	writes, message := w.pl.Remedy(w.s(), p)
	expect(t, "nothing", len(writes), 0)
	expect(t, "message", message, "")
}

func TestClaimsThatCanBeUsedAreNotFreed(t *testing.T) {
	w := twoGPUs(t)
	w.set(allocated(newClaim("everywhere", want("r", 1)), "a", "d0"))
	c := w.api("everywhere")
	c.Status.Allocation.NodeSelector = nil
	w.set(c)
	w.claim("two", want("r", 2))
	p := w.pod("p", uses("everywhere"), uses("two"))
	expect(t, "nowhere", w.fits(p), []string{})
	writes, message := w.pl.Remedy(w.s(), p)
	expect(t, "nothing", len(writes), 0)
	expect(t, "message", message, "")

	none := w.pod("none")
	w.fits(none)
	_, message = w.pl.Remedy(w.s(), none)
	expect(t, "no claims", message, "")
}
