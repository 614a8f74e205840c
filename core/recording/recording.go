// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/message"
)

// line is one line of a recording.
type line struct {
	Event  string          `json:"event,omitempty"`
	Effect string          `json:"effect,omitempty"`
	Data   json.RawMessage `json:"data"`
}

// eventTypes are the events by name.
var eventTypes = map[string]reflect.Type{} // name -> type of the event struct

func init() {
	for _, ev := range []engine.Event{
		engine.NodeSet{}, engine.NodeGone{}, engine.PodSet{}, engine.PodGone{}, engine.ObjectSet{}, engine.ObjectGone{},
		engine.WritesDone{}, engine.EvictDone{}, engine.BindDone{}, engine.Activate{}, engine.Nominations{},
		engine.ForeignObject{},
		engine.Tick{}, engine.Synced{}, engine.Cycle{},
		message.Joined{}, message.Left{}, message.Busy{}, message.Proposed{}, message.GivenBack{}, message.Welcomed{},
		message.Entries{}, message.Lent{}, message.LoanOver{}, message.Answered{}, message.Promoted{},
	} {
		t := reflect.TypeOf(ev)
		eventTypes[t.Name()] = t
	}
}

// AppendEvent appends an event's line to b.
func AppendEvent(b []byte, ev engine.Event) []byte { return appendLine(b, "event", ev) }

// AppendEffects appends the lines of a Step's effects to b.
func AppendEffects(b []byte, effects []engine.Effect) []byte {
	for _, f := range effects {
		b = appendLine(b, "effect", f)
	}
	return b
}

// appendLine appends the line of an event or effect. Its data is encoded once: encoding it as a part of the line would
// read it twice.
func appendLine(b []byte, what string, data any) []byte {
	b = append(append(append(append(b, `{"`...), what...), `":"`...), reflect.TypeOf(data).Name()...)
	return append(append(append(b, `","data":`...), encode(data)...), "}\n"...)
}

// Reader reads the lines of a recording.
type Reader struct {
	intake *convert.Intake
	state  *stateReader // of the State that is being read; nil for none
}

// NewReader returns a reader whose pods share specs as the recorded ones did.
func NewReader() *Reader { return &Reader{intake: convert.NewIntake()} }

// Event reads a line. ok is false for the line of an effect.
func (r *Reader) Event(raw []byte) (ev engine.Event, ok bool, err error) {
	var l line
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return nil, false, fmt.Errorf("reading a line of a tape: %w", err)
	}
	if l.Event == "" {
		return nil, false, nil
	}
	typ, known := eventTypes[l.Event]
	if !known {
		return nil, false, fmt.Errorf("reading a line of a tape: unknown event %q", l.Event)
	}
	v := reflect.New(typ)
	if err := json.Unmarshal(l.Data, v.Interface()); err != nil {
		return nil, false, fmt.Errorf("reading event %s of a tape: %w", l.Event, err)
	}
	ev = v.Elem().Interface().(engine.Event)
	switch set := ev.(type) {
	case engine.PodSet:
		if set.Pod == nil || set.Pod.Spec == nil {
			return nil, false, fmt.Errorf("reading event %s of a tape: no pod", l.Event)
		}
		r.share(set.Pod)
	case message.Lent:
		for _, p := range set.Pods {
			if p == nil || p.Spec == nil {
				return nil, false, fmt.Errorf("reading event %s of a tape: no pod", l.Event)
			}
			r.share(p)
		}
	case engine.ObjectSet:
		if set.Object == nil {
			return nil, false, fmt.Errorf("reading event %s of a tape: no object", l.Event)
		}
	case engine.NodeSet:
		if set.Node == nil {
			return nil, false, fmt.Errorf("reading event %s of a tape: no node", l.Event)
		}
	}
	return ev, true, nil
}

// share lets a pod share its specs with others, as the recorded one did.
func (r *Reader) share(p *cluster.Pod) {
	p.Spec = r.intake.Share(p.Spec)
	r.intake.ShareMarks(p)
}

// Answers reads what foreign code answered from the lines of one Step's effects.
func Answers(effects [][]byte) (all engine.Heard, err error) {
	name := []byte(`"effect":"Heard"`)
	for _, raw := range effects {
		var l line
		if !bytes.Contains(raw, name) || json.Unmarshal(raw, &l) != nil || l.Effect != heardName {
			continue
		}
		var heard engine.Heard
		if err := json.Unmarshal(l.Data, &heard); err != nil {
			return all, fmt.Errorf("reading the answers of foreign code on a tape: %w", err)
		}
		all.Answers = append(all.Answers, heard.Answers...)
		all.Hosted = append(all.Hosted, heard.Hosted...)
	}
	return all, nil
}

// heardName is the name of the effect Heard.
const heardName = "Heard"
