// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestStopwatchCountsEachPodOnce(t *testing.T) {
	w := newStopwatch([]string{"a", "b"})
	w.ask(0)
	w.ask(1)
	w.sawBound("b")
	firstLook := w.bound[1]
	w.sawBound("b")
	w.sawBound("stranger")
	if left, last := w.unbound(); left != 1 || last != firstLook || w.bound[1] != firstLook {
		t.Errorf("%d pods left, want 1; the second look at a bound pod changed its time", left)
	}
	select {
	case <-w.done:
		t.Fatal("done before all pods are bound")
	default:
	}
	w.sawBound("a")
	<-w.done
	if !slices.Equal(w.strange, []string{"stranger"}) {
		t.Errorf("strangers are %v", w.strange)
	}
	if took := w.latencies(); took[0] < 0 || took[1] < 0 || took[0] < took[1] {
		t.Errorf("latencies are %v: a was asked for first and bound last", took)
	}
	if first := w.first(); !first.Equal(w.asked[0]) {
		t.Errorf("the first pod was asked for at %v, want %v", first, w.asked[0])
	}
}

func TestEachPodIsShownOnce(t *testing.T) {
	var shown []string
	listed := 0
	s := &seen{pod: func(p *corev1.Pod) { shown = append(shown, p.Name) }, listed: func() { listed++ }, known: map[string]bool{}}
	a := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: types.UID("1")}}
	b := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: types.UID("2")}}
	for _, err := range []error{s.Replace([]any{a}, ""), s.Update(a), s.Add(b), s.Delete(a), s.Replace([]any{a, b}, "")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(shown, []string{"a", "b"}) || listed != 1 {
		t.Errorf("shown %v, listed %d times, want a and b once and one list", shown, listed)
	}
	if err := s.Add("a"); err == nil {
		t.Error("no error for something that is not a pod")
	}
}
