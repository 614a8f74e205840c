// SPDX-License-Identifier: Apache-2.0

package evict

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// pending is a pod of a gang whose eviction was requested, and that does not terminate yet.
type pending struct {
	gang     cluster.GangKey // kept
	by       string          // kept; UID of the pod in whose name it is evicted
	decision uint64          // kept
}

// pendingEvictions are those pods. They do not count any more where their gang is asked how many of it have a place:
// otherwise a pod of it that waits would be placed beside them, and stay alone when they have gone (rule R5).
type pendingEvictions struct {
	of map[cluster.UID]pending // kept; pod of a gang -> the eviction that was requested
	// count is how many of them each gang has. Invariant: no entry is 0, and their sum is len(of).
	count map[cluster.GangKey]int // derived: counts of
}

// add notes the victims of a request. It returns their gangs, with repetitions.
func (pe *pendingEvictions) add(s cluster.Snapshot, r Request) (gangs []cluster.GangKey) {
	for _, v := range r.Victims {
		uid := cluster.UID(v.UID)
		key, in := s.HeldGang(uid)
		if !in {
			continue
		}
		if _, already := pe.of[uid]; !already {
			pe.count[key]++
		}
		pe.of[uid] = pending{key, r.For.UID, r.Decision}
		gangs = append(gangs, key)
	}
	return gangs
}

// remove forgets that a pod is to be evicted: it terminates, is gone, or stays.
func (pe *pendingEvictions) remove(uid cluster.UID) {
	p, is := pe.of[uid]
	if !is {
		return
	}
	delete(pe.of, uid)
	if pe.count[p.gang]--; pe.count[p.gang] == 0 {
		delete(pe.count, p.gang)
	}
}

// revoke forgets the pods of a request that failed. Those that were deleted nevertheless are seen to terminate. It
// returns their gangs, in no order and with repetitions.
func (pe *pendingEvictions) revoke(by string, decision uint64) (gangs []cluster.GangKey) {
	for uid, p := range pe.of { // order: each stands apart, and the caller sorts the gangs
		if p.by == by && p.decision == decision {
			pe.remove(uid)
			gangs = append(gangs, p.gang)
		}
	}
	return gangs
}

// staying returns how many pods of a gang have a place, do not terminate, and are not to be evicted.
func (pe *pendingEvictions) staying(s cluster.Snapshot, key cluster.GangKey) int {
	n, _ := s.GangCounts(key)
	if pe.count[key] == 0 {
		return n
	}
	for _, m := range s.GangMembers(key) {
		if _, goes := pe.of[m.Pod.UID]; goes && !m.Pod.Terminating {
			n--
		}
	}
	return n
}
