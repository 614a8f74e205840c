// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"maps"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// groupAccess is whether native pod groups can be read.
type groupAccess int8

const (
	// groupsAbsent: the API server does not serve them, or forbids them. Pods are scheduled without their group.
	groupsAbsent groupAccess = iota
	// groupsFailing: they count, and cannot be read now: their list fails, or they are no longer served. Pods of groups
	// that are not known wait.
	groupsFailing
	// groupsReadable: pod groups count.
	groupsReadable
)

// withoutGroup is a pod as it counts while its native pod group cannot be read: a member of the gang that it declares
// in another way, or of none.
func withoutGroup(p *cluster.Pod) *cluster.Pod {
	if !inGroup(p) {
		return p
	}
	other := *p
	if other.Gang = p.Gang.Unread; other.Gang == nil {
		other.Bound = nil
	}
	return &other
}

// inGroup reports whether a pod names a native pod group. p may be nil.
func inGroup(p *cluster.Pod) bool {
	return p != nil && p.Gang != nil && p.Gang.Key.Source == cluster.GangOfGroup
}

// noteUngroupedLocked notes a pod that is about to become an event while its pod group cannot be read. An update of a
// pod that was noted before adds nothing, nor does a pod that has a node or declares its gang in another way, too.
func (in *Inbox) noteUngroupedLocked(key objectKey, was, is *cluster.Pod) {
	switch {
	case !inGroup(is) || is.Gang.Unread != nil || bound(is) > 0:
		delete(in.ungrouped, key)
	case inGroup(was) && was.UID == is.UID && was.Gang.Key == is.Gang.Key && in.ungrouped[key] == nil:
	default:
		in.ungrouped[key] = is
	}
}

// TakeUngrouped returns the pods without a node whose pod group cannot be read, in the order of their names. Each pod
// is returned once for each group that it names, and again if the list of groups fails later. The caller reports
// them: such a pod is scheduled alone, which its owner did not ask for, or, if waits is set, waits until groups can be
// listed.
func (in *Inbox) TakeUngrouped() (pods []*cluster.Pod, waits bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.ungrouped) == 0 {
		return nil, false
	}
	pods = make([]*cluster.Pod, 0, len(in.ungrouped))
	for _, key := range slices.SortedFunc(maps.Keys(in.ungrouped), compareKeys) {
		pods = append(pods, in.ungrouped[key])
	}
	clear(in.ungrouped)
	return pods, in.groups == groupsFailing
}
