// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/record"
)

// GangSource is a way to declare a gang.
type GangSource string

// The ways. Each can be switched off by itself.
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

// HasObject reports whether an object of the API declares a gang of this source: its members wait until it exists.
func (s GangSource) HasObject() bool {
	return s == GangOfGroup || s == GangOfSigs || s == GangOfVolcano
}

// GangKey names a gang. The same name from two sources, or in two namespaces, is two gangs. The zero key is that of a
// pod in no gang, which is a gang of one.
type GangKey struct {
	Source          GangSource
	Namespace, Name string
}

// Object is the key of the gang's object among those of KindGang.
func (k GangKey) Object() ObjectKey { return ObjectKey{k.Namespace, string(k.Source) + "/" + k.Name} }

// String is namespace/name, for people.
func (k GangKey) String() string { return k.Namespace + "/" + k.Name }

// GangMark is what a pod itself says of the gang that it is in. Immutable; shared by pods that say the same.
type GangMark struct {
	Key GangKey
	// Size is how many pods the gang needs as the pod states it, 0 when it does not: the least with which it starts.
	Size int
	// Desired is how many pods there shall be when that is stated besides Size, 0 otherwise. Those beyond Size get
	// places as there is room.
	Desired int `json:",omitempty"`
	// Timeout is how long members may wait for each other as the pod states it, 0 when it does not.
	Timeout record.Time `json:",omitempty"`
	// Bad is why the pod cannot be in a gang as it says: two declarations that disagree, a size that is no number. Such
	// a pod waits, and is told this.
	Bad string
	// Unread is what the pod says of a gang apart from its pod group, for whoever cannot read pod groups; nil for
	// nothing. Only kube reads it.
	Unread *GangMark `json:"-"`
}

// Same reports whether two pods say the same of their gang, apart from Unread; nil is that they are in none.
func (m *GangMark) Same(other *GangMark) bool {
	if m == nil || other == nil {
		return m == other
	}
	a, b := *m, *other
	a.Unread, b.Unread = nil, nil
	return a == b
}

// BoundMark is what the binding of a gang's member left on the pod, so that whoever starts next can tell a gang that
// was being bound from one that has lost members.
type BoundMark struct {
	Decision uint64
	// Quorum is how many members had to be bound by that decision and those before it.
	Quorum int
}

// Gang is an object that declares a gang, of whichever API, reduced to what the scheduler reads. Its name is that of
// GangKey.Object.
type Gang struct {
	metav1.ObjectMeta
	Key GangKey
	// Basic members are scheduled one by one; nothing waits for the others.
	Basic bool
	// MinCount is how many pods must have a place for any to get one. What the API would not take, but an older
	// version of it or another writer may have stored, is in Bad.
	MinCount int
	// Priority is the gang's own, nil where its members' counts.
	Priority *int32
	// NeverPreempts is preemptionPolicy Never.
	NeverPreempts bool
	// EvictWhole tells that a member is only evicted with all others (disruptionMode PodGroup).
	EvictWhole bool
	// Topology are the domains in which the members must, or should, be together, the widest first.
	Topology []GangTopology
	// Timeout is how long members may wait for each other, 0 when that is not stated. Nobody holds room while it
	// waits here; it bounds for how long room is held for a blocked gang.
	Timeout record.Time
	// Bad is why the declaration cannot be used.
	Bad string
	// Phase and Condition are the status as last seen, so that what stands there is not written again.
	Phase     string
	Condition GangCondition
}

// GangTopology is one level of a topology constraint.
type GangTopology struct {
	// Key is the label of nodes whose value names the domain.
	Key string
	// Required tells that the members must be in one domain. Otherwise as few domains as can be are preferred.
	Required bool
}

// GangCondition is what the API server holds of a gang's condition; empty when there is none.
type GangCondition struct {
	Scheduled       bool
	Reason, Message string
	Generation      int64
}

// Compare orders keys for good.
func (k GangKey) Compare(other GangKey) int {
	return cmp.Or(strings.Compare(k.Namespace, other.Namespace), strings.Compare(k.Name, other.Name),
		cmp.Compare(k.Source, other.Source))
}
