// SPDX-License-Identifier: Apache-2.0

package cluster

import "fmt"

// Trial tries placements on the store. The store's Snapshots show its changes at once; Rollback or Discard undoes
// them; Commit leaves them to the enclosing transaction. Invariant: at most one trial is open.
type Trial struct {
	s    *Store
	base int
	// restored lists the objects whose assumption the trial has ended, oldest first.
	restored []Restored
}

// Mark is a checkpoint of a trial.
type Mark int

// Trial opens a trial inside the current transaction. Must be called after Begin.
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

// Assume places a pod on a node as decided.
func (t *Trial) Assume(p *Pod, n NodeIdx) {
	t.mustBeOpen()
	t.s.assume(p, n)
}

// Evict removes a pod from its node, as if it were gone.
func (t *Trial) Evict(uid UID) {
	t.mustBeOpen()
	if _, ok := t.s.DeletePod(uid); !ok {
		panic(Broken(fmt.Sprintf("trial evicts pod %s, which the ledger does not hold", uid)))
	}
}

// Checkpoint returns a mark of the present state.
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

// Discard closes the trial and undoes its changes.
func (t *Trial) Discard() {
	t.Rollback(Mark(t.base))
	t.s.trial = nil
}

// Commit closes the trial and keeps its changes.
func (t *Trial) Commit() {
	t.mustBeOpen()
	t.s.trial = nil
}
