// SPDX-License-Identifier: Apache-2.0

package shard

// What a planner that wins the lease does: it gathers the claims of the members that it reaches, goes on from the
// longest log among them, and keeps the capacity of its predecessor's binds, of which it sends those again that were
// not observed. This makes half-bound gangs whole, and no decision of the new epoch sees capacity that an old one has
// taken.

// Claim is how far a member followed the log.
type Claim struct {
	Member string
	Last   Position // its newest entry
	Epoch  Epoch    // of that entry, which may be older than the arbiter that it follows
}

// Longest returns the claim to go on from: the newest epoch of a last entry, in it the newest position (Raft, section
// 5.4.1). The epoch that a member follows would be wrong here: one that has just joined a new arbiter has fewer entries
// than that arbiter adopted. Between equal claims, which
// are of equal logs, self wins, since it need not be asked for entries; else the first name.
func Longest(claims []Claim, self string) (longest Claim, ok bool) {
	for _, c := range claims {
		if !ok || c.after(longest, self) {
			longest, ok = c, true
		}
	}
	return longest, ok
}

func (c Claim) after(d Claim, self string) bool {
	switch {
	case c.Epoch != d.Epoch:
		return c.Epoch > d.Epoch
	case c.Last != d.Last:
		return c.Last > d.Last
	case c.Member == self || d.Member == self:
		return c.Member == self
	}
	return c.Member < d.Member
}

// EntryKind is what happened to the capacity for a pod.
type EntryKind string

const (
	EntryTaken    EntryKind = "Taken"    // a decision took capacity on a node; the bind is to be sent
	EntryFreed    EntryKind = "Freed"    // the bind failed or was given up; the capacity is free
	EntryObserved EntryKind = "Observed" // the watch showed the pod on a node: the capacity is counted with the pod
	EntryGone     EntryKind = "Gone"     // the pod does not exist any more
)

// Entry is an entry of the log about the capacity for a pod.
type Entry struct {
	At   Position
	Kind EntryKind
	UID  string // of the pod
	Node string // if Kind is EntryTaken or EntryObserved
	Unit string // if Kind is EntryTaken: the unit that was decided as a whole
}

// Inherit returns the decisions whose outcome a log does not show, in the order in which they were made. The
// successor keeps their capacity and sends their binds again. The entries must be in order.
func Inherit(entries []Entry) []Entry {
	open := map[string]int{} // UID -> index in entries of the decision for it
	for i, e := range entries {
		if e.Kind == EntryTaken {
			open[e.UID] = i
		} else {
			delete(open, e.UID)
		}
	}
	var inherited []Entry
	for i, e := range entries {
		if at, is := open[e.UID]; is && at == i {
			inherited = append(inherited, e)
		}
	}
	return inherited
}
