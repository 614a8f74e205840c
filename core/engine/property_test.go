// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"

	"pgregory.net/rapid"
)

// TestNoHistoryBreaksTheEngine runs random histories: pods and nodes come and go, the watch lags, binds fail,
// answers come late and in any order, someone else binds too, the scheduler is killed and started again. Then
// faults stop and time runs.
//
// Held at every bind: no node oversold, no pod bound twice (I1, I2, I3, I4 of the reliability page, where we are
// alone). Held at rest: the ledger is the truth and nothing is assumed (I10), each pending pod waits in one place
// (I9) and none that fits (I7), no event is kept in flight (H2), and the tape plays to the same effects byte for
// byte. Held at both times: what Judge says of any pod holds together and is what the filters and scores say. It
// detects most faults of testdata/faults that are not about gangs or preemption.
func TestNoHistoryBreaksTheEngine(t *testing.T) { rapid.Check(t, history) }

func history(t *rapid.T) {
	w := newWorld(t)
	w.oursOnly = rapid.Bool().Draw(t, "alone")
	w.setNode("n0")
	w.setNode("n1")
	for range rapid.IntRange(1, 60).Draw(t, "moves") {
		w.happen()
	}
	w.checkJudge(false)
	w.settle()
	w.checkRest()
	w.checkReplay()
	w.checkJudge(true)
}

// TestStrangersAreMadeRoomFor runs histories in which another scheduler binds to the nodes on which we decide, all
// the time and without a look. After each of its binds none of our pods goes on to the node that does not fit there
// any more, but for those whose bind is on its way, and none is recalled that does; see checkRechecked, which
// counts for itself. It catches the mutants from foreignTrusted on.
func TestStrangersAreMadeRoomFor(t *testing.T) { rapid.Check(t, besideStrangers) }

func besideStrangers(t *rapid.T) {
	w := newWorld(t)
	w.setNode("n0")
	w.setNode("n1")
	for range 4 { // so that most histories begin with several pods on their way
		w.do("pod")
		for len(w.watch) > 0 {
			w.do("watch")
		}
		w.do("cycle")
	}
	for range rapid.IntRange(1, 20).Draw(t, "moves") {
		w.do(rapid.SampledFrom([]string{"stranger", "stranger", "foreign bind", "watch", "watch", "watch", "watch", "answer", "answer", "bind",
			"pod", "cycle", "cycle", "write", "turn", "lock", "delete", "tick"}).Draw(t, "move"))
	}
	w.settle()
	w.checkRest()
	w.checkReplay()
}
