// SPDX-License-Identifier: Apache-2.0

// Package kube owns the scheduling loop, which is the one goroutine that drives the engine, and the lease, which says
// whether this process may act. Its packages own the edge between the engine and the API server:
//
//	intake   API objects to engine events
//	effects  engine effects to API calls
//	gangapi  the APIs that declare gangs, for both
//	metrics  what is counted
//	serve    the https endpoints
//	call     limits and waits of API calls
//
// Together they hold all of client-go and nearly all goroutines.
//
//   - Loop: batches of events alternate with cycles, by count.
//   - Election: the lease, whether another process can lead at this moment, and the pause that operators keep on the
//     lease.
//   - Scheduler: joins all parts, and hands over to the next leader.
package kube
