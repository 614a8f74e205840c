// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// A tape is a recording as lines of text: each event on a line of its own as {"event":NAME,"data":{…}}, followed by one
// line {"effect":NAME,"data":{…}} for each effect of its Step. Events hold what the scheduler reads of nodes and pods:
// no environment values, no secrets, no annotations. The same events give the same effect lines, byte for byte.

// line is one line of a tape.
type line struct {
	Event  string          `json:"event,omitempty"`
	Effect string          `json:"effect,omitempty"`
	Data   json.RawMessage `json:"data"`
}

// eventTypes are the events by name.
var eventTypes = map[string]reflect.Type{} // name -> type of the event struct

func init() {
	for _, ev := range []Event{NodeSet{}, NodeGone{}, PodSet{}, PodGone{}, ObjectSet{}, ObjectGone{}, WritesDone{}, EvictDone{},
		BindDone{}, Activate{}, Tick{}, Synced{}, Cycle{}} {
		t := reflect.TypeOf(ev)
		eventTypes[t.Name()] = t
	}
}

// AppendEvent appends an event's line to b.
func AppendEvent(b []byte, ev Event) []byte {
	return appendLine(b, line{Event: reflect.TypeOf(ev).Name()}, ev)
}

// AppendEffects appends the lines of a Step's effects to b.
func AppendEffects(b []byte, effects []Effect) []byte {
	for _, f := range effects {
		b = appendLine(b, line{Effect: reflect.TypeOf(f).Name()}, f)
	}
	return b
}

func appendLine(b []byte, l line, data any) []byte {
	raw, err := json.Marshal(data)
	if err != nil {
		panic(fmt.Sprintf("engine: writing %T to a tape: %v", data, err)) // plain data always marshals
	}
	l.Data = raw
	whole, err := json.Marshal(l)
	if err != nil {
		panic(fmt.Sprintf("engine: writing a line for %T to a tape: %v", data, err))
	}
	return append(append(b, whole...), '\n')
}

// Tape reads lines of a recording back.
type Tape struct {
	intake *cluster.Intake
}

// NewTape returns a reader whose pods share specs as the recorded ones did.
func NewTape() *Tape { return &Tape{cluster.NewIntake()} }

// Event reads a line. ok is false for the line of an effect.
func (t *Tape) Event(raw []byte) (ev Event, ok bool, err error) {
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
	ev = v.Elem().Interface().(Event)
	switch set := ev.(type) {
	case PodSet:
		if set.Pod == nil || set.Pod.Spec == nil {
			return nil, false, fmt.Errorf("reading event %s of a tape: no pod", l.Event)
		}
		set.Pod.Spec = t.intake.Share(set.Pod.Spec)
		t.intake.ShareMarks(set.Pod)
	case ObjectSet:
		if set.Object == nil {
			return nil, false, fmt.Errorf("reading event %s of a tape: no object", l.Event)
		}
	case NodeSet:
		if set.Node == nil {
			return nil, false, fmt.Errorf("reading event %s of a tape: no node", l.Event)
		}
	}
	return ev, true, nil
}

// objectLine is an ObjectSet on a tape.
type objectLine struct {
	Kind   cluster.Kind
	Object json.RawMessage
}

// MarshalJSON writes the object with its kind.
func (ev ObjectSet) MarshalJSON() ([]byte, error) {
	raw, err := json.Marshal(ev.Object)
	if err != nil {
		return nil, err
	}
	return json.Marshal(objectLine{cluster.KindOf(ev.Object), raw})
}

// UnmarshalJSON reads it back.
func (ev *ObjectSet) UnmarshalJSON(raw []byte) error {
	var l objectLine
	if err := json.Unmarshal(raw, &l); err != nil {
		return err
	}
	if ev.Object = cluster.EmptyObject(l.Kind); ev.Object == nil {
		return fmt.Errorf("unknown kind %q", l.Kind)
	}
	return json.Unmarshal(l.Object, ev.Object)
}

// writeLine is one write on a tape.
type writeLine struct {
	Write string
	Data  cluster.Write
}

func writeLines(writes []cluster.Write) []writeLine {
	lines := make([]writeLine, len(writes))
	for i, w := range writes {
		lines[i] = writeLine{reflect.TypeOf(w).Name(), w}
	}
	return lines
}

// MarshalJSON names each write.
func (f Prepare) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Pod      record.PodRef
		Node     string
		Decision uint64
		Writes   []writeLine
	}{f.Pod, f.Node, f.Decision, writeLines(f.Writes)})
}

// MarshalJSON names each write.
func (f Release) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Pod    record.PodRef
		Writes []writeLine
	}{f.Pod, writeLines(f.Writes)})
}

// Answers reads what foreign code answered from the lines of one Step's effects.
func Answers(effects [][]byte) ([]Answer, error) {
	name := []byte(`"effect":"Heard"`)
	var answers []Answer
	for _, raw := range effects {
		var l line
		if !bytes.Contains(raw, name) || json.Unmarshal(raw, &l) != nil || l.Effect != "Heard" {
			continue
		}
		var heard Heard
		if err := json.Unmarshal(l.Data, &heard); err != nil {
			return nil, fmt.Errorf("reading the answers of foreign code on a tape: %w", err)
		}
		answers = append(answers, heard.Answers...)
	}
	return answers, nil
}
