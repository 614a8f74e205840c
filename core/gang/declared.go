// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Bad returns why pods that wait together cannot be scheduled as they say; empty if they can. obj declares their gang;
// nil for none. binder returns the foreign code that binds a pod, empty for none.
func Bad(members []*cluster.Pod, obj *cluster.Gang, binder func(*cluster.Pod) string) string {
	m := members[0].Gang
	if m.Bad != "" {
		return m.Bad
	}
	if m.Key.Source.HasObject() {
		switch {
		case obj == nil:
			return fmt.Sprintf("waiting for pod group %s to appear in the scheduling queue", m.Key)
		case obj.Bad != "":
			return fmt.Sprintf("pod group %s: %s", m.Key, obj.Bad)
		case obj.DeletionTimestamp != nil:
			return fmt.Sprintf("pod group %s is being deleted", m.Key)
		}
	}
	var profiles []string
	size := 0
	for _, p := range members {
		if !slices.Contains(profiles, p.Spec.SchedulerName) {
			profiles = append(profiles, p.Spec.SchedulerName)
		}
		if p.Gang.Size > 0 && size > 0 && p.Gang.Size != size {
			return fmt.Sprintf("the pods of gang %s disagree on its size: %d and %d",
				m.Key, min(size, p.Gang.Size), max(size, p.Gang.Size))
		}
		size = max(size, p.Gang.Size)
	}
	if len(profiles) > 1 {
		slices.Sort(profiles)
		return fmt.Sprintf("the pods of gang %s ask for different schedulers: %s", m.Key, strings.Join(profiles, ", "))
	}
	if size > 0 || m.Key.Source.HasObject() {
		return ""
	}
	// Nothing that foreign code binds tells how many pods there were, so after a restart in the middle that number
	// would be unknown.
	for _, p := range members {
		if by := binder(p); by != "" {
			return fmt.Sprintf("gang %s does not say how many pods it needs, and %s is bound by the extender %s, "+
				"which leaves no note of it: state the size", m.Key, p.Key(), by)
		}
	}
	return ""
}

// WasWhole reports whether a gang has had its quorum, as far as its pods and its object say: by the object's condition,
// or, when a process before this one bound its pods, by how long they have run. One that is new enough to have been
// bound just before the restart counts as being bound. decidedHere is set if this process has decided the gang. obj is
// nil for none.
func WasWhole(members []cluster.GangMember, obj *cluster.Gang, decidedHere bool, now record.Time) bool {
	bound, decided := 0, 0
	for _, m := range members {
		if m.Pod.Bound != nil {
			decided = max(decided, m.Pod.Bound.Quorum)
		}
		if !m.Assumed && !m.Pod.Terminating {
			bound++
		}
	}
	if decided > 0 && bound >= decided {
		return true // more may be asked of it now than when it got its places
	}
	if obj != nil && obj.Condition.Scheduled {
		return true
	}
	if decidedHere {
		return false
	}
	return !slices.ContainsFunc(members, func(m cluster.GangMember) bool {
		age := now - m.Pod.Start // below 0 if the kubelet's clock is ahead; by far, it says nothing
		return m.Pod.Start == 0 || -freshlyBound < age && age < freshlyBound
	})
}

// freshlyBound is how long after the start of its pods a gang in part may have been left so by a restart.
const freshlyBound = 300 * record.Second
