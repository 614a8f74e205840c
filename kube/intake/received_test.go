// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
)

// TestReceived: an event has the time of the oldest change in it. A version that shows the pod bound, or another pod of
// the name, counts anew; what is not about pods has none.
func TestReceived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := NewInbox(func(object string, problem any) { t.Errorf("%s: %v", object, problem) })
		pods, nodes := in.PodStore(), in.NodeStore()
		pods.Replace(nil, "1")
		nodes.Replace([]any{kubetest.Node("n1")}, "1")
		start := in.Clock().Now()
		version := func(at time.Duration, uid types.UID, change func(*v1.Pod)) {
			time.Sleep(at - time.Duration(in.Clock().Now()-start))
			p := kubetest.PendingPod("p", uid)
			change(p)
			pods.Update(p)
		}
		take := func() (received []time.Duration) {
			events, _ := in.Take(nil, 100)
			if len(events) != len(in.Received()) {
				t.Fatalf("%d events, %d times", len(events), len(in.Received()))
			}
			for i, at := range in.Received() {
				if _, is := events[i].(engine.PodSet); is {
					received = append(received, time.Duration(at-start))
				} else if _, gone := events[i].(engine.PodGone); !gone && at != 0 {
					t.Errorf("%T was received at %d", events[i], at)
				}
			}
			return received
		}
		want := func(what string, at time.Duration) {
			t.Helper()
			if got := take(); len(got) != 1 || got[0] != at {
				t.Errorf("%s: received at %v, want %v", what, got, at)
			}
		}
		version(1*time.Second, "u", func(p *v1.Pod) {})
		version(2*time.Second, "u", func(p *v1.Pod) { p.Labels = map[string]string{"a": "b"} })
		want("two versions", time.Second)
		version(3*time.Second, "u", func(p *v1.Pod) { p.Labels = map[string]string{"a": "c"} })
		version(4*time.Second, "u", func(p *v1.Pod) { p.Spec.NodeName = "n1" })
		version(5*time.Second, "u", func(p *v1.Pod) { p.Spec.NodeName, p.Labels = "n1", nil })
		want("bound while it waits", 4*time.Second)
		version(6*time.Second, "u", func(p *v1.Pod) { p.Spec.NodeName, p.ResourceVersion, p.Generation = "n1", "9", 7 })
		version(7*time.Second, "x", func(p *v1.Pod) {})
		want("another pod", 7*time.Second)
	})
}
