// SPDX-License-Identifier: Apache-2.0

package effects

import (
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// TestWhatIsKnownIsNotReadFirst: what the watch has shown is updated as a whole, without asking the API server for
// it, and what it has shown too late is read then. What no component reads, like a driver's data and an annotation,
// stays as it was. Catches a writer that sends back what the engine keeps of an object, and one that never reads
// again (knownForEver).
func TestWhatIsKnownIsNotReadFirst(t *testing.T) {
	for name, late := range map[string]bool{"in time": false, "too late": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seen := kubetest.DeviceClaim("5")
				seen.Annotations, seen.Labels = map[string]string{"mine": "1"}, map[string]string{"team": "a"}
				is := seen.DeepCopy()
				if late {
					is.ResourceVersion, is.Annotations["mine"] = "6", "2"
				}
				s := newObjectServer(is)
				reads := atomic.Int32{}
				s.before = func(verb, _ string) error {
					if verb == "get" {
						reads.Add(1)
					}
					return nil
				}
				m, _ := counted()
				var message string
				w := NewWriter(t.Context(), s, 0, m, func(d engine.WritesDone) { message = d.Message })
				target := cluster.Target{Kind: cluster.KindDeviceClaim, Namespace: "ns", Name: "d", UID: "ud"}
				w.unwritten = func(kind cluster.Kind, of cluster.Target) metav1.Object {
					if kind != cluster.KindDeviceClaim || of != target {
						t.Errorf("asked for the %s %+v", kind, of)
					}
					return seen.DeepCopy()
				}
				w.Prepare(engine.Prepare{Pod: record.PodRef{Namespace: "ns", Name: "p", UID: "up"}, Writes: []cluster.Write{
					cluster.AllocateClaim{Target: target, Allocation: kubetest.Allocation(), ReservedFor: kubetest.Consumer("up")}}})
				time.Sleep(time.Minute)
				synctest.Wait()
				w.Drain(t.Context())
				want := int32(0)
				if late {
					want = 1
				}
				got, _ := kept[*resourceapi.ResourceClaim](t, s, deviceResource, "ns", "d")
				if message != "" || reads.Load() != want || fmt.Sprint(s.log) != "[update resourceclaims update resourceclaims/status]" {
					t.Errorf("%d reads, %v, message %q", reads.Load(), s.log, message)
				}
				if got.Annotations["mine"] != is.Annotations["mine"] || got.Labels["team"] != "a" || len(got.Finalizers) != 2 || got.Status.Allocation == nil {
					t.Errorf("left %+v", got)
				}
			})
		})
	}
}
