// SPDX-License-Identifier: Apache-2.0

package plugin

// Resumer is a Reserver whose reservations have a form as data, so that a scheduler can be resumed with them.
type Resumer interface {
	Reserver
	// NoFacts returns a pointer to the facts of no reservation, to read facts into. The type is that of Facts.
	NoFacts() any
	// Resume makes a reservation from the facts of another one. The cluster holds already what that assumed in it; the
	// facts share these objects with it. A snapshot is good for the call only.
	Resume(facts any) (Reservation, error)
}

// Factual is a Reservation of a Resumer.
type Factual interface {
	Reservation
	// Facts returns what the reservation knows and the cluster does not: a pointer to a struct with exported fields.
	// Pods and objects in it are immutable and keep their identity; everything else is a copy.
	Facts() any
}
