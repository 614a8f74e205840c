// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"
	"testing"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// benchWorld has 5,000 nodes with 8 devices each, and claims that want one each.
func benchWorld(b *testing.B, claims int) *world {
	w := newWorld(b)
	w.class("gpu")
	for i := range 5000 {
		node := fmt.Sprintf("n%04d", i)
		w.node(node)
		w.slice(node, device("d0", "x"), device("d1", "x"), device("d2", "x"), device("d3", "x"),
			device("d4", "y"), device("d5", "y"), device("d6", "y"), device("d7", "y"))
	}
	for i := range claims {
		w.claim(fmt.Sprintf("c%d", i), want("r", 1, model("y")))
	}
	return w
}

func (w *world) look(p *cluster.Pod, out []plugin.Verdict) plugin.PodFilter {
	s := w.s()
	f := w.pl.PrepareFilter(s, p).Filter
	clear(out)
	f.Column(s, 0, cluster.NodeIdx(len(out)), plugin.TagOf(0), out)
	return f
}

// BenchmarkFirstLook judges all nodes for claims of a new shape: the allocator is asked about each of them.
func BenchmarkFirstLook(b *testing.B) {
	w := benchWorld(b, 1)
	p := w.pod("p", uses("c0"))
	out := make([]plugin.Verdict, w.s().Rows())
	b.ReportAllocs()
	for b.Loop() {
		w.pl.answers = answers{}
		w.look(p, out)
	}
}

// BenchmarkBurst decides about one pod after the other, each with a claim of its own, as a burst from one template
// does: filter, reserve, and half of the decisions seen as written.
func BenchmarkBurst(b *testing.B) {
	const burst = 2000
	w := benchWorld(b, burst)
	pods := make([]*cluster.Pod, burst)
	for i := range pods {
		pods[i] = w.pod(fmt.Sprintf("p%d", i), uses(fmt.Sprintf("c%d", i)))
	}
	out := make([]plugin.Verdict, w.s().Rows())
	w.look(pods[0], out)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		p := pods[i%burst]
		w.look(p, out)
		n := cluster.NodeIdx(i % len(out))
		var got plugin.Reserved
		w.txn(func() {
			t := w.store.Trial()
			t.Assume(p, n)
			got = w.pl.Reserve(t, p, n)
			t.Commit()
		})
		if got.Hold == nil {
			b.Fatalf("decision %d: %+v", i, got)
		}
		if i%2 == 0 {
			w.carryOut(got.Hold.Writes())
			w.carryOut(w.release(p, got.Hold, true))
			w.claim(fmt.Sprintf("c%d", i%burst), want("r", 1, model("y")))
		} else {
			w.release(p, got.Hold, false)
		}
		i++
	}
}

// BenchmarkNoDevices judges all nodes for claims that only 50 of 5,000 nodes could satisfy: the others have no devices.
func BenchmarkNoDevices(b *testing.B) {
	w := newWorld(b)
	w.class("gpu")
	for i := range 5000 {
		node := fmt.Sprintf("n%04d", i)
		w.node(node)
		if i%100 == 0 {
			w.slice(node, device("d0", "x"), device("d1", "x"))
		}
	}
	w.claim("c", want("r", 1))
	p := w.pod("p", uses("c"))
	out := make([]plugin.Verdict, w.s().Rows())
	b.ReportAllocs()
	for b.Loop() {
		w.pl.answers = answers{}
		w.look(p, out)
	}
}

// BenchmarkGate asks whether a pod's claims are there.
func BenchmarkGate(b *testing.B) {
	w := benchWorld(b, 1)
	p, s := w.pod("p", uses("c0")), w.s()
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := w.pl.Gated(s, p); !ok {
			b.Fatal("kept back")
		}
	}
}

// BenchmarkHint asks whether a change of a claim may help a pod that waits for another one. Every change asks this of
// every waiting pod.
func BenchmarkHint(b *testing.B) {
	w := benchWorld(b, 2)
	p := w.pod("p", uses("c0"))
	old := w.api("c1")
	w.set(allocated(newClaim("c1"), "n0000", "d0"))
	ch := plugin.Change{OldObject: old, NewObject: w.api("c1"), State: w.s()}
	b.ReportAllocs()
	for b.Loop() {
		if claimHint(p, ch) != plugin.SkipHint {
			b.Fatal("woken")
		}
	}
}
