// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

func shown(name, uid, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(uid)}, Spec: corev1.PodSpec{NodeName: node}}
}

func asked(w *Watch, name string, wait ...*waiter) *entry {
	e := &entry{Pod: Pod{Namespace: "n", Name: name, Asked: w.clock.Now()}, awaited: true, waiting: wait}
	w.ask(e)
	return e
}

func open(wait *waiter) bool {
	select {
	case <-wait.done:
		return false
	default:
		return true
	}
}

// Catches: the time of a pod that moves when it is shown again (every relist shows all of them); a pod counted twice for
// those who wait.
func TestPodIsBoundOnce(t *testing.T) {
	clock := newHands()
	w := NewWatch(clock)
	wait := expect(workload.Scheduled, 2)
	asked(w, "a", wait)
	asked(w, "b", wait)
	s := &sight{watch: w}
	for _, p := range []*corev1.Pod{shown("a", "1", ""), shown("a", "1", "node"), shown("a", "1", "node")} {
		clock.move(time.Second)
		if err := s.Update(p); err != nil {
			t.Fatal(err)
		}
	}
	if left, _ := w.missing(wait); left != 1 || !open(wait) {
		t.Fatalf("%d pods are missing, want b", left)
	}
	if got := w.Pods(nil, nil)[0].Latency(); got != 2 {
		t.Errorf("a was bound %v s after it was asked for, want 2", got)
	}
	if err := s.Update(shown("b", "2", "node")); err != nil {
		t.Fatal(err)
	}
	if open(wait) {
		t.Error("both pods are bound and the waiter still waits")
	}
}

// Catches: what becomes of a pod taken for what becomes of another one that has had its name.
func TestPodsOfOneName(t *testing.T) {
	clock := newHands()
	w := NewWatch(clock)
	s := &sight{watch: w}
	first := asked(w, "a")
	if err := s.Add(shown("a", "1", "node-1")); err != nil {
		t.Fatal(err)
	}
	clock.move(time.Second)
	second := asked(w, "a")
	// A late word about the first one.
	if err := s.Delete(shown("a", "1", "node-1")); err != nil {
		t.Fatal(err)
	}
	if first.Gone.IsZero() || !second.Gone.IsZero() || second.uid != "" {
		t.Fatalf("the first pod is %+v and the second %+v, want the first gone", first.Pod, second.Pod)
	}
	clock.move(time.Second)
	if err := s.Add(shown("a", "2", "node-2")); err != nil {
		t.Fatal(err)
	}
	if first.Node != "node-1" || second.Node != "node-2" || second.Latency() != 1 {
		t.Errorf("the first pod is %+v and the second %+v", first.Pod, second.Pod)
	}
}

// Catches: pods that were deleted while the watch was broken waited for until patience ends; pods that were asked for and
// not seen yet taken for deleted; a pod that was never bound given a latency.
func TestListTellsWhatIsGone(t *testing.T) {
	w := NewWatch(newHands())
	wait := expect(workload.Scheduled, 2)
	lost, late := asked(w, "lost", wait), asked(w, "late", wait)
	s := &sight{watch: w}
	for _, list := range [][]any{{shown("lost", "1", "")}, {shown("other", "3", "node")}} {
		if err := s.Replace(list, ""); err != nil {
			t.Fatal(err)
		}
	}
	if lost.Gone.IsZero() || !late.Gone.IsZero() {
		t.Errorf("lost is gone since %s, late since %s, want lost alone", lost.Gone, late.Gone)
	}
	if left, _ := w.missing(wait); left != 1 {
		t.Errorf("%d pods are waited for, want late", left)
	}
	if !math.IsInf(lost.Latency(), 1) {
		t.Errorf("a pod that was never bound has latency %v", lost.Latency())
	}
	if pods := w.Pods(nil, nil); len(pods) != 3 || pods[2].Op != -1 {
		t.Errorf("the pods are %+v, want the foreign pod last", pods)
	}
	if err := s.Add("a pod"); err == nil {
		t.Error("no error for something that is not a pod")
	}
}

// Catches: a wait that misses what happened before it began, such as pods that are bound while the next operation runs.
func TestWaitBeginsLate(t *testing.T) {
	w := NewWatch(newHands())
	asked(w, "a")
	asked(w, "b")
	s := &sight{watch: w}
	if err := s.Add(shown("a", "1", "node")); err != nil {
		t.Fatal(err)
	}
	all := func(*entry) bool { return true }
	wait := w.await(workload.Scheduled, all)
	if left, _ := w.missing(wait); left != 1 || wait.of != 2 || !open(wait) {
		t.Fatalf("%d of %d pods are missing, want b", left, wait.of)
	}
	gone := shown("b", "2", "")
	gone.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	if err := s.Update(gone); err != nil {
		t.Fatal(err)
	}
	if open(wait) || open(w.await(workload.Scheduled, all)) || open(w.await(workload.Attempted, func(*entry) bool { return false })) {
		t.Error("a waiter remains, and no pod can still be bound")
	}
}
