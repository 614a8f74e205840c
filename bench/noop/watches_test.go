// SPDX-License-Identifier: Apache-2.0

package noop

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestEachPodIsShownOnce(t *testing.T) {
	var shown []string
	listed := 0
	s := eachOnce(func() { listed++ }, func(p *corev1.Pod) { shown = append(shown, p.Name) })
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
