// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kumiki-scheduler/kumiki/core/answers"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
)

// Pseudonyms replaces names in a recording: of namespaces and objects, label keys and values, taints, images and
// addresses. Equal names get equal pseudonyms, and a name that sorts before another one has a pseudonym that does, so
// that matching and ordering by name stay the same. Collect must be called for all lines, then Assign, then Line.
//
// A name with slashes is replaced part by part. The name of the claim of a generic ephemeral volume is the pod's name,
// a dash and the volume's name, and so is its pseudonym. Not replaced are numbers, since Gt and Lt compare them; names
// of Kubernetes and kumiki; and everything that Keep or a field in keptFields has as its value.
type Pseudonyms struct {
	names   map[string]string // name without slashes -> its pseudonym, empty before Assign
	kept    map[string]bool   // value that is not replaced -> true
	volumes map[string]bool   // name of a generic ephemeral volume -> true
}

// NewPseudonyms returns pseudonyms without names.
func NewPseudonyms() *Pseudonyms {
	p := &Pseudonyms{names: map[string]string{}, kept: map[string]bool{}, volumes: map[string]bool{}}
	for _, word := range vocabulary {
		p.kept[word] = true
	}
	return p
}

// Keep keeps a value, such as the name of a plugin. It must be called before Assign.
func (p *Pseudonyms) Keep(value string) { p.kept[value] = true }

// vocabulary are values with a meaning of their own, and words of messages.
var vocabulary = strings.Fields(`default kube-system kube-public kube-node-lease metadata.name metadata.namespace
	0.0.0.0 true false yes no none latest
	active backoff unschedulable gated inflight in-flight gone preparing waiting binding podgroup annotation sigs
	volcano pfnet a an and any are as at be because but by can cannot did didn't does doesn't for found free from had
	has have if in is it its match more no node nodes not of on only or other pod pods rules satisfy that the their them
	there these this to too untolerated victims volume volumes wait waits was were which with x`)

// textFields are fields whose value is text with names in it.
var textFields = map[string]bool{"Message": true, "Reason": true, "Bad": true, "FeaturesErr": true, "Err": true}

// keptFields are fields whose value is not replaced: kinds, names that programs know, identifiers, and expressions.
// With true, the value is not replaced anywhere.
var keptFields = map[string]bool{"APIVersion": true, "Kind": true, "APIGroup": true, "SchedulerName": true,
	"Driver": true, "DriverName": true, "Provisioner": true, "Attacher": true, "Features": true, "FSType": true,
	"UID": false, "ResourceVersion": false, "Expression": false, "ManagedFields": false,
	"Attributes": false, "Capacity": false, "VolumeHandle": false}

var resourceNameType = reflect.TypeFor[v1.ResourceName]()

// skipped reports whether values of a type have no names: amounts, times, and enumerations, which have types of their
// own.
func skipped(t reflect.Type) bool {
	if t.Kind() == reflect.String {
		return t.PkgPath() != ""
	}
	switch path := t.PkgPath(); {
	case strings.HasSuffix(path, "/api/resource") && t.Name() == "Quantity", path == "time",
		strings.HasSuffix(path, "/util/intstr"), path == "unique":
		return true
	case strings.HasSuffix(path, "/meta/v1"):
		return t.Name() == "Time" || t.Name() == "MicroTime" || t.Name() == "Duration" || t.Name() == "FieldsV1"
	}
	return false
}

// visitor sees the strings of a record and returns what they become.
type visitor struct {
	name, text func(string) string
	keep       func(string)
	volume     func(string) // of the name of a generic ephemeral volume
}

// walk visits the strings in v, which must be settable if they change.
func (s *visitor) walk(v reflect.Value) {
	t := v.Type()
	if t == resourceNameType {
		s.keep(v.String())
		return
	}
	if skipped(t) {
		return
	}
	switch t.Kind() {
	case reflect.String:
		v.SetString(s.name(v.String()))
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			s.walk(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			s.walk(v.Index(i))
		}
	case reflect.Map:
		s.entries(v)
	case reflect.Struct:
		if ephemeral := v.FieldByName("Ephemeral"); ephemeral.IsValid() && ephemeral.Kind() == reflect.Pointer &&
			!ephemeral.IsNil() && v.FieldByName("Name").IsValid() {
			s.volume(v.FieldByName("Name").String())
		}
		if raw, is := v.Interface().(runtime.RawExtension); is && raw.Raw != nil {
			// Parameters of a device driver, which the scheduler does not read.
			v.FieldByName("Raw").SetBytes([]byte("{}"))
			return
		}
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				s.field(t.Field(i).Name, v.Field(i))
			}
		}
	}
}

// field visits a field of a struct.
func (s *visitor) field(name string, v reflect.Value) {
	spread, kept := keptFields[name]
	switch {
	case kept:
		if spread && v.Kind() == reflect.String {
			s.keep(v.String())
		}
		if spread && v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.String {
			for i := range v.Len() {
				s.keep(v.Index(i).String())
			}
		}
	case textFields[name] && v.Kind() == reflect.String && v.Type().PkgPath() == "":
		v.SetString(s.text(v.String()))
	default:
		s.walk(v)
	}
}

// entries visits a map, whose keys and values are not settable.
func (s *visitor) entries(v reflect.Value) {
	if v.IsNil() {
		return
	}
	out := reflect.MakeMapWithSize(v.Type(), v.Len())
	for it := v.MapRange(); it.Next(); {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		key.Set(it.Key())
		value.Set(it.Value())
		s.walk(key)
		s.walk(value)
		out.SetMapIndex(key, value)
	}
	v.Set(out)
}

// Collect takes the names in a line.
func (p *Pseudonyms) Collect(raw []byte) error {
	v := &visitor{name: p.collect, text: same, keep: p.Keep, volume: func(name string) { p.volumes[name] = true }}
	_, err := rewrite(raw, v, func(json.RawMessage) (json.RawMessage, error) { return nil, nil })
	return err
}

func same(text string) string { return text }

// space is what names do not contain.
const space = " \t\r\n"

func (p *Pseudonyms) collect(name string) string {
	if strings.ContainsAny(name, space) { // the value of an annotation may be a text
		p.names[name] = ""
		return name
	}
	for part := range strings.SplitSeq(name, "/") {
		p.names[part] = ""
	}
	return name
}

var (
	// number is a number, as Gt and Lt of a node affinity compare them.
	number = regexp.MustCompile(`^[+-]?[0-9]+$`)
	// public is a name of Kubernetes or kumiki, or a list of such names.
	public = regexp.MustCompile(`^[A-Za-z0-9.,/_:-]{0,200}(?:k8s\.io|kubernetes\.io|kumiki\.dev)` +
		`(?:[,/:][A-Za-z0-9.,/_:-]{0,200})?$`)
)

func (p *Pseudonyms) keeps(name string) bool {
	return name == "" || p.kept[name] || number.MatchString(name) || public.MatchString(name)
}

// Assign gives pseudonyms to the collected names.
func (p *Pseudonyms) Assign() {
	var list []string
	for name := range p.names { // order: sorted below
		if !p.keeps(name) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	width := len(fmt.Sprint(len(list)))
	for i, name := range list {
		p.names[name] = fmt.Sprintf("n%0*d", width, i)
	}
	for _, name := range list {
		for at, c := range name { // the pod's name may have dashes, too: the shortest that is one counts
			if c == '-' && p.volumes[name[at+1:]] && p.names[name[:at]] != "" {
				p.names[name] = p.Name(name[:at]) + "-" + p.Name(name[at+1:])
				break
			}
		}
	}
}

// Name returns the pseudonym of a name; the name itself if it is kept or was not collected.
func (p *Pseudonyms) Name(name string) string {
	switch {
	case p.keeps(name):
		return name
	case p.names[name] != "":
		return p.names[name]
	case strings.Contains(name, "/") && !strings.ContainsAny(name, space):
		parts := strings.Split(name, "/")
		for i, part := range parts {
			parts[i] = p.Name(part)
		}
		return strings.Join(parts, "/")
	}
	return p.Text(name)
}

// token is what may be a name in a text.
var token = regexp.MustCompile(`[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?`)

// Text returns a text with its names replaced.
func (p *Pseudonyms) Text(text string) string {
	return token.ReplaceAllStringFunc(text, func(name string) string {
		if p.keeps(name) {
			return name
		}
		parts := strings.Split(name, "/")
		for i, part := range parts {
			if pseudonym := p.names[part]; pseudonym != "" && !p.keeps(part) {
				parts[i] = pseudonym
			}
		}
		return strings.Join(parts, "/")
	})
}

// Line returns a line with its names replaced. The line of a State and those of effects are read as plain JSON, whose
// keys stay.
func (p *Pseudonyms) Line(raw []byte) ([]byte, error) {
	v := &visitor{name: p.Name, text: p.Text, keep: func(string) {}, volume: func(string) {}}
	return rewrite(raw, v, p.JSON)
}

// JSON returns JSON with the names in its values replaced.
func (p *Pseudonyms) JSON(raw json.RawMessage) (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return nil, err
	}
	return json.Marshal(p.tree(tree))
}

func (p *Pseudonyms) tree(v any) any {
	switch v := v.(type) {
	case string:
		return p.Name(v)
	case []any:
		for i := range v {
			v[i] = p.tree(v[i])
		}
	case map[string]any:
		for key := range v { // order: each by itself
			v[key] = p.tree(v[key])
		}
	}
	return v
}

// rewrite visits the data of a line and returns the line with it. Lines of effects and of a State have the form that
// plain returns.
func rewrite(raw []byte, s *visitor, plain func(json.RawMessage) (json.RawMessage, error)) ([]byte, error) {
	var l struct {
		recordLine
		Event  string          `json:"event"`
		Effect string          `json:"effect"`
		State  json.RawMessage `json:"state"`
	}
	if err := json.Unmarshal(raw, &l); err != nil {
		return nil, fmt.Errorf("reading a line of a tape: %w", err)
	}
	switch {
	case l.State != nil:
		data, err := plain(l.State)
		return append(append([]byte(`{"state":`), data...), "}\n"...), err
	case l.Effect != "":
		data, err := l.Data, error(nil)
		if l.Effect == heardName {
			data, err = rewriteHeard(data, s.text, plain)
		} else {
			data, err = plain(data)
		}
		if err != nil {
			return nil, fmt.Errorf("reading an effect of a tape: %w", err)
		}
		return lineOf(line{Effect: l.Effect, Data: data}), nil
	case l.Event != "":
		typ, known := eventTypes[l.Event]
		if !known {
			return nil, fmt.Errorf("reading a line of a tape: unknown event %q", l.Event)
		}
		ev := reflect.New(typ)
		if err := json.Unmarshal(l.Data, ev.Interface()); err != nil {
			return nil, fmt.Errorf("reading event %s of a tape: %w", l.Event, err)
		}
		s.walk(ev.Elem())
		return AppendEvent(nil, ev.Elem().Interface().(engine.Event)), nil
	}
	data := emptyRecord(&l.recordLine)
	if data == nil {
		return nil, fmt.Errorf("reading a line of a state: unknown record %q %q", l.Record, l.Kind)
	}
	if err := json.Unmarshal(l.Data, data); err != nil {
		return nil, fmt.Errorf("reading record %s of a state: %w", l.Record, err)
	}
	s.walk(reflect.ValueOf(data).Elem())
	l.Data = encode(data)
	return append(encode(l.recordLine), '\n'), nil
}

// rewriteHeard returns answers of foreign code with other names. Those of plugins are no JSON.
func rewriteHeard(data json.RawMessage, text func(string) string,
	plain func(json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	var heard engine.Heard
	if err := json.Unmarshal(data, &heard); err != nil {
		return nil, err
	}
	if heard.Hosted == nil {
		return plain(data)
	}
	hosted, err := answers.Rewrite(heard.Hosted, text)
	if err != nil {
		return nil, fmt.Errorf("reading the answers of plugins: %w", err)
	}
	out := engine.Heard{Hosted: hosted}
	if heard.Answers == nil {
		return encode(out), nil
	}
	others, err := plain(encode(heard.Answers))
	if err != nil {
		return nil, err
	}
	if others != nil {
		err = json.Unmarshal(others, &out.Answers)
	}
	return encode(out), err
}

func lineOf(l line) []byte { return append(encode(l), '\n') }

// emptyRecord returns an empty record of the kind of a line; nil for an unknown kind.
func emptyRecord(l *recordLine) any {
	switch l.Record {
	case recordSpec:
		return &cluster.PodSpec{}
	case recordPod:
		return &cluster.Pod{}
	case recordNode:
		return &cluster.Node{}
	case recordMark:
		return &cluster.GangMark{}
	case recordObject:
		if obj := cluster.EmptyObject(l.Kind); obj != nil {
			return obj
		}
	}
	return nil
}
