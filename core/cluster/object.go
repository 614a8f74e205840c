// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Object is an API object other than pods and nodes: immutable, and trimmed to what the scheduler reads. Its concrete
// type is a pointer to one of the types of KindOf.
type Object interface{ metav1.Object }

// Kind names a type of Object, as the API does.
type Kind string

// The kinds of objects.
const (
	KindNamespace     Kind = "Namespace"
	KindService       Kind = "Service"
	KindController    Kind = "ReplicationController"
	KindReplicaSet    Kind = "ReplicaSet"
	KindStatefulSet   Kind = "StatefulSet"
	KindClaim         Kind = "PersistentVolumeClaim"
	KindVolume        Kind = "PersistentVolume"
	KindStorageClass  Kind = "StorageClass"
	KindCSINode       Kind = "CSINode"
	KindCSIDriver     Kind = "CSIDriver"
	KindCapacity      Kind = "CSIStorageCapacity"
	KindAttachment    Kind = "VolumeAttachment"
	KindDeviceClaim   Kind = "ResourceClaim"
	KindResourceSlice Kind = "ResourceSlice"
	KindDeviceClass   Kind = "DeviceClass"
	KindDeviceTaint   Kind = "DeviceTaintRule"
	KindBudget        Kind = "PodDisruptionBudget"
	KindGang          Kind = "Gang" // an object that declares a gang, of whichever API
)

// KindOf returns the kind of an object. It panics with the type of an object that the store does not keep.
func KindOf(obj Object) Kind {
	switch obj.(type) {
	case *v1.Namespace:
		return KindNamespace
	case *v1.Service:
		return KindService
	case *v1.ReplicationController:
		return KindController
	case *appsv1.ReplicaSet:
		return KindReplicaSet
	case *appsv1.StatefulSet:
		return KindStatefulSet
	case *v1.PersistentVolumeClaim:
		return KindClaim
	case *v1.PersistentVolume:
		return KindVolume
	case *storagev1.StorageClass:
		return KindStorageClass
	case *storagev1.CSINode:
		return KindCSINode
	case *storagev1.CSIDriver:
		return KindCSIDriver
	case *storagev1.CSIStorageCapacity:
		return KindCapacity
	case *storagev1.VolumeAttachment:
		return KindAttachment
	case *resourceapi.ResourceClaim:
		return KindDeviceClaim
	case *resourceapi.ResourceSlice:
		return KindResourceSlice
	case *resourceapi.DeviceClass:
		return KindDeviceClass
	case *resourceapi.DeviceTaintRule:
		return KindDeviceTaint
	case *policyv1.PodDisruptionBudget:
		return KindBudget
	case *Gang:
		return KindGang
	}
	panic(fmt.Sprintf("cluster: object of type %T", obj))
}

// EmptyObject returns a new object of a kind, nil for an unknown kind.
func EmptyObject(k Kind) Object {
	switch k {
	case KindNamespace:
		return &v1.Namespace{}
	case KindService:
		return &v1.Service{}
	case KindController:
		return &v1.ReplicationController{}
	case KindReplicaSet:
		return &appsv1.ReplicaSet{}
	case KindStatefulSet:
		return &appsv1.StatefulSet{}
	case KindClaim:
		return &v1.PersistentVolumeClaim{}
	case KindVolume:
		return &v1.PersistentVolume{}
	case KindStorageClass:
		return &storagev1.StorageClass{}
	case KindCSINode:
		return &storagev1.CSINode{}
	case KindCSIDriver:
		return &storagev1.CSIDriver{}
	case KindCapacity:
		return &storagev1.CSIStorageCapacity{}
	case KindAttachment:
		return &storagev1.VolumeAttachment{}
	case KindDeviceClaim:
		return &resourceapi.ResourceClaim{}
	case KindResourceSlice:
		return &resourceapi.ResourceSlice{}
	case KindDeviceClass:
		return &resourceapi.DeviceClass{}
	case KindDeviceTaint:
		return &resourceapi.DeviceTaintRule{}
	case KindBudget:
		return &policyv1.PodDisruptionBudget{}
	case KindGang:
		return &Gang{}
	}
	return nil
}

// ObjectKey identifies an object among those of its kind; Namespace is empty for kinds without namespaces.
type ObjectKey struct{ Namespace, Name string }

// KeyOf returns an object's key.
func KeyOf(obj Object) ObjectKey { return ObjectKey{obj.GetNamespace(), obj.GetName()} }

func compareObjectKeys(a, b ObjectKey) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// slot is one object: as the API server has it, and as it will be after the decided writes.
type slot struct {
	api     Object // kept; nil while the object is yet to be created
	assumed Object // kept; nil if no write of it is decided
}

func (sl slot) now() Object {
	if sl.assumed != nil {
		return sl.assumed
	}
	return sl.api
}

// table holds the objects of one kind.
type table struct {
	slots map[ObjectKey]slot // kept; key -> object
	// rev counts changes, assumptions included; it never decreases.
	rev uint64 // derived: only caches compare it
	// sorted holds the current objects, by key; nil until it is requested.
	sorted []Object // derived: the slots in order
	// journal lists the keys that changed, oldest first, from sequence number base on.
	journal []ObjectKey // derived: caches that start anew read all objects
	base    uint64      // derived: of the journal
}

func (s *Store) table(k Kind) *table {
	t := s.objects[k]
	if t == nil {
		t = &table{slots: map[ObjectKey]slot{}}
		s.objects[k] = t
	}
	return t
}

// put stores sl under a key; a zero slot means that there is no object.
func (s *Store) put(k Kind, key ObjectKey, sl slot) {
	t := s.table(k)
	old := t.slots[key]
	t.set(key, sl)
	s.volumesObject(old.api, sl.api)
	s.did(func() { t.set(key, old); s.volumesObject(sl.api, old.api) })
}

func (t *table) set(key ObjectKey, sl slot) {
	if sl == (slot{}) {
		delete(t.slots, key)
	} else {
		t.slots[key] = sl
	}
	t.rev++
	t.note(key)
	t.resort(key, sl.now())
}

// note adds a key to the journal.
func (t *table) note(key ObjectKey) {
	if len(t.journal) >= 2*journalKeep {
		drop := len(t.journal) - journalKeep
		t.base += uint64(drop)
		t.journal = append(t.journal[:0], t.journal[drop:]...)
	}
	t.journal = append(t.journal, key)
}

// resort updates the sorted list, if there is one.
func (t *table) resort(key ObjectKey, now Object) {
	if t.sorted == nil {
		return
	}
	i, found := slices.BinarySearchFunc(t.sorted, key, func(obj Object, k ObjectKey) int {
		return compareObjectKeys(KeyOf(obj), k)
	})
	switch {
	case found && now != nil:
		t.sorted[i] = now
	case found:
		t.sorted = slices.Delete(t.sorted, i, i+1)
	case now != nil:
		t.sorted = slices.Insert(t.sorted, i, now)
	}
}

// SetObject records an object as the API server has it and returns the version known before, nil for a new one. A new
// version ends what was assumed about the version before, because the decided write has that resourceVersion as its
// precondition. Allocations of resource claims are the exception (see carried).
func (s *Store) SetObject(obj Object) (old Object) {
	k, key := KindOf(obj), KeyOf(obj)
	was := s.table(k).slots[key]
	is := slot{api: obj}
	if was.api != nil && was.api.GetResourceVersion() == obj.GetResourceVersion() && obj.GetResourceVersion() != "" {
		is.assumed = was.assumed
	} else {
		is.assumed = carried(was.assumed, obj)
	}
	s.put(k, key, is)
	s.changed(Change{Kind: ObjectChanged, Object: obj})
	if was.api == nil {
		return nil
	}
	return was.now()
}

// carried returns what remains assumed about an object of which a new version was observed; nil for nothing. A
// resource claim is allocated by several writes (create, finalizer, status), the first of which are observed before
// the last is done, and drivers write it too; its devices would be free for other pods in between. So an allocation
// stays assumed until the API server shows one, or until RestoreObject.
func carried(assumed, obj Object) Object {
	if assumed == nil {
		return nil
	}
	was, ok := assumed.(*resourceapi.ResourceClaim)
	if !ok || was.Status.Allocation == nil {
		return nil
	}
	seen := obj.(*resourceapi.ResourceClaim)
	if seen.Status.Allocation != nil || !sameClaim(was, seen) {
		return nil
	}
	claim := *seen
	claim.Status.Allocation, claim.Status.ReservedFor = was.Status.Allocation, was.Status.ReservedFor
	return &claim
}

// sameClaim reports whether the API server shows the claim that was assumed. A claim that was yet to be created had
// no UID, but an owner.
func sameClaim(assumed, seen *resourceapi.ResourceClaim) bool {
	if assumed.ResourceVersion != "" {
		return assumed.UID == seen.UID
	}
	a, b := metav1.GetControllerOfNoCopy(assumed), metav1.GetControllerOfNoCopy(seen)
	return a != nil && b != nil && a.UID == b.UID
}

// DeleteObject removes an object and returns the known version, nil if there was none.
func (s *Store) DeleteObject(k Kind, key ObjectKey) (old Object) {
	was := s.table(k).slots[key]
	if was.api == nil {
		return nil
	}
	s.put(k, key, slot{})
	s.changed(Change{Kind: ObjectRemoved, Type: k, Key: key})
	return was.now()
}

// AssumeObject records that an object will be as obj is, because a decision to write it has been made. obj keeps the
// known resourceVersion; it has none if it is yet to be created and no object has its name.
func (t *Trial) AssumeObject(obj Object) {
	t.mustBeOpen()
	k, key := KindOf(obj), KeyOf(obj)
	was := t.s.table(k).slots[key]
	known := ""
	if was.api != nil {
		known = was.api.GetResourceVersion()
	}
	if known != obj.GetResourceVersion() {
		panic(Broken(fmt.Sprintf("assuming %s %v at resourceVersion %q, known is %q", k, key,
			obj.GetResourceVersion(), known)))
	}
	t.s.assumeObject(obj)
}

// assumeObject records that an object will be as obj is.
func (s *Store) assumeObject(obj Object) {
	k, key := KindOf(obj), KeyOf(obj)
	s.put(k, key, slot{api: s.table(k).slots[key].api, assumed: obj})
	s.changed(Change{Kind: ObjectAssumed, Object: obj})
}

// RestoreObject ends what is assumed about an object, if anything is.
func (t *Trial) RestoreObject(k Kind, key ObjectKey) {
	t.mustBeOpen()
	if assumed := t.s.restoreObject(k, key); assumed != nil {
		t.restored = append(t.restored, Restored{k, assumed, t.s.table(k).slots[key].api})
	}
}

// restoreObject ends what is assumed about an object and returns it, nil for nothing.
func (s *Store) restoreObject(k Kind, key ObjectKey) (assumed Object) {
	was := s.table(k).slots[key]
	if was.assumed == nil {
		return nil
	}
	s.put(k, key, slot{api: was.api})
	s.changed(Change{Kind: ObjectRestored, Type: k, Key: key})
	return was.assumed
}

// Restored is an object about which nothing is assumed any more.
type Restored struct {
	Kind Kind
	Was  Object // as it was assumed
	Is   Object // as the API server has it, nil if it was to be created
}

// Restored returns what RestoreObject has done in this trial: what was taken by assumption may be free again.
func (t *Trial) Restored() []Restored { return t.restored }

// Snapshot returns a view of the store with the changes of this trial.
func (t *Trial) Snapshot() Snapshot { return t.s.Snapshot() }

// Find returns the current object of type T, a pointer type of KindOf: an assumed version takes precedence.
func Find[T Object](v Snapshot, namespace, name string) (obj T, ok bool) {
	obj, ok = v.s.table(KindOf(obj)).slots[ObjectKey{namespace, name}].now().(T)
	return obj, ok
}

// FindAPI returns the version that the API server has, whatever is assumed.
func FindAPI[T Object](v Snapshot, namespace, name string) (obj T, ok bool) {
	sl := v.s.table(KindOf(obj)).slots[ObjectKey{namespace, name}]
	if sl.api == nil {
		return obj, false
	}
	return sl.api.(T), true
}

// Each calls f for the current objects of type T, sorted by namespace and name, until f returns false. f must not
// change objects of that type.
func Each[T Object](v Snapshot, f func(T) bool) {
	var zero T
	for _, obj := range v.s.table(KindOf(zero)).list() {
		if !f(obj.(T)) {
			return
		}
	}
}

// EachIn calls f for the current objects of one namespace, like Each.
func EachIn[T Object](v Snapshot, namespace string, f func(T) bool) {
	var zero T
	list := v.s.table(KindOf(zero)).list()
	lo, _ := slices.BinarySearchFunc(list, namespace, func(obj Object, ns string) int {
		return cmp.Compare(obj.GetNamespace(), ns)
	})
	for _, obj := range list[lo:] {
		if obj.GetNamespace() != namespace || !f(obj.(T)) {
			return
		}
	}
}

// KindRevision counts the changes of objects of a kind; it never decreases.
func (v Snapshot) KindRevision(k Kind) uint64 { return v.s.table(k).rev }

// KindChanges returns the objects of a kind that changed since sequence number seq, assumptions and their undo
// included, with repetitions, and the number for the next call. ok is false if the journal no longer has all of them.
func (v Snapshot) KindChanges(k Kind, seq uint64) (keys []ObjectKey, next uint64, ok bool) {
	t := v.s.table(k)
	next = t.base + uint64(len(t.journal))
	if seq < t.base {
		return nil, next, false
	}
	return t.journal[seq-t.base:], next, true
}

func (t *table) list() []Object {
	if t.sorted == nil {
		t.sorted = make([]Object, 0, len(t.slots))
		for _, sl := range t.slots { // order: sorted below
			t.sorted = append(t.sorted, sl.now())
		}
		slices.SortFunc(t.sorted, func(a, b Object) int { return compareObjectKeys(KeyOf(a), KeyOf(b)) })
	}
	return t.sorted
}
