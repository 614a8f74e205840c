// SPDX-License-Identifier: Apache-2.0

// Package blocked owns what is known of gangs that were rejected for want of capacity: since when each is blocked and
// how its last search ended, the places that its best attempt found, for how long it requests nodes from an
// autoscaler, and the capacity that is held for one of them at a time.
//
// The engine calls, for an attempt that found too few places, either Rejected or, if pods are evicted for the gang,
// Evicting. It calls Placed and EndHold for a gang that has its places, and Changed when a unit may not wait for
// capacity any more. Tick handles the deadlines of this package. Check and TryDue follow each
// event.
//
// The package sits above core/queue, to which it gives nominations, and below core/engine, which owns the loop. It
// does not import the engine: what it needs of it is Host. Every effect goes through Host.Emit, in order.
package blocked
