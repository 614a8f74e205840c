// SPDX-License-Identifier: Apache-2.0

// Package resumetest owns the comparison of an engine with one that is resumed from its State, for tests of what a
// State holds: of the engine, and of plugins that reserve something.
package resumetest

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/recording"
	"github.com/kumiki-scheduler/kumiki/core/state"
)

// pathOfDecision is the one thing in which a resumed engine may differ.
var pathOfDecision = regexp.MustCompile(`,?"path":"[a-z]+"`)

// WithoutPath removes the path of decisions from the lines of effects or answers.
func WithoutPath(lines []byte) []byte { return pathOfDecision.ReplaceAll(lines, nil) }

// Keep changes nothing of a State.
func Keep(*state.State) {}

// Cut gives an engine some events, takes its State, and encodes and decodes it. A second engine is resumed with that,
// after a change of it, and both get the remaining events. Cut returns the first difference of their effects; empty
// for none. Each call of config makes a configuration with plugins of its own.
func Cut(config func() engine.Config, events []engine.Event, cut int, change func(*state.State)) (difference string) {
	one, all := engine.New(config()), recording.NewReader()
	for _, ev := range events[:cut] {
		one.Step(read(all, ev))
	}
	st := one.State()
	text := recording.AppendState(nil, &st)
	defer func() {
		if r := recover(); r != nil {
			difference = fmt.Sprint("panic: ", r)
		}
	}()
	cfg, reader := config(), recording.NewReader()
	again, err := Read(reader, text, &cfg)
	if err != nil {
		return err.Error()
	}
	change(again)
	other, err := engine.Resume(cfg, *again)
	if err != nil {
		return err.Error()
	}
	for i, ev := range events[cut:] {
		want := WithoutPath(recording.AppendEffects(nil, one.Step(read(all, ev))))
		got := WithoutPath(recording.AppendEffects(nil, other.Step(read(reader, ev))))
		if !bytes.Equal(got, want) {
			return fmt.Sprintf("cut before event %d, event %d: %s--- not cut\n%s--- resumed\n%s",
				cut, cut+i, recording.AppendEvent(nil, ev), want, got)
		}
	}
	return ""
}

// read returns an event as a recording has it: some values differ in their JSON, such as an empty map.
func read(reader *recording.Reader, ev engine.Event) engine.Event {
	same, _, err := reader.Event(bytes.TrimSpace(recording.AppendEvent(nil, ev)))
	if err != nil {
		panic(err)
	}
	return same
}

// Read reads the lines of a State.
func Read(reader *recording.Reader, text []byte, cfg *engine.Config) (st *state.State, err error) {
	for line := range bytes.Lines(text) {
		if st, err = reader.State(line, cfg); err != nil {
			return nil, err
		}
	}
	if st == nil {
		return nil, fmt.Errorf("the lines of a state end early")
	}
	return st, nil
}

// isLeaf reports whether values of a type are not taken apart: records, which are immutable, and types of the API.
func isLeaf(t reflect.Type) bool {
	if t.PkgPath() != "" && !strings.Contains(t.PkgPath(), "kumiki") {
		return true
	}
	if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface {
		return false
	}
	return t == reflect.TypeFor[*cluster.Pod]() || t == reflect.TypeFor[*cluster.Node]() ||
		t == reflect.TypeFor[*cluster.GangMark]() || t == reflect.TypeFor[engine.Event]() ||
		t != reflect.TypeFor[any]() && t.Implements(reflect.TypeFor[cluster.Object]())
}

// each visits the fields of a value and of all that it contains, by their paths. A field of the elements of a list has
// one path.
func each(v reflect.Value, path string, visit func(path string, v reflect.Value)) {
	t := v.Type()
	switch {
	case isLeaf(t):
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Interface:
		if !v.IsNil() {
			each(v.Elem(), path, visit)
		}
	case t.Kind() == reflect.Slice:
		for i := range v.Len() {
			each(v.Index(i), path+"[]", visit)
		}
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			if at, counts := join(path, t.Field(i)); counts {
				each(v.Field(i), at, visit)
				visit(at, v.Field(i))
			}
		}
	}
}

// join returns the path of a field; false for one that a State does not hold.
func join(path string, f reflect.StructField) (string, bool) {
	return strings.TrimPrefix(path+"."+f.Name, "."), f.IsExported() && f.Tag.Get("json") != "-"
}

// Facts returns the paths of the fields that are not zero in a State.
func Facts(st *state.State) map[string]bool { // path -> true
	paths := map[string]bool{}
	each(reflect.ValueOf(st).Elem(), "", func(path string, v reflect.Value) {
		if !paths[path] && !isZero(v) {
			paths[path] = true
		}
	})
	return paths
}

// isZero reports whether a value is zero, or an empty list.
func isZero(v reflect.Value) bool {
	return v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}

// Drop returns a change that makes all fields of a path zero.
func Drop(path string) func(*state.State) {
	return func(st *state.State) {
		each(reflect.ValueOf(st).Elem(), "", func(at string, v reflect.Value) {
			if at == path {
				v.SetZero()
			}
		})
	}
}

// Fields returns the paths of all fields of a type, below a path.
func Fields(t reflect.Type, path string) (paths []string) {
	switch {
	case isLeaf(t):
	case t.Kind() == reflect.Pointer:
		return Fields(t.Elem(), path)
	case t.Kind() == reflect.Slice:
		return Fields(t.Elem(), path+"[]")
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			if at, counts := join(path, t.Field(i)); counts {
				paths = append(append(paths, at), Fields(t.Field(i).Type, at)...)
			}
		}
	}
	return paths
}
