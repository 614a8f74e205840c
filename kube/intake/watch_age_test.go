// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
)

// TestAWatchThatFallsSilentIsSeen: whatever comes over a watch makes it fresh, a bookmark too; silence makes it stale,
// each watch for itself.
func TestAWatchThatFallsSilentIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, pods, nodes := newTestInbox(t)
		var h watchAges
		const unknown = -1
		silence := func(watch string) (seconds float64) { // of a watch
			h.ages(func(name string, age time.Duration, known bool) {
				if name == watch {
					if seconds = age.Seconds(); !known {
						seconds = unknown
					}
				}
			})
			return seconds
		}
		heard, silent := h.listen("pods", pods), h.listen("nodes", nodes)
		transforming, can := heard.(cache.TransformingStore)
		if !can || transforming.Transformer() == nil {
			t.Fatal("lists would no longer be converted while they stream in")
		}
		for i, tell := range []func() error{
			func() error { return heard.Add(kubetest.PendingPod("p", "1")) },
			func() error { return heard.Update(kubetest.PendingPod("p", "1")) },
			func() error { return heard.Delete(kubetest.PendingPod("p", "1")) },
			func() error { return heard.Replace(nil, "5") },
			func() error { return heard.(cache.ReflectorBookmarkStore).Bookmark("6") },
		} {
			time.Sleep(time.Minute)
			if err := tell(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if got := silence("pods"); got != 1 {
				t.Errorf("word %d came a second ago, and the watch is said to be silent for %v seconds", i, got)
			}
			if got := silence("nodes"); got != float64(61*(i+1)) {
				t.Errorf("the silent watch is said to be silent for %v seconds, want %d", got, 61*(i+1))
			}
		}
		if err := silent.Replace(nil, "1"); err != nil {
			t.Fatal(err)
		}
		// What cannot be had does not grow old, until it brings something. Catches an alert about stale watches that
		// rings for good on a cluster without resource claims.
		h.miss("pods")
		time.Sleep(time.Minute)
		if got := silence("pods"); got != unknown {
			t.Errorf("a watch that cannot be had is said to be silent for %v seconds", got)
		}
		if err := heard.Replace(nil, "7"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := silence("pods"); got != 1 {
			t.Errorf("a watch that can be had again brought something a second ago, and is said to be silent for %v seconds", got)
		}
	})
}
