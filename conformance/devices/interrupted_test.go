// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/sampling"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// A write of a pod's claims fails, or another client allocates one of them first, after other claims of the pod were
// written. What the next pods get is upstream's: a pending allocation counts until all claims are written or the
// attempt ends, and one that was made elsewhere is not replaced.
func TestInterruptedWritesLikeUpstream(t *testing.T) {
	oracle.New().Close()
	seed, cases := sampling.SeedOr(t, defaultSeed), sampling.Cases(t, defaultCases)
	seen := map[string]int{}
	for i := range cases {
		w := newWorld(t, &maker{Rand: rand.New(rand.NewPCG(seed+4, uint64(i))), taken: map[string]bool{}})
		for k := range 4 {
			pod, claims := w.m.pod(fmt.Sprintf("p%d", k), k)
			for _, c := range claims {
				w.api.put(c)
			}
			a := &question{world: w, seen: seen, pod: pod, ours: w.in.Pod(pod)}
			if a.gated() || a.rejected() {
				continue
			}
			if a.judge(); a.filter == nil || len(a.fit) == 0 {
				continue
			}
			a.interrupt(one(w.m, a.fit...))
		}
		if t.Failed() {
			t.Fatalf("case %d of seed %d", i, seed+4)
		}
	}
	t.Logf("%d cases of seed %d: %v", cases, seed+4, seen)
	for _, must := range []string{"refused", "elsewhere", "written before", "undone"} {
		if seen[must] < 100 {
			t.Errorf("%q happened %d times: the cases say too little", must, seen[must])
		}
	}
}

// interrupt reserves devices and lets the writes fail at one claim.
func (a *question) interrupt(node string) {
	ctx := context.Background()
	got := a.take(node)
	var last *cluster.AllocateClaim // that fails
	var writes []cluster.AllocateClaim
	if got.Hold != nil {
		for _, wr := range got.Hold.Writes() {
			if wr, is := wr.(cluster.AllocateClaim); is {
				writes = append(writes, wr)
			}
		}
	}
	if len(writes) > 0 {
		last = &writes[len(writes)-1]
	}
	want := errRefused.Error()
	switch {
	case last == nil: // nothing can fail; the attempt ends all the same
		a.up.Unreserve(ctx, a.state, a.pod, node)
		a.release(got, false)
		return
	case last.Allocation != nil && a.m.chance(50):
		a.allocateElsewhere(last)
		want = fmt.Sprintf("claim %s/%s got allocated elsewhere in the meantime", last.Namespace, last.Name)
		a.seen["elsewhere"]++
	default:
		a.api.refuses = last.Name
		a.seen["refused"]++
	}
	if st := a.up.PreBind(ctx, a.state, a.pod, node); st.IsSuccess() || !strings.Contains(st.AsError().Error(), want) {
		a.fatalf("upstream's PreBind: %v, want %q", st, want)
	}
	a.api.refuses = ""
	for i := range writes[:len(writes)-1] {
		a.wasWritten(&writes[i])
	}
	a.up.Unreserve(ctx, a.state, a.pod, node)
	for _, wr := range a.release(got, true) {
		if wr, is := wr.(cluster.ReleaseClaim); is {
			a.wasReleased(wr)
		}
	}
	// Kumiki does not know that nothing was written, and waits for it a while.
	a.m.now = a.m.now.Add(11 * time.Second)
	a.store.SetNow(record.Time(a.m.now.UnixNano()))
}

// allocateElsewhere lets another client allocate a claim.
func (a *question) allocateElsewhere(wr *cluster.AllocateClaim) {
	c := a.api.claim(wr.Namespace, wr.Name)
	a.m.allocate(c)
	a.api.put(c)
}

// wasWritten compares a claim that was written before another one failed.
func (a *question) wasWritten(wr *cluster.AllocateClaim) {
	c := a.api.claim(wr.Namespace, wr.Name)
	if !reservedBy(c, a.pod.UID) || c.Status.Allocation == nil {
		a.fatalf("kumiki writes %s first, upstream does not: %+v", wr.Name, c.Status)
	}
	a.seen["written before"]++
}

// wasReleased compares a claim that was written or reserved before, and is given back.
func (a *question) wasReleased(wr cluster.ReleaseClaim) {
	if c := a.api.claim(wr.Namespace, wr.Name); c != nil && reservedBy(c, a.pod.UID) {
		a.fatalf("kumiki gives %s back, upstream does not: %+v", wr.Name, c.Status)
	}
	a.seen["undone"]++
}

func reservedBy(c *resourceapi.ResourceClaim, uid types.UID) bool {
	for i := range c.Status.ReservedFor {
		if c.Status.ReservedFor[i].UID == uid {
			return true
		}
	}
	return false
}
