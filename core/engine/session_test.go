// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/recording"
	"github.com/kumiki-scheduler/kumiki/record"
)

// TestASessionIsOneMoment plays random histories of gangs and pods by themselves in sessions, and then once more
// with each session at a stretch and what came in during it behind it: the same decisions come of it, and all the
// other effects in the same order (rule R10). What holds without sessions holds with them: see
// TestNoHistoryBreaksTheEngine and TestGangsAreBoundWholeOrNotAtAll. The stories of TestSessions catch
// sessionsLeak, sessionsHang, sessionsUnspaced and sessionsRepeat.
func TestASessionIsOneMoment(t *testing.T) { rapid.Check(t, sessionHistory) }

func sessionHistory(t *rapid.T) {
	w := newWorld(t)
	w.begin(rapid.SampledFrom([]record.Time{record.Second, 3 * record.Second, 5 * record.Second}).Draw(t, "period"))
	w.gangs = &gangWorld{sizes: map[string]int{}, whole: map[string]bool{}}
	w.oursOnly = rapid.Bool().Draw(t, "alone")
	w.setNode("n0")
	w.setNode("n1")
	for range rapid.IntRange(1, 50).Draw(t, "moves") {
		switch rapid.IntRange(0, 9).Draw(t, "what") {
		case 0:
			w.createGang()
		case 1, 2, 3:
			w.do("cycle")
		case 4:
			w.do("watch")
		case 5:
			w.do("tick")
		default:
			w.happen()
		}
	}
	w.settle()
	w.checkRest()
	w.checkWhole()
	w.checkReplay()
	w.checkMoments()
}

// checkMoments plays the tape twice side by side: as it came, and with what came in during a session behind it. A
// session ends when it did; only when people are woken may differ.
func (w *world) checkMoments() {
	came, behind, tape := engineOf(w.period), engineOf(w.period), recording.NewReader()
	var one, other []byte
	var during []engine.Event
	for _, raw := range bytes.Split(bytes.TrimSuffix(w.taped, []byte("\n")), []byte("\n")) {
		ev, _, err := tape.Event(raw)
		if err != nil {
			w.t.Fatal(err)
		}
		was := engine.InSession(came)
		one = recording.AppendEffects(one, unwoken(came.Step(ev)))
		if _, cycle := ev.(engine.Cycle); cycle || !was {
			other = recording.AppendEffects(other, unwoken(behind.Step(ev)))
		} else {
			during = append(during, ev)
		}
		if engine.InSession(came) {
			continue
		}
		for _, ev := range during {
			other = recording.AppendEffects(other, unwoken(behind.Step(ev)))
		}
		during = during[:0]
		engine.EndSessionWith(behind, came)
	}
	if !bytes.Equal(one, other) {
		w.t.Fatalf("sessions at a stretch play otherwise:\n%s", diff(string(one), string(other)))
	}
}

func unwoken(effects []engine.Effect) []engine.Effect {
	return slices.DeleteFunc(slices.Clone(effects), func(f engine.Effect) bool { _, wake := f.(engine.Wake); return wake })
}
