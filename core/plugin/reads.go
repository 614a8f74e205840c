// SPDX-License-Identifier: Apache-2.0

package plugin

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// Reads is what decides a filter's verdict or a score on a row, apart from the plugin's own configuration: a set of the
// values below. What a plugin reads of a pod besides is what PodSpec.Alike keeps of its spec, without requests.
//
// A search caches verdicts and scores only as far as they are declared. The zero value declares nothing: the plugin is
// prepared for each decision with the whole pod, and nothing that it says is cached. That is correct for any plugin,
// and slower. To declare too much is correct too; to declare too little is a fault.
type Reads uint16

// The values of Reads.
const (
	// ReadsNode is the node object of the row, without its allocatable amounts.
	ReadsNode Reads = 1 << iota
	// ReadsAmounts are the amounts of the row (Snapshot.Allocatable, Requested, NonZero), and the pod's requests.
	ReadsAmounts
	// ReadsPods are the pods of the row, apart from what they request.
	ReadsPods
	// ReadsRows is anything of other rows: their nodes, their pods, how many there are.
	ReadsRows
	// ReadsObjects are objects besides pods and nodes: claims, volumes, device classes.
	ReadsObjects
	// ReadsWholePod is anything of the pod that PodSpec.Alike leaves out, such as labels, volumes, priority and name.
	ReadsWholePod
	// ReadsOutside is anything outside of the snapshot, such as the time.
	ReadsOutside
	// ReadsVersioned says that the prepared forms which read other rows or objects are Versioned: their version covers
	// these, also as far as the preparation has read them.
	ReadsVersioned
)

// Reader declares what a plugin reads. On a plugin, Reads covers all pods. On a prepared filter or score, it is what
// Plain and Column read for its pod, if that is less. It is constant.
type Reader interface{ Reads() Reads }

// Versioned is a PodFilter or PodScore that depends on more than the row and the pod. Its version changes whenever a
// verdict or score may have changed on a row that has not changed: then it is prepared anew and judges all rows again.
type Versioned interface {
	Version(s cluster.Snapshot) uint64
}

// ReadsOf returns what a plugin declares; 0 if it declares nothing.
func ReadsOf(pl Plugin) Reads {
	if r, declares := pl.(Reader); declares {
		return r.Reads()
	}
	return 0
}

// PreparedReads returns what a prepared filter or score reads: what it declares, or else what its plugin declares.
func PreparedReads(prepared any, of Reads) Reads {
	if r, declares := prepared.(Reader); declares {
		return r.Reads()
	}
	return of
}

// Cached reports whether verdicts and scores can be kept while the row and the version stay the same, and shared by
// all pods whose specs have the same PodSpec.Alike.
func (r Reads) Cached() bool {
	beyond := r&(ReadsRows|ReadsObjects) != 0
	return r != 0 && r&(ReadsWholePod|ReadsOutside) == 0 && (!beyond || r&ReadsVersioned != 0)
}

// ByNode reports whether verdicts and scores stay the same while the node object and the version do, and are shared by
// all pods whose specs differ in requests alone.
func (r Reads) ByNode() bool { return r.Cached() && r&(ReadsAmounts|ReadsPods) == 0 }

// IgnoresPods reports whether it makes no difference to a verdict which pods are on the row.
func (r Reads) IgnoresPods() bool {
	return r != 0 && r&(ReadsAmounts|ReadsPods|ReadsRows|ReadsOutside) == 0
}

// VersionOf returns the version of a prepared filter or score; 0 if it has none.
func VersionOf(prepared any, s cluster.Snapshot) uint64 {
	if v, is := prepared.(Versioned); is {
		return v.Version(s)
	}
	return 0
}
