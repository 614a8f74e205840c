// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/record"
)

// GangSource is the API or annotation that declares a gang.
type GangSource string

// The sources. Each can be disabled on its own.
const (
	// GangOfGroup is the PodGroup of scheduling.k8s.io, named by spec.schedulingGroup (KEP-4671).
	GangOfGroup GangSource = "podgroup"
	// GangOfAnnotation is the annotation pod_group with its optional pod_group_size.
	GangOfAnnotation GangSource = "annotation"
	// GangOfSigs is the PodGroup of scheduling.x-k8s.io, named by a label of the pod (sigs scheduler-plugins).
	GangOfSigs GangSource = "sigs"
	// GangOfVolcano is the PodGroup of scheduling.volcano.sh, named by an annotation of the pod.
	GangOfVolcano GangSource = "volcano"
	// GangOfPfnet is a pair of annotations that give name and size.
	GangOfPfnet GangSource = "pfnet"
)

// HasObject reports whether an API object declares a gang of this source: its members wait until the object exists.
func (s GangSource) HasObject() bool {
	return s == GangOfGroup || s == GangOfSigs || s == GangOfVolcano
}

// GangKey identifies a gang. The same name from two sources, or in two namespaces, is two gangs. The zero key is that
// of a pod in no gang, which is a gang of one.
type GangKey struct {
	Source          GangSource
	Namespace, Name string
}

// Object returns the key of the gang's object among the objects of KindGang.
func (k GangKey) Object() ObjectKey { return ObjectKey{k.Namespace, string(k.Source) + "/" + k.Name} }

// String returns namespace/name, for display.
func (k GangKey) String() string { return k.Namespace + "/" + k.Name }

// GangMark is a pod's own declaration of its gang. It is immutable; pods with the same declaration share it.
type GangMark struct {
	Key GangKey
	// Size is the minimum number of members as the pod declares it, 0 if it does not.
	Size int
	// Desired is the desired number of members if it is declared besides Size, 0 otherwise. Members beyond Size are
	// placed as capacity allows.
	Desired int `json:",omitempty"`
	// Timeout is how long members may wait for each other as the pod declares it, 0 if it does not.
	Timeout record.Time `json:",omitempty"`
	// Bad is why the declaration is invalid: two declarations that disagree, or a size that is not a number. Such a
	// pod waits, and its condition carries this text.
	Bad string
	// Unread is what the pod declares apart from its pod group, for clusters where the scheduler may not read pod
	// groups; nil for nothing. Only kube reads it.
	Unread *GangMark `json:"-"`
}

// Same reports whether two pods declare the same gang, apart from Unread; nil is a pod in no gang.
func (m *GangMark) Same(other *GangMark) bool {
	if m == nil || other == nil {
		return m == other
	}
	a, b := *m, *other
	a.Unread, b.Unread = nil, nil
	return a == b
}

// BoundMark is the annotation that the binding of a gang's member left on the pod. After a restart it distinguishes a
// gang that was being bound from one that has lost members.
type BoundMark struct {
	Decision uint64
	// Quorum is the number of members that had to be bound by that decision and those before it.
	Quorum int
}

// Gang is an object of any API that declares a gang, reduced to what the scheduler reads. Its name is that of
// GangKey.Object.
type Gang struct {
	metav1.ObjectMeta
	Key GangKey
	// Basic: members are scheduled one by one and do not wait for each other.
	Basic bool
	// MinCount is the number of pods that must have a node before any is bound. Values that the API rejects, but that
	// an older version of it or another writer may have stored, are in Bad.
	MinCount int
	// Priority is the gang's own priority, nil if the priority of its members counts.
	Priority *int32
	// NeverPreempts is preemptionPolicy Never.
	NeverPreempts bool
	// EvictWhole: a member is only evicted together with all others (disruptionMode PodGroup).
	EvictWhole bool
	// Topology lists the domains in which the members must, or should, be together, the widest first.
	Topology []GangTopology
	// Timeout is how long members may wait for each other, 0 if that is not declared. A waiting gang holds no
	// capacity here; Timeout bounds how long capacity is reserved for a blocked gang.
	Timeout record.Time
	// Bad is why the declaration is invalid.
	Bad string
	// Phase and Condition are the status as last observed, so that an unchanged status is not written again.
	Phase     string
	Condition GangCondition
}

// GangTopology is one level of a topology constraint.
type GangTopology struct {
	// Key is the node label whose value names the domain.
	Key string
	// Required: the members must be in one domain. Otherwise they should be in as few domains as possible.
	Required bool
}

// GangCondition is a gang's condition in the API server; empty if there is none.
type GangCondition struct {
	Scheduled       bool
	Reason, Message string
	Generation      int64
}

// Compare orders keys.
func (k GangKey) Compare(other GangKey) int {
	return cmp.Or(strings.Compare(k.Namespace, other.Namespace), strings.Compare(k.Name, other.Name),
		cmp.Compare(k.Source, other.Source))
}
