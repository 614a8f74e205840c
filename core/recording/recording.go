// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
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
		engine.WritesDone{}, engine.EvictDone{}, engine.BindDone{}, engine.Activate{}, engine.Tick{}, engine.Synced{},
		engine.Cycle{},
	} {
		t := reflect.TypeOf(ev)
		eventTypes[t.Name()] = t
	}
}

// AppendEvent appends an event's line to b.
func AppendEvent(b []byte, ev engine.Event) []byte {
	return appendLine(b, line{Event: reflect.TypeOf(ev).Name()}, ev)
}

// AppendEffects appends the lines of a Step's effects to b.
func AppendEffects(b []byte, effects []engine.Effect) []byte {
	for _, f := range effects {
		b = appendLine(b, line{Effect: reflect.TypeOf(f).Name()}, f)
	}
	return b
}

func appendLine(b []byte, l line, data any) []byte {
	raw, err := json.Marshal(data)
	if err != nil {
		panic(fmt.Sprintf("recording: writing %T: %v", data, err)) // plain data always marshals
	}
	l.Data = raw
	whole, err := json.Marshal(l)
	if err != nil {
		panic(fmt.Sprintf("recording: writing a line for %T: %v", data, err))
	}
	return append(append(b, whole...), '\n')
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
		set.Pod.Spec = r.intake.Share(set.Pod.Spec)
		r.intake.ShareMarks(set.Pod)
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

// Answers reads what foreign code answered from the lines of one Step's effects.
func Answers(effects [][]byte) ([]engine.Answer, error) {
	name := []byte(`"effect":"Heard"`)
	var answers []engine.Answer
	for _, raw := range effects {
		var l line
		if !bytes.Contains(raw, name) || json.Unmarshal(raw, &l) != nil || l.Effect != "Heard" {
			continue
		}
		var heard engine.Heard
		if err := json.Unmarshal(l.Data, &heard); err != nil {
			return nil, fmt.Errorf("reading the answers of foreign code on a tape: %w", err)
		}
		answers = append(answers, heard.Answers...)
	}
	return answers, nil
}
