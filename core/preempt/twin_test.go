// SPDX-License-Identifier: Apache-2.0

package preempt_test

import (
	"cmp"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
)

// TestTwins holds the search by sums and bounds, which remembers, against one that tries every node and remembers
// nothing.
func TestTwins(t *testing.T) {
	seen := map[preempt.Verdict]int{}
	rapid.Check(t, func(t *rapid.T) { twins(t, seen) })
	t.Log(seen)
	for _, v := range []preempt.Verdict{preempt.Evict, preempt.NotHelpful} {
		if seen[v] == 0 {
			t.Errorf("verdict %d was never given: %v", v, seen)
		}
	}
}

func twins(t *rapid.T, seen map[preempt.Verdict]int) {
	w, plain := newWorld(), rapid.Bool().Draw(t, "plain pods")
	if rapid.IntRange(0, 4).Draw(t, "slots") == 0 {
		w.OnePodPerNode()
	}
	for range rapid.IntRange(1, 6).Draw(t, "rounds") {
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			w.stir(t, plain)
		}
		pod := w.drawPod(t, plain)
		*pod.Spec.Priority++
		if rapid.IntRange(0, 3).Draw(t, "nominated") == 0 {
			pod.Status.NominatedNodeName = "n1"
		}
		fast, asked := w.ask(&w.finder, pod, nil)
		if !asked {
			continue
		}
		seen[fast.Verdict]++
		var fresh preempt.Finder
		slow, _ := w.ask(&fresh, pod, func(q *preempt.Question) { q.All = true })
		if fast.Verdict != slow.Verdict || w.told(fast) != w.told(slow) || fast.Verdict == preempt.Evict && fast.Best.Loss != slow.Best.Loss {
			t.Fatalf("for %s of priority %d\nfast: %d %s %+v\nslow: %d %s %+v", pod.Name, *pod.Spec.Priority,
				fast.Verdict, w.told(fast), fast.Best.Loss, slow.Verdict, w.told(slow), slow.Best.Loss)
		}
		w.sane(t, *pod.Spec.Priority, slow)
		w.minimal(t, slow, fast)
		w.listed(t, pod, slow)
	}
}

// listed: the cheapest candidates are the first of all, in the order of their losses.
func (w *world) listed(t *rapid.T, pod *v1.Pod, slow preempt.Answer) {
	count := rapid.IntRange(1, 4).Draw(t, "cheapest")
	some, _ := w.ask(&w.finder, pod, func(q *preempt.Question) { q.Best = count })
	all := slices.Clone(slow.Candidates)
	slices.SortFunc(all, func(a, b preempt.Candidate) int {
		return cmp.Or(a.Loss.Compare(b.Loss), cmp.Compare(a.Node, b.Node))
	})
	all = all[:min(len(all), count)]
	same := slices.EqualFunc(some.Candidates, all, func(a, b preempt.Candidate) bool {
		return w.named(a) == w.named(b) && a.Loss == b.Loss && shields(a) == a.Loss.Violations
	})
	if !same || some.Verdict != slow.Verdict || w.told(some) != w.told(slow) {
		t.Fatalf("the cheapest %d: %+v\nof all: %+v", count, some, all)
	}
}

func shields(c preempt.Candidate) (n int) {
	for i := range c.Victims {
		if c.Protected(i) {
			n++
		}
	}
	return n
}

// sane: victims have lower priority, each stands once, and on the candidate's node (rule R4).
func (w *world) sane(t *rapid.T, priority int32, a preempt.Answer) {
	s := w.Store.Snapshot()
	for _, c := range a.Candidates {
		seen := map[cluster.UID]bool{}
		for _, v := range c.Victims {
			_, n, _, ok := s.PodOn(v.UID)
			if v.Spec.Priority >= priority || !ok || n != c.Node || seen[v.UID] {
				t.Fatalf("victim %s of priority %d for a pod of %d (on the node: %v, twice: %v)", v.Name, v.Spec.Priority, priority, ok && n == c.Node, seen[v.UID])
			}
			seen[v.UID] = true
		}
		if len(c.Victims) == 0 {
			t.Fatal("a candidate without victims")
		}
	}
}

// minimal: the best candidate is one of all, and no other has a smaller loss.
func (w *world) minimal(t *rapid.T, slow, fast preempt.Answer) {
	if slow.Verdict != preempt.Evict {
		return
	}
	if !slices.ContainsFunc(slow.Candidates, func(c preempt.Candidate) bool { return w.named(c) == w.named(fast.Best) }) {
		t.Fatalf("%s is no candidate", w.named(fast.Best))
	}
}
