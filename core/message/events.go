// SPDX-License-Identifier: Apache-2.0

package message

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Event is an input of the engine.
type Event interface{ event() }

// The events.
type (
	// NodeSet says that a node exists in this version.
	NodeSet struct{ Node *cluster.Node }

	// NodeGone says that a node object was deleted.
	NodeGone struct{ Name string }

	// PodSet says that a pod exists in this version: pending or bound, of this scheduler or another. Pods that
	// have ended (Succeeded, Failed) are PodGone.
	PodSet struct{ Pod *cluster.Pod }

	// PodGone says that a pod was deleted or has ended.
	PodGone struct{ Pod record.PodRef }

	// ObjectSet says that an object other than a pod or node exists in this version.
	ObjectSet struct{ Object cluster.Object }

	// ObjectGone says that such an object was deleted.
	ObjectGone struct {
		Kind cluster.Kind
		Key  cluster.ObjectKey
	}

	// WritesDone answers a Prepare effect.
	WritesDone struct {
		Pod      record.PodRef
		Decision uint64
		Message  string // of the error, empty when all writes were carried out
	}

	// BindDone answers a Bind effect.
	BindDone struct {
		Pod     record.PodRef
		Node    string
		Outcome BindOutcome
		Message string // of the error, empty when bound
	}

	// EvictDone answers an Evict effect.
	EvictDone struct {
		For      record.PodRef
		Decision uint64
		Message  string // of the first error, empty when all victims were deleted
	}

	// Activate asks that pods be tried at once, whatever they wait for, and that reservations which are not ready be
	// asked again, of all pods.
	Activate struct{ Pods []record.PodRef }

	// Tick says what time it is.
	Tick struct{ Now record.Time }

	// Synced says that the initial lists are complete.
	Synced struct{}

	// Cycle runs one scheduling cycle if a unit is ready.
	Cycle struct{}
)

// BindOutcome is what became of a bind.
type BindOutcome uint8

// The outcomes. An unknown outcome is not among them: kube re-reads the pod first.
const (
	// Bound: the API server has the pod on the node.
	Bound BindOutcome = iota
	// BindFailed: the API server does not have it on a node; the pod is tried again after an error backoff.
	BindFailed
	// BoundElsewhere: the pod is bound, to another node than asked.
	BoundElsewhere
	// PodVanished: the pod is gone, or another pod of the same name is in its place.
	PodVanished
	// BindRecalled: the bind was withdrawn before it was sent, as a Recall asked or because binds are held for a while.
	BindRecalled
)

func (NodeSet) event()    {}
func (NodeGone) event()   {}
func (PodSet) event()     {}
func (PodGone) event()    {}
func (BindDone) event()   {}
func (ObjectSet) event()  {}
func (ObjectGone) event() {}
func (WritesDone) event() {}
func (EvictDone) event()  {}
func (Activate) event()   {}
func (Tick) event()       {}
func (Synced) event()     {}
func (Cycle) event()      {}
