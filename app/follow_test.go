// SPDX-License-Identifier: Apache-2.0

package app

import (
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// TestDecisionsWaitForInformers: a decision waits until the informer of plugins shows its pod, in its version or a newer
// one, or has lost it; not without an informer, and not without limit.
func TestDecisionsWaitForInformers(t *testing.T) {
	pod := func(version int) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", ResourceVersion: strconv.Itoa(version)}}
	}
	for name, tt := range map[string]struct {
		arrives func(cache.Store) // at the second look
		last    string
		has     *v1.Pod
		looks   int // sleeps
		late    int64
	}{
		"is there":       {has: pod(7), last: "7"},
		"is newer":       {has: pod(8), last: "8"},
		"is older":       {has: pod(6), last: "6", arrives: func(s cache.Store) { _ = s.Update(pod(7)) }, looks: 2},
		"is not there":   {last: "6", arrives: func(s cache.Store) { _ = s.Add(pod(9)) }, looks: 2},
		"is gone":        {last: "9"},
		"stays behind":   {has: pod(6), last: "6", looks: int(followFor / followEvery), late: 1},
		"not comparable": {has: pod(6), last: "x", arrives: func(s cache.Store) { _ = s.Delete(pod(6)) }, looks: 2},
	} {
		t.Run(name, func(t *testing.T) {
			store, looks := cache.NewStore(cache.MetaNamespaceKeyFunc), 0
			if tt.has != nil {
				_ = store.Add(tt.has)
			}
			f := newFollower()
			f.sleep = func(time.Duration) {
				if looks++; looks == 2 && tt.arrives != nil {
					tt.arrives(store)
				}
			}
			f.await(pod(7))
			if looks != 0 {
				t.Fatalf("it waits without an informer")
			}
			f.pods.Store(&podInformer{store, func() string { return tt.last }})
			f.await(pod(7))
			if looks != tt.looks || f.late.Load() != tt.late {
				t.Errorf("%d looks and %d decisions without it, want %d and %d", looks, f.late.Load(), tt.looks, tt.late)
			}
		})
	}
}
