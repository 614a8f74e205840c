// SPDX-License-Identifier: Apache-2.0

package cluster

import "fmt"

// CheckInvariants returns the first invariant of the ledger's fields that does not hold, nil if all hold. Sums are
// compared with a recount elsewhere.
func (s *Store) CheckInvariants() error {
	entries, live := 0, 0
	for n, r := range s.rows {
		for pos, e := range r.pods {
			if e.row != NodeIdx(n) || e.pos != pos || s.pods[e.pod.UID] != e {
				return fmt.Errorf("pod %s at %d of row %d has row %d and position %d", e.pod.Key(), pos, n, e.row, e.pos)
			}
		}
		entries += len(r.pods)
		if r.node != nil {
			live++
		}
		if (r.node != nil || len(r.pods) > 0) && s.index[r.name] != NodeIdx(n) {
			return fmt.Errorf("row %d of node %q is indexed as %d", n, r.name, s.index[r.name])
		}
	}
	if entries != len(s.pods) || live != s.live {
		return fmt.Errorf("%d pods on rows, %d known; %d nodes on rows, %d counted", entries, len(s.pods), live, s.live)
	}
	for _, n := range s.free {
		if r := &s.rows[n]; r.node != nil || len(r.pods) > 0 {
			return fmt.Errorf("free row %d has node %q or pods", n, r.name)
		}
	}
	for key, members := range s.gangs { // order: any violation suffices
		if len(members) == 0 {
			return fmt.Errorf("gang %v has an empty list of members", key)
		}
		for _, e := range members {
			if e.gang == nil || e.gang.Key != key || s.pods[e.pod.UID] != e {
				return fmt.Errorf("pod %s is listed in gang %v", e.pod.Key(), key)
			}
		}
	}
	if s.trial != nil && !s.inTxn {
		return fmt.Errorf("a trial is open outside of a transaction")
	}
	return nil
}
