// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// reading is one pass over a file: when it is loaded, or when one of its workloads is planned.
type reading struct {
	source *source
	args   *arguments // nil while the file is loaded
	found  Mistakes
}

func (r *reading) mistake(line int, format string, args ...any) {
	r.found = append(r.found, Mistake{Path: r.source.path, Line: line, What: fmt.Sprintf(format, args...)})
}

// maxMerges is how many mappings one mapping can merge (<<), so that mappings that merge each other end.
const maxMerges = 1000

// maxCount is the largest count of a file: a typing error must not fill the memory of the machine.
const maxCount = 10_000_000

// mapping reads the fields of one YAML mapping. Each field must be asked for: done reports the others.
type mapping struct {
	in     *reading
	what   string // names the mapping in messages
	line   int
	fields []*field
	merges int // mappings that were merged so far
}

type field struct {
	name  string
	line  int
	value *yaml.Node
	asked bool
}

// mapping opens a node. It is empty when the node is none, which is reported.
func (r *reading) mapping(node *yaml.Node, what string) *mapping {
	m := &mapping{in: r, what: what, line: node.Line}
	node = target(node)
	if node.Kind != yaml.MappingNode {
		r.mistake(m.line, "%s must be a mapping of fields", what)
		return m
	}
	m.add(node, false)
	return m
}

// add takes the fields of a node; those of a merged one (<<) yield to what stands there already.
func (m *mapping) add(node *yaml.Node, merged bool) {
	if merged {
		m.merges++
	}
	if m.merges > maxMerges {
		if m.merges == maxMerges+1 {
			m.in.mistake(m.line, "%s merges more than %d mappings, or itself", m.what, maxMerges)
		}
		return
	}
	var merges []*yaml.Node
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], target(node.Content[i+1])
		if key.Tag == "!!merge" {
			merges = append(merges, value)
			continue
		}
		if old := m.exact(key.Value); old != nil {
			if !merged {
				m.in.mistake(key.Line, "%s: %s stands there twice (line %d)", m.what, key.Value, old.line)
			}
			continue
		}
		m.fields = append(m.fields, &field{name: key.Value, line: key.Line, value: value})
	}
	for _, from := range merges {
		switch from.Kind {
		case yaml.MappingNode:
			m.add(from, true)
		case yaml.SequenceNode:
			for _, one := range from.Content {
				if one = target(one); one.Kind == yaml.MappingNode {
					m.add(one, true)
				}
			}
		}
	}
}

// target is what an alias stands for.
func target(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}

func (m *mapping) exact(name string) *field {
	for _, f := range m.fields {
		if f.name == name {
			return f
		}
	}
	return nil
}

// find looks a field up as upstream's decoder does, which does not mind upper and lower case.
func (m *mapping) find(name string) *field {
	for _, f := range m.fields {
		if strings.EqualFold(f.name, name) {
			return f
		}
	}
	return nil
}

// get is the field, or nil when it is missing or null.
func (m *mapping) get(name string) *field {
	f := m.find(name)
	if f == nil {
		return nil
	}
	f.asked = true
	if f.value.Tag == "!!null" {
		return nil
	}
	return f
}

func (m *mapping) has(name string) bool { return m.get(name) != nil }

// done reports the fields that were not read.
func (m *mapping) done() {
	for _, f := range m.fields {
		if !f.asked {
			m.in.mistake(f.line, "%s has no field %s", m.what, f.name)
		}
	}
}

// need reports that a field is missing or empty.
func (m *mapping) need(name string) {
	if f := m.get(name); f == nil || f.value.Kind == yaml.ScalarNode && f.value.Value == "" {
		m.in.mistake(m.line, "%s needs %s", m.what, name)
	}
}

func (m *mapping) wrong(f *field, want string) {
	m.in.mistake(f.line, "%s: %s must be %s", m.what, f.name, want)
}

// scalar is the value of a plain node: an int, a float64, a bool or a string.
func (r *reading) scalar(node *yaml.Node) (any, bool) {
	var v any
	if node.Kind == yaml.ScalarNode && node.Decode(&v) == nil {
		switch v.(type) {
		case int, float64, bool, string:
			return v, true
		}
	}
	r.mistake(node.Line, "a number, a string, true or false must stand here")
	return nil, false
}

// anything is the value of any node: nil, an int, a float64, a bool, a string, or a list or a mapping of those.
func (r *reading) anything(node *yaml.Node) (any, bool) {
	var v any
	if err := node.Decode(&v); err != nil {
		_, what := yamlMistake(err)
		r.mistake(node.Line, "%s", what)
		return nil, false
	}
	if !isPlain(v) {
		r.mistake(node.Line, "only numbers, strings, true, false, null, and lists and mappings of them can stand here")
		return nil, false
	}
	return v, true
}

// isPlain reports whether a value can be written as JSON.
func isPlain(v any) bool {
	switch v := v.(type) {
	case nil, int, float64, bool, string:
		return true
	case []any:
		return !slices.ContainsFunc(v, func(one any) bool { return !isPlain(one) })
	case map[string]any:
		for _, one := range v { // order: all must hold
			if !isPlain(one) {
				return false
			}
		}
		return true
	}
	return false
}

// word is a text that may look like a number, such as a name.
func (m *mapping) word(name string) string {
	f := m.get(name)
	if f == nil {
		return ""
	}
	if f.value.Kind != yaml.ScalarNode {
		m.wrong(f, "a string")
		return ""
	}
	return f.value.Value
}

func (m *mapping) text(name string) string {
	f := m.get(name)
	if f == nil {
		return ""
	}
	if f.value.Kind != yaml.ScalarNode || f.value.Tag != "!!str" {
		m.wrong(f, "a string")
		return ""
	}
	return f.value.Value
}

func (m *mapping) texts(name string) []string {
	f := m.get(name)
	if f == nil {
		return nil
	}
	if f.value.Kind != yaml.SequenceNode {
		m.wrong(f, "a list of strings")
		return nil
	}
	out := make([]string, 0, len(f.value.Content))
	for _, one := range f.value.Content {
		if one = target(one); one.Kind != yaml.ScalarNode {
			m.in.mistake(one.Line, "%s: %s must be a list of strings", m.what, f.name)
			continue
		}
		out = append(out, one.Value)
	}
	return out
}

// each calls back for the entries of a field that maps names to something.
func (m *mapping) each(name string, entry func(key string, line int, value *yaml.Node)) {
	f := m.get(name)
	if f == nil {
		return
	}
	inner := m.in.mapping(f.value, m.what+": "+f.name)
	for _, e := range inner.fields {
		entry(e.name, e.line, e.value)
	}
}

func (m *mapping) textMap(name string) map[string]string {
	var out map[string]string // name -> text
	m.each(name, func(key string, line int, value *yaml.Node) {
		if value.Kind != yaml.ScalarNode || value.Tag != "!!str" {
			m.in.mistake(line, "%s: %s: %s must be a string, so quote it", m.what, name, key)
			return
		}
		if out == nil {
			out = map[string]string{}
		}
		out[key] = value.Value
	})
	return out
}

func (m *mapping) flags(name string) map[string]bool {
	var out map[string]bool // name -> on
	m.each(name, func(key string, line int, value *yaml.Node) {
		var on bool
		if value.Tag != "!!bool" || value.Decode(&on) != nil {
			m.in.mistake(line, "%s: %s: %s must be true or false", m.what, name, key)
			return
		}
		if out == nil {
			out = map[string]bool{}
		}
		out[key] = on
	})
	return out
}

// value is a field, or the parameter that <field>Param names; false when neither stands there or it has no value yet.
func (m *mapping) value(name string) (v any, line int, ok bool) {
	plain, reference := m.get(name), m.get(name+"Param")
	if plain != nil && reference != nil {
		m.in.mistake(reference.line, "%s: %s and %s: one of them counts, so write one", m.what, plain.name, reference.name)
		return nil, 0, false
	}
	switch {
	case plain != nil:
		v, ok = m.in.scalar(plain.value)
		return v, plain.line, ok
	case reference != nil:
		v, ok = m.in.argument(m.text(reference.name), reference.line)
		return v, reference.line, ok
	}
	return nil, 0, false
}

// whole is a whole number, 0 or more.
func (m *mapping) whole(name string, missing int) (n, line int) {
	v, line, ok := m.value(name)
	if !ok {
		return missing, line
	}
	n, is := v.(int)
	if !is || n < 0 {
		m.in.mistake(line, "%s: %s must be a whole number, 0 or more, not %v", m.what, name, v)
		return missing, line
	}
	return n, line
}

// count is a number of something: whole, and at most maxCount.
func (m *mapping) count(name string, missing int) int {
	n, line := m.whole(name, missing)
	if n > maxCount {
		m.in.mistake(line, "%s: %s must be at most %d, not %d", m.what, name, maxCount, n)
		return missing
	}
	return n
}

func (m *mapping) flag(name string) bool {
	v, line, ok := m.value(name)
	if !ok {
		return false
	}
	on, isBool := v.(bool)
	if !isBool {
		m.in.mistake(line, "%s: %s must be true or false, not %v", m.what, name, v)
	}
	return on
}

func (m *mapping) duration(name string) time.Duration {
	v, line, ok := m.value(name)
	if !ok {
		return 0
	}
	text, isText := v.(string)
	d, err := time.ParseDuration(text)
	if !isText || err != nil || d < 0 {
		m.in.mistake(line, "%s: %s must be a duration such as 10s, not %v", m.what, name, v)
		return 0
	}
	return d
}

// number is a figure, 0 or more.
func number(node *yaml.Node) (float64, bool) {
	if node.Kind != yaml.ScalarNode || node.Tag != "!!int" && node.Tag != "!!float" {
		return 0, false
	}
	n, err := strconv.ParseFloat(node.Value, 64)
	return n, err == nil && n >= 0
}
