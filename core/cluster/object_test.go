// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func claimAt(name, version string, uid types.UID) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid,
		ResourceVersion: version}}
}

func allocated(c *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	c = c.DeepCopy()
	c.Status.Allocation = &resourceapi.AllocationResult{}
	c.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{UID: "pod"}}
	return c
}

// try runs f in a transaction and a trial that is kept.
func try(s *Store, f func(t *Trial)) {
	s.Begin()
	trial := s.Trial()
	f(trial)
	trial.Commit()
	s.Commit()
}

func set(s *Store, obj Object) {
	s.Begin()
	s.SetObject(obj)
	s.Commit()
}

// The finalizer of a claim is written before its allocation, and drivers write it at any time. Neither gives its
// devices to others.
func TestAnAllocationStaysAssumedUntilItShows(t *testing.T) {
	s := NewStore()
	set(s, claimAt("gpu", "1", "u"))
	try(s, func(tr *Trial) { tr.AssumeObject(allocated(claimAt("gpu", "1", "u"))) })

	set(s, claimAt("gpu", "2", "u"))
	c, _ := Find[*resourceapi.ResourceClaim](s.Snapshot(), "ns", "gpu")
	if c.Status.Allocation == nil || c.ResourceVersion != "2" || len(c.Status.ReservedFor) != 1 {
		t.Fatalf("after the finalizer showed: %+v", c)
	}
	shown := allocated(claimAt("gpu", "3", "u"))
	set(s, shown)
	set(s, claimAt("gpu", "4", "u"))
	if c, _ := Find[*resourceapi.ResourceClaim](s.Snapshot(), "ns", "gpu"); c.Status.Allocation != nil {
		t.Fatalf("still assumed after it showed and was taken back: %+v", c)
	}
}

func TestAnotherClaimOfTheNameIsNotAllocated(t *testing.T) {
	s := NewStore()
	set(s, claimAt("gpu", "1", "u"))
	try(s, func(tr *Trial) { tr.AssumeObject(allocated(claimAt("gpu", "1", "u"))) })
	set(s, claimAt("gpu", "2", "v"))
	if c, _ := Find[*resourceapi.ResourceClaim](s.Snapshot(), "ns", "gpu"); c.Status.Allocation != nil {
		t.Fatalf("allocated: %+v", c)
	}
}

func TestAClaimIsAssumedBeforeItIsMade(t *testing.T) {
	s := NewStore()
	controller := true
	owned := func(name, version string, uid types.UID) *resourceapi.ResourceClaim {
		c := claimAt(name, version, uid)
		c.OwnerReferences = []metav1.OwnerReference{{UID: "pod", Controller: &controller}}
		return c
	}
	try(s, func(tr *Trial) {
		tr.AssumeObject(allocated(owned("made", "", "")))
		tr.AssumeObject(allocated(owned("never", "", "")))
	})
	v := s.Snapshot()
	if _, ok := FindAPI[*resourceapi.ResourceClaim](v, "ns", "made"); ok {
		t.Fatal("the API server has it already")
	}
	if c, ok := Find[*resourceapi.ResourceClaim](v, "ns", "made"); !ok || c.Status.Allocation == nil {
		t.Fatalf("not assumed: %v %+v", ok, c)
	}
	s.Begin()
	old := s.SetObject(owned("made", "7", "u"))
	s.Commit()
	if old != nil {
		t.Fatalf("it was there before: %v", old)
	}
	if c, _ := Find[*resourceapi.ResourceClaim](v, "ns", "made"); c.Status.Allocation == nil || c.UID != "u" {
		t.Fatalf("made, not yet allocated: %+v", c)
	}
	try(s, func(tr *Trial) { tr.RestoreObject(KindDeviceClaim, ObjectKey{"ns", "never"}) })
	if _, ok := Find[*resourceapi.ResourceClaim](v, "ns", "never"); ok {
		t.Fatal("taken back and still there")
	}
}

// The sorted list is kept as objects come, change and go, and is what sorting them anew would give; the journal names
// each that changed.
func TestObjectsStaySortedAndJournalled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewStore()
		want := map[string]string{} // name -> resourceVersion
		v := s.Snapshot()
		_, seq, _ := v.KindChanges(KindDeviceClaim, 0)
		for step := range rapid.IntRange(1, 40).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "name")
			s.Begin()
			if rapid.Bool().Draw(t, "set") {
				want[name] = fmt.Sprint(step)
				s.SetObject(claimAt(name, want[name], "u"))
			} else {
				s.DeleteObject(KindDeviceClaim, ObjectKey{"ns", name})
			}
			if rapid.Bool().Draw(t, "keep") {
				s.Commit()
				if _, ok := Find[*resourceapi.ResourceClaim](v, "ns", name); !ok {
					delete(want, name)
				}
			} else {
				s.Abort()
				delete(want, name)
				if c, ok := Find[*resourceapi.ResourceClaim](v, "ns", name); ok {
					want[name] = c.ResourceVersion
				}
			}
			keys, next, ok := v.KindChanges(KindDeviceClaim, seq)
			if !ok || next < seq || len(keys) > 0 && !slices.Contains(keys, ObjectKey{"ns", name}) {
				t.Fatalf("journal from %d: %v %v, to %d", seq, keys, ok, next)
			}
			seq = next
			got, names := map[string]string{}, []string{}
			Each(v, func(c *resourceapi.ResourceClaim) bool {
				got[c.Name], names = c.ResourceVersion, append(names, c.Name)
				return true
			})
			if !slices.IsSorted(names) || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("listed %v %v, want %v", names, got, want)
			}
		}
	})
}
