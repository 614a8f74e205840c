// SPDX-License-Identifier: Apache-2.0

package message

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Events and effects as JSON. Objects and writes are interfaces, so their types are written with them.

// typedObject is an ObjectSet as JSON.
type typedObject struct {
	Kind   cluster.Kind
	Object json.RawMessage
}

// MarshalJSON returns the object with its kind.
func (ev ObjectSet) MarshalJSON() ([]byte, error) {
	raw, err := json.Marshal(ev.Object)
	if err != nil {
		return nil, err
	}
	return json.Marshal(typedObject{cluster.KindOf(ev.Object), raw})
}

// UnmarshalJSON reads what MarshalJSON returns.
func (ev *ObjectSet) UnmarshalJSON(raw []byte) error {
	var l typedObject
	if err := json.Unmarshal(raw, &l); err != nil {
		return err
	}
	if ev.Object = cluster.EmptyObject(l.Kind); ev.Object == nil {
		return fmt.Errorf("unknown kind %q", l.Kind)
	}
	return json.Unmarshal(l.Object, ev.Object)
}

// typedWrite is one write as JSON.
type typedWrite struct {
	Write string
	Data  cluster.Write
}

func typedWrites(writes []cluster.Write) []typedWrite {
	list := make([]typedWrite, len(writes))
	for i, w := range writes {
		list[i] = typedWrite{reflect.TypeOf(w).Name(), w}
	}
	return list
}

// MarshalJSON returns each write with the name of its type.
func (f Prepare) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Pod      record.PodRef
		Node     string
		Decision uint64
		Writes   []typedWrite
	}{f.Pod, f.Node, f.Decision, typedWrites(f.Writes)})
}

// MarshalJSON returns each write with the name of its type.
func (f Release) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Pod    record.PodRef
		Writes []typedWrite
	}{f.Pod, typedWrites(f.Writes)})
}
