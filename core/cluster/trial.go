// SPDX-License-Identifier: Apache-2.0

package cluster

import "fmt"

// Trial tries placements on the store. What it does shows in the store's Snapshots at once and goes again with
// Rollback or Discard; Commit leaves it to the enclosing transaction. One trial is open at a time.
type Trial struct {
	s    *Store
	base int
	// restored lists the objects about which the trial has ended an assumption, oldest first.
	restored []Restored
}

// Mark is a point of a trial to come back to.
type Mark int

// Trial opens a trial inside the current transaction.
func (s *Store) Trial() *Trial {
	s.mustBeInTxn("Trial")
	if s.trial != nil {
		panic(Broken("a trial is open"))
	}
	s.trial = &Trial{s: s, base: len(s.undo)}
	return s.trial
}

func (t *Trial) mustBeOpen() {
	if t.s.trial != t {
		panic(Broken("use of a closed trial"))
	}
}

// Assume puts a pod on a node as decided.
func (t *Trial) Assume(p *Pod, n NodeIdx) {
	t.mustBeOpen()
	t.s.assume(p, n)
}

// Evict takes a pod off its node, as if it were gone.
func (t *Trial) Evict(uid UID) {
	t.mustBeOpen()
	if _, ok := t.s.DeletePod(uid); !ok {
		panic(Broken(fmt.Sprintf("trial evicts pod %s, which the ledger does not hold", uid)))
	}
}

// Checkpoint marks the present state.
func (t *Trial) Checkpoint() Mark {
	t.mustBeOpen()
	return Mark(len(t.s.undo))
}

// Rollback returns to a checkpoint of this trial.
func (t *Trial) Rollback(m Mark) {
	t.mustBeOpen()
	if int(m) < t.base || int(m) > len(t.s.undo) {
		panic(Broken(fmt.Sprintf("rollback to %d in a trial that spans %d to %d", m, t.base, len(t.s.undo))))
	}
	t.s.rollback(int(m))
}

// Discard closes the trial and takes back all it did.
func (t *Trial) Discard() {
	t.Rollback(Mark(t.base))
	t.s.trial = nil
}

// Commit closes the trial and keeps what it did.
func (t *Trial) Commit() {
	t.mustBeOpen()
	t.s.trial = nil
}
