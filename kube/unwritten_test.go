// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// TestWhatIsKnownIsNotReadFirst: what the watch has shown is updated as a whole, without asking the API server for it, and what it
// has shown too late is read then. What nobody reads, like a driver's data and an annotation, stays as it was. Catches a writer
// that sends back what the engine keeps of an object, and one that never reads again (knownForEver).
func TestWhatIsKnownIsNotReadFirst(t *testing.T) {
	for name, late := range map[string]bool{"in time": false, "too late": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seen := deviceClaim("5")
				seen.Annotations, seen.Labels = map[string]string{"mine": "1"}, map[string]string{"team": "a"}
				seen.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "who"}}
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
				in := NewInbox(func(object string, problem any) { t.Errorf("%s: %v", object, problem) }, cluster.KindDeviceClaim)
				newObjectStore(in, in.objects[0]).Update(seen.DeepCopy())
				m, _ := counted()
				var message string
				w := NewWriter(t.Context(), s, 0, m, func(d engine.WritesDone) { message = d.Message })
				w.unwritten = in.Unwritten
				target := cluster.Target{Kind: cluster.KindDeviceClaim, Namespace: "ns", Name: "d", UID: "ud"}
				w.Prepare(engine.Prepare{Pod: record.PodRef{Namespace: "ns", Name: "p", UID: "up"}, Writes: []cluster.Write{
					cluster.AllocateClaim{Target: target, Allocation: allocation(), ReservedFor: consumer("up")}}})
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

// TestWhatMayBeWrittenIsKeptInFull, and no longer than that: claims without devices, volumes and claims that are not bound.
// Catches an Inbox that keeps all claims (allocatedKept).
func TestWhatMayBeWrittenIsKeptInFull(t *testing.T) {
	in := NewInbox(func(object string, problem any) { t.Errorf("%s: %v", object, problem) }, cluster.KindDeviceClaim, cluster.KindClaim, cluster.KindVolume)
	claims, volumes, devices := claim("c", "uc", "6"), writtenVolume(), deviceClaim("5")
	volumes.Status.Phase = v1.VolumeAvailable
	devices.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "who"}}
	target := map[cluster.Kind]cluster.Target{
		cluster.KindClaim: {Namespace: "ns", Name: "c", UID: "uc"}, cluster.KindVolume: {Name: "v", UID: "uv"},
		cluster.KindDeviceClaim: {Namespace: "ns", Name: "d", UID: "ud"},
	}
	told := func(obj cluster.Object) {
		for _, rows := range in.objects {
			if rows.kind == cluster.KindOf(obj) {
				newObjectStore(in, rows).Update(obj)
			}
		}
	}
	check := func(when string, want bool) {
		t.Helper()
		for kind, of := range target {
			if got := in.Unwritten(kind, of); (got != nil) != want {
				t.Errorf("%s: %s is kept: %v", when, kind, got != nil)
			} else if got != nil && len(got.GetManagedFields()) > 0 {
				t.Errorf("%s: %s is kept with managed fields", when, kind)
			}
			of.UID = "another"
			if in.Unwritten(kind, of) != nil {
				t.Errorf("%s: %s is taken for another", when, kind)
			}
		}
	}
	told(claims)
	told(volumes)
	told(devices)
	check("new", true)
	bound, taken := claim("c", "uc", "7"), writtenVolume()
	bound.Spec.VolumeName, taken.ResourceVersion, taken.Status.Phase = "v", "7", v1.VolumeBound
	told(bound)
	told(taken)
	told(allocated("7", "up"))
	check("bound", false)
	told(deviceClaim("8"))
	told(claim("c", "uc", "8"))
	told(writtenVolume())
	check("free again", true)
	for _, rows := range in.objects {
		store := newObjectStore(in, rows)
		for key := range rows.rows {
			store.Delete(&metav1.ObjectMeta{Namespace: key.namespace, Name: key.name})
		}
	}
	newPodStore(in).Replace(nil, "9")
	newNodeStore(in).Replace(nil, "9")
	for _, rows := range in.objects {
		newObjectStore(in, rows).Replace(nil, "9")
	}
	in.Take(nil, 100)
	check("gone", false)
}
