// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Param is the value that a workload gives to a parameter.
type Param struct {
	Value any // nil, int, float64, bool, string, or a list or a mapping of those, for templates
	Line  int
}

// arguments are the parameters of the workload that is being planned.
type arguments struct {
	workload *Workload
	used     map[string]bool // name -> an operation asked for it
}

// argument is the value of a reference such as $initNodes. While a file is loaded there are no values yet: the reference
// is judged, and the second result is false.
func (r *reading) argument(reference string, line int) (any, bool) {
	name, isReference := strings.CutPrefix(reference, "$")
	if !isReference || name == "" {
		r.mistake(line, "%q is no parameter: one is written $name", reference)
		return nil, false
	}
	if r.args == nil {
		return nil, false
	}
	v, given := r.args.lookup(name)
	if !given {
		r.mistake(line, "parameter %s has no value in workload %s (line %d)", name, r.args.workload.Name, r.args.workload.Line)
	}
	return v, given
}

// lookup is the value of a parameter, which counts as used.
func (a *arguments) lookup(name string) (any, bool) {
	a.used[name] = true
	p, given := a.workload.Params[name]
	return p.Value, given
}

// argumentOr is argument for a reference such as $name|default. The default is YAML; empty means null.
func (r *reading) argumentOr(reference string, line int) (any, bool) {
	reference, text, has := strings.Cut(reference, "|")
	if !has || reference == "$" {
		return r.argument(reference, line)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		_, what := yamlMistake(err)
		r.mistake(line, "the default of parameter %s: %s", reference[1:], what)
		return nil, false
	}
	var missing any
	if len(doc.Content) > 0 {
		doc.Content[0].Line = line
		var ok bool
		if missing, ok = r.anything(doc.Content[0]); !ok {
			return nil, false
		}
	}
	if r.args == nil {
		return nil, false
	}
	if v, given := r.args.lookup(reference[1:]); given {
		return v, true
	}
	return missing, true
}

// unused reports the parameters that no operation asked for: most are spelled wrong.
func (r *reading) unused() {
	w := r.args.workload
	var names []string
	for name := range w.Params {
		if !r.args.used[name] {
			names = append(names, name)
		}
	}
	sort.Slice(names, func(i, j int) bool { return w.Params[names[i]].Line < w.Params[names[j]].Line })
	for _, name := range names {
		r.mistake(w.Params[name].Line, "workload %s: no operation uses parameter %s", w.Name, name)
	}
}

// params reads the parameters of a workload.
func (m *mapping) params(name string) map[string]Param {
	out := map[string]Param{} // name -> value
	m.each(name, func(key string, line int, value *yaml.Node) {
		if v, ok := m.in.anything(value); ok {
			out[key] = Param{Value: v, Line: line}
		}
	})
	return out
}

// templateParams reads what an operation hands to its template beside Index and Count. A value $name is a parameter;
// $name|default is one that a workload may leave out.
func (m *mapping) templateParams() map[string]any {
	var out map[string]any // name in the template -> value
	m.each("templateParams", func(key string, line int, value *yaml.Node) {
		if key == "Index" || key == "Count" {
			m.in.mistake(line, "templateParams: %s is always there", key)
			return
		}
		v, ok := m.in.anything(value)
		if text, isText := v.(string); ok && isText && strings.HasPrefix(text, "$") {
			v, ok = m.in.argumentOr(text, value.Line)
		}
		if ok {
			if out == nil {
				out = map[string]any{}
			}
			out[key] = v
		}
	})
	return out
}
