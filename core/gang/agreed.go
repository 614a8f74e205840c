// SPDX-License-Identifier: Apache-2.0

package gang

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// Priority returns the priority below which a gang may have others evicted: what it declares, or the least of its pods'
// (answer A3). waiting must not be empty.
func Priority(s cluster.Snapshot, key cluster.GangKey, waiting []*cluster.Pod) int32 {
	if obj := s.GangObject(key); obj != nil && obj.Priority != nil {
		return *obj.Priority
	}
	least := waiting[0].Spec.Priority
	for _, p := range waiting {
		least = min(least, p.Spec.Priority)
	}
	for _, member := range s.GangMembers(key) {
		least = min(least, member.Pod.Spec.Priority)
	}
	return least
}

// Agreed returns which of the pods that hold capacity have declared that they may be evicted for a gang: those of its
// priority or less that are in no gang themselves, because two gangs could evict each other in turn (rule R14). It is
// nil if no pod of the cluster has declared that. waiting must not be empty.
func Agreed(s cluster.Snapshot, key cluster.GangKey, waiting []*cluster.Pod) func(*cluster.Pod) bool {
	if !s.AnyEvictableForGangs() {
		return nil
	}
	priority := Priority(s, key, waiting)
	return func(p *cluster.Pod) bool {
		if !p.EvictableForGangs || p.Spec.Priority > priority {
			return false
		}
		_, in := s.HeldGang(p.UID)
		return !in
	}
}
