// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"testing"

	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// mixWorld is a store that observes pods on one node.
type mixWorld struct {
	*Store
	made int
}

// bound has the API server report n pods of a size on the node.
func (w *mixWorld) bound(n int, cpu int64) {
	spec := &PodSpec{Held: resource.Amounts{MilliCPU: cpu}}
	for range n {
		w.made++
		uid := fmt.Sprint("pod-", w.made)
		w.SetPod(&Pod{UID: UID(uid), Name: uid, NodeName: "n", Spec: spec})
	}
}

// shown prints what plugins read.
func (w *mixWorld) shown() string {
	shapes, _ := w.Snapshot().Mix()
	out := ""
	for _, sh := range shapes {
		out += fmt.Sprintf("%d×%d ", sh.Pods, sh.Held.MilliCPU)
	}
	return out
}

// TestMixIsRenewedWhenPodsHaveDoubled: plugins read the mix as of 1, 2, 4, … pods, and its version changes with it.
func TestMixIsRenewedWhenPodsHaveDoubled(t *testing.T) {
	w := &mixWorld{Store: NewStore()}
	for _, step := range []struct {
		pods int
		cpu  int64
		want string
	}{
		{1, 10, "1×10 "}, {1, 20, "1×10 1×20 "}, {1, 20, "1×10 1×20 "}, {1, 20, "1×10 3×20 "},
		{3, 30, "1×10 3×20 "},
		{1, 10, "2×10 3×20 3×30 "},
	} {
		before := w.shown()
		_, version := w.Snapshot().Mix()
		w.bound(step.pods, step.cpu)
		_, now := w.Snapshot().Mix()
		if w.shown() != step.want || (now != version) != (w.shown() != before) {
			t.Errorf("after %d pods: %q with version %d (before: %q with %d), want %q", w.made, w.shown(), now, before,
				version, step.want)
		}
	}
}

// TestMixCountsAPodOnce: the API server's later reports of a pod, and a pod that was only assumed, do not count.
func TestMixCountsAPodOnce(t *testing.T) {
	w := &mixWorld{Store: NewStore()}
	w.Begin()
	trial := w.Trial()
	spec := &PodSpec{Held: resource.Amounts{MilliCPU: 10}}
	p := &Pod{UID: "p", Name: "p", NodeName: "n", Spec: spec}
	w.SetNode(&Node{Name: "n"})
	row, _ := w.Snapshot().Find("n")
	trial.Assume(&Pod{UID: "p", Name: "p", Spec: spec}, row)
	trial.Commit()
	w.Commit()
	if w.shown() != "" {
		t.Errorf("an assumed pod is in the mix: %q", w.shown())
	}
	for range 3 {
		w.SetPod(p)
	}
	w.bound(1, 20)
	if want := "1×10 1×20 "; w.shown() != want {
		t.Errorf("mix %q, want %q", w.shown(), want)
	}
}

// TestOldPodsCountHalf: after twice as many pods as a renewal takes, the older ones count half, and shapes without a
// pod are dropped.
func TestOldPodsCountHalf(t *testing.T) {
	w := &mixWorld{Store: NewStore()}
	w.bound(1, 10)
	w.bound(2*mixPods-1, 20)
	w.bound(mixPods, 30)
	if want := fmt.Sprintf("%d×20 %d×30 ", mixPods-1, mixPods); w.shown() != want {
		t.Errorf("mix %q, want %q", w.shown(), want)
	}
}

// TestAbortedMix: an aborted transaction leaves the mix as it was, under another version, and a store that continues
// from the facts shows and renews the same.
func TestAbortedMix(t *testing.T) {
	for _, pods := range []int{0, 1, 2, 5, 2*mixPods - 1} {
		w := &mixWorld{Store: NewStore()}
		w.bound(pods, 10)
		before := fmt.Sprint(w.State().Mix)
		_, version := w.Snapshot().Mix()
		shown := w.shown()
		for _, cpu := range []int64{10, 20} {
			w.Begin()
			w.bound(3, cpu)
			changed := w.shown() != shown
			w.Abort()
			if _, now := w.Snapshot().Mix(); changed && now == version {
				t.Errorf("after %d pods: version %d stands for two mixes", pods, now)
			}
			if got := fmt.Sprint(w.State().Mix); got != before || w.shown() != shown {
				t.Errorf("after %d pods, an aborted transaction leaves %s, want %s", pods, got, before)
			}
		}
		again := &mixWorld{Store: NewStore(), made: w.made}
		if err := again.Restore(w.State()); err != nil {
			t.Fatal(err)
		}
		for range 8 {
			w.bound(1, 30)
			again.bound(1, 30)
			if w.shown() != again.shown() {
				t.Errorf("a restored store shows %q, want %q", again.shown(), w.shown())
			}
		}
	}
}

// TestLargestAmounts: the largest amount of each resource follows the nodes, and the version follows the amounts.
func TestLargestAmounts(t *testing.T) {
	s := NewStore()
	set := func(name string, cpu int64) {
		s.SetNode(&Node{Name: name, Allocatable: resource.Amounts{MilliCPU: cpu}})
	}
	read := func() (int64, uint64) {
		amounts, version := s.Snapshot().Largest()
		return amounts[resource.CPU], version
	}
	set("a", 4)
	set("b", 8)
	most, version := read()
	if most != 8 {
		t.Errorf("largest %d, want 8", most)
	}
	set("a", 5)
	if most, now := read(); most != 8 || now != version {
		t.Errorf("after a change of a smaller node: %d with version %d, want 8 with %d", most, now, version)
	}
	s.DeleteNode("b")
	if most, now := read(); most != 5 || now == version {
		t.Errorf("without the largest node: %d with version %d", most, now)
	}
}
