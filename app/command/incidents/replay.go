// SPDX-License-Identifier: Apache-2.0

package incidents

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/tape"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Replay replays the bundle of an incident and compares the digests of effects.
func Replay(name string, plugins app.Plugins, in record.Incident) (record.IncidentReplay, error) {
	out := record.IncidentReplay{Incident: in}
	var now record.Time
	err := tape.PlayFiles([]string{name}, plugins, func(string) {}, func(_ *engine.Engine, s tape.Step) error {
		out.Events++
		if tick, is := s.Event.(engine.Tick); is {
			now = tick.Now
		}
		for _, f := range s.Effects {
			if _, is := f.(engine.Decided); is {
				out.Decisions++
			}
		}
		if !s.Differs() {
			return nil
		}
		if out.Different++; out.First == nil {
			out.First = &record.IncidentDifference{Event: s.Number, At: now, Line: string(s.EventLine)}
			for _, line := range s.Now {
				out.First.Now = append(out.First.Now, string(line))
			}
		}
		return nil
	})
	if err == nil && out.Events != in.Events {
		err = fmt.Errorf("%s: the recording has %d events, and the report counts %d", name, out.Events, in.Events)
	}
	return out, err
}
