// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/shard"
)

// Facts are what a log says besides the changes of the store. Arbiter and followers have the same at a position.
type Facts struct {
	Last    shard.Position
	Origins []shard.Origin // where the epochs begin, the oldest first; the newest keepOrigins
	// Taken are the decisions without an outcome. Invariant: its keys are the pods that the store assumes.
	Taken    map[cluster.UID]Taken // pod -> the decision for it
	Promises map[string]Promise    // unit -> what it is promised
}

// keepOrigins bounds Facts.Origins. A follower whose last entry is older than these epochs loads a snapshot.
const keepOrigins = 64

// Taken is a decision whose bind has no outcome.
type Taken struct {
	At   shard.Position
	Unit string // that was decided as a whole; empty for a pod by itself
}

// Epoch returns the epoch of the newest entry; 0 before the first.
func (f *Facts) Epoch() shard.Epoch {
	if len(f.Origins) == 0 {
		return 0
	}
	return f.Origins[len(f.Origins)-1].Epoch
}

// note follows an entry, which is at the next position.
func (f *Facts) note(e Entry) error {
	if f.Taken == nil {
		f.Taken, f.Promises = map[cluster.UID]Taken{}, map[string]Promise{}
	}
	switch e.Kind {
	case Promoted:
		f.Origins = f.Origins[max(0, len(f.Origins)-keepOrigins):]
	case Promised:
		if e.Unit == "" || len(f.Promises) >= maxPromises {
			return fmt.Errorf("promise for unit %q, there are %d", e.Unit, len(f.Promises))
		}
		f.Promises[e.Unit] = e.Promise
	case PromiseEnded:
		delete(f.Promises, e.Unit)
	case Kind(cluster.PodTaken):
		f.Taken[e.Change.Pod.UID] = Taken{f.Last + 1, e.Unit}
	case Kind(cluster.PodBound):
		delete(f.Taken, e.Change.Pod.UID)
	case Kind(cluster.PodFreed), Kind(cluster.PodRemoved):
		delete(f.Taken, e.Change.UID)
	}
	f.Last++
	return nil
}

// maxPromises bounds Facts.Promises.
const maxPromises = 1 << 16

// Inherited is a decision of a predecessor whose bind has no outcome in the log.
type Inherited struct {
	Pod  *cluster.Pod
	Node string
	Taken
}

// Inherited returns the decisions without an outcome, oldest first: the next arbiter keeps their capacity, which its
// store has, and sends their binds again (shard.Inherit says the same of a list of entries).
func (f *Facts) Inherited(s cluster.Snapshot) []Inherited {
	var list []Inherited
	for uid, taken := range f.Taken { // order: sorted below
		if p, n, assumed, held := s.PodOn(uid); held && assumed {
			list = append(list, Inherited{p, s.NodeName(n), taken})
		}
	}
	slices.SortFunc(list, func(a, b Inherited) int { return cmp.Compare(a.At, b.At) })
	return list
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m { // order: sorted below
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
