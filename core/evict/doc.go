// SPDX-License-Identifier: Apache-2.0

// Package evict owns the life cycle of evictions: which pods a unit has evicted so that it gets its placement, from
// the plan to the placement or the waste. A pod by itself is a gang of one.
//
// For a unit that fits nowhere the engine calls, in this order:
//
// 1. ForPod or ForGang: accounts for what was lost before, and plans. The plan itself has no side effects. 2. Act,
// once the unit is back in the queue: nominates, withdraws decided pods, requests evictions. 3. Done, with the answer
// to a request. 4. Terminates, Gone, Bound, and the other methods that observe what happens to victims and preemptors.
// 5. Tick, when a deadline has come (Next). 6. Placed, when the unit has its placement.
//
// The package sits above core/preempt, which chooses the victims, and below core/engine, which owns the loop. It does
// not import the engine: what it needs of it is Host. Every effect goes through Host.Emit, in order.
//
// Design and what was rejected: docs/design/0009-engine-structure.md, docs/design/0006-preemption-in-units.md.
package evict
