// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/state"
)

// A State is written as lines: one for each immutable record, {"record":KIND,"data":{…}}, and then
// {"state":{…}}, which names records by number. What was one record is one again when the lines are read: reservations
// and gangs compare records by identity, and pods of one template share a spec.
//
// Fields that have their zero value are left out. A map is a list of pairs in the order of the encoded keys. What a
// plugin has reserved for a pod is read into the facts that the plugin names (plugin.Resumer).

// The kinds of records.
const (
	recordSpec   = "PodSpec"
	recordPod    = "Pod"
	recordNode   = "Node"
	recordMark   = "GangMark"
	recordObject = "Object"
)

// recordLine is the line of a record.
type recordLine struct {
	Record string `json:"record"`
	// Spec is the number of a pod's spec among the specs.
	Spec *int `json:"spec,omitempty"`
	// Kind is that of an object.
	Kind cluster.Kind `json:"kind,omitempty"`
	// Allocated is when a resource claim was allocated, in nanoseconds: an allocation that is only assumed has a time
	// that is no whole second, which is all that API objects can state.
	Allocated *int64          `json:"allocated,omitempty"`
	Data      json.RawMessage `json:"data"`
}

var (
	podType      = reflect.TypeFor[*cluster.Pod]()
	nodeType     = reflect.TypeFor[*cluster.Node]()
	markType     = reflect.TypeFor[*cluster.GangMark]()
	objectType   = reflect.TypeFor[cluster.Object]()
	eventType    = reflect.TypeFor[engine.Event]()
	reservedType = reflect.TypeFor[state.Reserved]()
)

// isObject reports whether values of a type are objects of the store.
func isObject(t reflect.Type) bool {
	return t == objectType || t.Kind() == reflect.Pointer && t.Implements(objectType)
}

// fromAPI reports whether a type is one of the API's, which has a JSON form.
func fromAPI(t reflect.Type) bool { return strings.HasPrefix(t.PkgPath(), "k8s.io/") }

// AppendState appends the lines of a State to b. It sorts the lists of the State that are in no order, and changes
// nothing else, so it may run beside the engine.
func AppendState(b []byte, st *engine.State) []byte {
	WriteState(st, func(lines []byte) { b = append(b, lines...) })
	return b
}

// writeBytes is how much WriteState hands over at once, at least.
const writeBytes = 64 << 10

// WriteState is AppendState for a State that should not be in memory as a whole. It calls write for parts of the lines,
// in order; write must not keep them.
func WriteState(st *engine.State, write func(lines []byte)) {
	st.Sort()
	w := &stateWriter{write: write, numbers: map[any]int{}, counts: map[string]int{}}
	w.json = json.NewEncoder(&w.records)
	facts := w.value(nil, reflect.ValueOf(st).Elem())
	write(w.records.Bytes())
	write([]byte(`{"state":`))
	write(facts)
	write([]byte("}\n"))
}

// stateWriter writes the lines of a State.
type stateWriter struct {
	write   func([]byte)
	records bytes.Buffer   // lines of records that are not written
	json    *json.Encoder  // into records
	more    []byte         // members of the next line between the kind of record and its data
	pod     cluster.Pod    // the pod that is being written
	numbers map[any]int    // pointer to a record -> its number among those of its kind
	counts  map[string]int // kind of records -> how many there are
}

// value appends the JSON of a value to b.
func (w *stateWriter) value(b []byte, v reflect.Value) []byte {
	t := v.Type()
	switch {
	case t == podType || t == nodeType || t == markType || isObject(t):
		if v.IsNil() {
			return append(b, "null"...)
		}
		return strconv.AppendInt(b, int64(w.number(v.Interface())), 10)
	case t == eventType:
		b = fmt.Appendf(b, `{"event":%q,"data":`, v.Elem().Type().Name())
		return append(w.value(b, v.Elem()), '}')
	case t == reservedType:
		return w.reserved(b, v.Interface().(state.Reserved))
	case fromAPI(t):
		return append(b, encode(v.Interface())...)
	}
	switch t.Kind() {
	case reflect.Struct:
		return w.fields(b, v)
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, "null"...)
		}
		return w.value(b, v.Elem())
	case reflect.Slice, reflect.Array:
		b = append(b, '[')
		for i := range v.Len() {
			b = w.value(comma(b), v.Index(i))
		}
		return append(b, ']')
	case reflect.Map:
		return w.pairs(b, v)
	}
	return append(b, encode(v.Interface())...)
}

// comma appends a comma unless b begins a list or an object.
func comma(b []byte) []byte {
	if last := b[len(b)-1]; last == '[' || last == '{' {
		return b
	}
	return append(b, ',')
}

// encode returns the JSON of plain data, which always has one.
func encode(data any) []byte {
	raw, err := json.Marshal(data)
	if err != nil {
		panic(fmt.Sprintf("recording: writing %T: %v", data, err))
	}
	return raw
}

func (w *stateWriter) fields(b []byte, v reflect.Value) []byte {
	t := v.Type()
	b = append(b, '{')
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() || f.Tag.Get("json") == "-" || v.Field(i).IsZero() {
			continue
		}
		b = append(append(append(comma(b), '"'), f.Name...), `":`...)
		b = w.value(b, v.Field(i))
	}
	return append(b, '}')
}

func (w *stateWriter) pairs(b []byte, v reflect.Value) []byte {
	type pair struct{ key, value []byte }
	var list []pair
	for it := v.MapRange(); it.Next(); {
		list = append(list, pair{w.value(nil, it.Key()), w.value(nil, it.Value())})
	}
	slices.SortFunc(list, func(a, b pair) int { return bytes.Compare(a.key, b.key) })
	b = append(b, '[')
	for _, p := range list {
		b = fmt.Appendf(comma(b), "[%s,%s]", p.key, p.value)
	}
	return append(b, ']')
}

func (w *stateWriter) reserved(b []byte, r state.Reserved) []byte {
	b = fmt.Appendf(b, `{"By":%s,"Announced":%v`, encode(r.By), r.Announced)
	if r.Facts != nil {
		b = append(b, `,"Facts":`...)
		b = w.value(b, reflect.ValueOf(r.Facts).Elem())
	}
	return append(b, '}')
}

// number returns the number of a record, and writes its line if it is new.
func (w *stateWriter) number(rec any) int {
	if n, known := w.numbers[rec]; known {
		return n
	}
	switch rec := rec.(type) {
	case *cluster.Pod:
		spec := w.number(rec.Spec)
		w.pod = *rec
		w.pod.Spec = nil
		w.more = strconv.AppendInt(append(w.more, `,"spec":`...), int64(spec), 10)
		w.record(recordPod, &w.pod)
		return w.numbered(rec, recordPod)
	case *cluster.PodSpec:
		w.record(recordSpec, rec)
		return w.numbered(rec, recordSpec)
	case *cluster.Node:
		w.record(recordNode, rec)
		return w.numbered(rec, recordNode)
	case *cluster.GangMark:
		w.record(recordMark, rec)
		return w.numbered(rec, recordMark)
	case cluster.Object:
		w.more = append(append(w.more, `,"kind":`...), encode(cluster.KindOf(rec))...)
		if claim, is := rec.(*resourceapi.ResourceClaim); is && claim.Status.Allocation != nil {
			if at := claim.Status.Allocation.AllocationTimestamp; at != nil {
				w.more = strconv.AppendInt(append(w.more, `,"allocated":`...), at.UnixNano(), 10)
			}
		}
		w.record(recordObject, rec)
		return w.numbered(rec, recordObject)
	}
	panic(fmt.Sprintf("recording: %T is not a record", rec))
}

// numbered gives a record the next number of its kind.
func (w *stateWriter) numbered(rec any, kind string) int {
	n := w.counts[kind]
	w.counts[kind]++
	w.numbers[rec] = n
	return n
}

// record writes a line as recordLine has it. The data is encoded once, into the buffer that is written: a copy of each
// record would be most of what a bundle allocates, and the scheduling loop would have to help the garbage collector.
func (w *stateWriter) record(kind string, data any) {
	for _, part := range [...]string{`{"record":"`, kind, `"`} {
		w.records.WriteString(part)
	}
	w.records.Write(w.more)
	w.more = w.more[:0]
	w.records.WriteString(`,"data":`)
	if err := w.json.Encode(data); err != nil {
		panic(fmt.Sprintf("recording: writing %T: %v", data, err)) // plain data always has a JSON form
	}
	w.records.Truncate(w.records.Len() - 1) // the end of line after the data
	if w.records.WriteString("}\n"); w.records.Len() > writeBytes {
		w.write(w.records.Bytes())
		w.records.Reset()
	}
}

// stateReader reads the lines of a State.
type stateReader struct {
	specs   []*cluster.PodSpec
	pods    []*cluster.Pod
	nodes   []*cluster.Node
	marks   []*cluster.GangMark
	objects []cluster.Object
	facts   func(plugin string) any // returns empty facts, nil for an unknown plugin
}

// State reads the next line of a State, for an engine of the given configuration. The result is nil before the last
// line.
func (r *Reader) State(raw []byte, cfg *engine.Config) (*engine.State, error) {
	if r.state == nil {
		r.state = &stateReader{facts: cfg.NoFacts}
	}
	var l struct {
		recordLine
		State json.RawMessage `json:"state"`
	}
	if err := json.Unmarshal(raw, &l); err != nil {
		return nil, fmt.Errorf("reading a line of a state: %w", err)
	}
	if l.State == nil {
		if err := r.state.record(r, &l.recordLine); err != nil {
			return nil, fmt.Errorf("reading record %s of a state: %w", cmp.Or(l.Record, "without a name"), err)
		}
		return nil, nil
	}
	st := &engine.State{}
	if err := r.state.value(l.State, reflect.ValueOf(st).Elem()); err != nil {
		return nil, fmt.Errorf("reading a state: %w", err)
	}
	r.state = nil
	return st, nil
}

// record reads the line of a record.
func (s *stateReader) record(r *Reader, l *recordLine) error {
	switch l.Record {
	case recordSpec:
		spec := &cluster.PodSpec{}
		s.specs = append(s.specs, spec)
		if err := json.Unmarshal(l.Data, spec); err != nil {
			return err
		}
		s.specs[len(s.specs)-1] = r.intake.Share(spec)
		return nil
	case recordPod:
		pod := &cluster.Pod{}
		s.pods = append(s.pods, pod)
		if err := json.Unmarshal(l.Data, pod); err != nil {
			return err
		}
		if l.Spec == nil || *l.Spec < 0 || *l.Spec >= len(s.specs) {
			return fmt.Errorf("pod %s has no spec", pod.Key())
		}
		pod.Spec = s.specs[*l.Spec]
		r.intake.ShareMarks(pod)
		return nil
	case recordNode:
		node := &cluster.Node{}
		s.nodes = append(s.nodes, node)
		return json.Unmarshal(l.Data, node)
	case recordMark:
		mark := &cluster.GangMark{}
		s.marks = append(s.marks, mark)
		return json.Unmarshal(l.Data, mark)
	case recordObject:
		obj := cluster.EmptyObject(l.Kind)
		if obj == nil {
			return fmt.Errorf("unknown kind %q", l.Kind)
		}
		s.objects = append(s.objects, obj)
		if err := json.Unmarshal(l.Data, obj); err != nil {
			return err
		}
		if claim, is := obj.(*resourceapi.ResourceClaim); is && l.Allocated != nil && claim.Status.Allocation != nil {
			at := metav1.Unix(0, *l.Allocated)
			claim.Status.Allocation.AllocationTimestamp = &at
		}
		return nil
	}
	return fmt.Errorf("unknown kind of record")
}

// value reads the JSON of a value into v.
func (s *stateReader) value(raw json.RawMessage, v reflect.Value) error {
	t := v.Type()
	switch {
	case t == podType:
		return numbered(raw, v, s.pods)
	case t == nodeType:
		return numbered(raw, v, s.nodes)
	case t == markType:
		return numbered(raw, v, s.marks)
	case isObject(t):
		return numbered(raw, v, s.objects)
	case t == eventType:
		return s.event(raw, v)
	case t == reservedType:
		return s.reserved(raw, v)
	case fromAPI(t):
		return json.Unmarshal(raw, v.Addr().Interface())
	}
	switch t.Kind() {
	case reflect.Struct:
		return s.fields(raw, v)
	case reflect.Pointer:
		if string(raw) == "null" {
			return nil
		}
		v.Set(reflect.New(t.Elem()))
		return s.value(raw, v.Elem())
	case reflect.Slice:
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
		v.Set(reflect.MakeSlice(t, len(list), len(list)))
		for i := range list {
			if err := s.value(list[i], v.Index(i)); err != nil {
				return err
			}
		}
		return nil
	case reflect.Map:
		return s.pairs(raw, v)
	}
	return json.Unmarshal(raw, v.Addr().Interface())
}

// numbered reads the number of a record into v, which becomes that record.
func numbered[R any](raw json.RawMessage, v reflect.Value, records []R) error {
	if string(raw) == "null" {
		return nil
	}
	var n int
	if err := json.Unmarshal(raw, &n); err != nil {
		return err
	}
	if n < 0 || n >= len(records) {
		return fmt.Errorf("record %d of %d of type %v", n, len(records), v.Type())
	}
	rec := reflect.ValueOf(records[n])
	if !rec.Type().AssignableTo(v.Type()) {
		return fmt.Errorf("record %d is a %v, not a %v", n, rec.Type(), v.Type())
	}
	v.Set(rec)
	return nil
}

func (s *stateReader) fields(raw json.RawMessage, v reflect.Value) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	for _, name := range sortedNames(fields) {
		f, known := v.Type().FieldByName(name)
		if !known || !f.IsExported() || len(f.Index) > 1 {
			return fmt.Errorf("%v has no field %q", v.Type(), name)
		}
		if err := s.value(fields[name], v.FieldByIndex(f.Index)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func sortedNames(fields map[string]json.RawMessage) (names []string) {
	for name := range fields { // order: sorted below
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (s *stateReader) pairs(raw json.RawMessage, v reflect.Value) error {
	var list [][2]json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	t := v.Type()
	v.Set(reflect.MakeMapWithSize(t, len(list)))
	for _, p := range list {
		key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		if err := s.value(p[0], key); err != nil {
			return err
		}
		if err := s.value(p[1], value); err != nil {
			return err
		}
		v.SetMapIndex(key, value)
	}
	return nil
}

func (s *stateReader) event(raw json.RawMessage, v reflect.Value) error {
	var l line
	if err := json.Unmarshal(raw, &l); err != nil {
		return err
	}
	typ, known := eventTypes[l.Event]
	if !known {
		return fmt.Errorf("unknown event %q", l.Event)
	}
	ev := reflect.New(typ).Elem()
	if err := s.value(l.Data, ev); err != nil {
		return err
	}
	v.Set(ev)
	return nil
}

func (s *stateReader) reserved(raw json.RawMessage, v reflect.Value) error {
	var l struct {
		By        string
		Announced bool
		Facts     json.RawMessage
	}
	if err := json.Unmarshal(raw, &l); err != nil {
		return err
	}
	r := state.Reserved{By: l.By, Announced: l.Announced}
	if l.Facts != nil {
		if r.Facts = s.facts(l.By); r.Facts == nil {
			return fmt.Errorf("no plugin reads what %q has reserved", l.By)
		}
		if err := s.value(l.Facts, reflect.ValueOf(r.Facts).Elem()); err != nil {
			return err
		}
	}
	v.Set(reflect.ValueOf(r))
	return nil
}
