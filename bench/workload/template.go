// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"text/template"
)

// Manifest is a template that was parsed, to be rendered once for each object.
type Manifest struct {
	parsed *template.Template
	params map[string]any // name -> value, as in Template
}

// Parse reads the text of a template once for many objects. As in scheduler_perf, a template can ask whether a
// parameter is given: {{if .priority}}, {{or .size 3}}.
func (t *Template) Parse() (*Manifest, error) {
	parsed, err := template.New(t.Path).Funcs(functions).Parse(t.Text)
	if err != nil {
		return nil, err
	}
	return &Manifest{parsed: parsed, params: t.Params}, nil
}

// Render is the YAML of object index of count.
func (m *Manifest) Render(index, count int) ([]byte, error) {
	with := make(map[string]any, len(m.params)+2) // what the template may name -> value
	maps.Copy(with, m.params)
	with["Index"], with["Count"] = index, count
	var out manifestText
	if err := m.parsed.Execute(&out, with); err != nil {
		return nil, err
	}
	// A name that the template spells wrong must not become <no value> in an object.
	for i, line := range strings.Split(out.String(), "\n") {
		if strings.Contains(line, "<no value>") {
			return nil, fmt.Errorf("template: %s:%d: a parameter has no value: %s",
				m.parsed.Name(), i+1, strings.TrimSpace(line))
		}
	}
	return out.Bytes(), nil
}

// maxObject is the size of the largest object that is rendered, in bytes; an API server accepts less.
const maxObject = 4 << 20

// manifestText receives a rendered object.
type manifestText struct{ bytes.Buffer }

// Write fails if the object becomes larger than maxObject, which ends the template.
func (m *manifestText) Write(p []byte) (int, error) {
	if m.Len()+len(p) > maxObject {
		return 0, fmt.Errorf("the object is larger than %d MiB", maxObject>>20)
	}
	return m.Buffer.Write(p)
}

// functions are those of upstream's templates (scheduler_perf, operations.go): arithmetic over anything that reads as a
// number; those that end in Int cut the fraction off. JSON writes a list or a mapping into a manifest.
var functions = template.FuncMap{
	"AddFloat": func(terms ...any) (float64, error) {
		return fold(0, func(a, b float64) float64 { return a + b }, terms)
	},
	"AddInt": func(terms ...any) (int, error) {
		return whole(fold(0, func(a, b float64) float64 { return a + b }, terms))
	},
	"MultiplyFloat": func(terms ...any) (float64, error) {
		return fold(1, func(a, b float64) float64 { return a * b }, terms)
	},
	"MultiplyInt": func(terms ...any) (int, error) {
		return whole(fold(1, func(a, b float64) float64 { return a * b }, terms))
	},
	"SubtractFloat": func(a, b any) (float64, error) { return pair(a, b, minus) },
	"SubtractInt":   func(a, b any) (int, error) { return whole(pair(a, b, minus)) },
	"DivideFloat":   func(a, b any) (float64, error) { return pair(a, b, divide) },
	"DivideInt":     func(a, b any) (int, error) { return whole(pair(a, b, divide)) },
	"Int":           toInt,
	"JSON":          toJSON,
	"Mod":           func(a, b any) (int, error) { return whole(pair(a, b, modulo)) },
}

func fold(start float64, join func(a, b float64) float64, terms []any) (float64, error) {
	for _, term := range terms {
		n, err := toNumber(term)
		if err != nil {
			return 0, err
		}
		start = join(start, n)
	}
	return start, nil
}

func pair(a, b any, do func(a, b float64) (float64, error)) (float64, error) {
	x, err := toNumber(a)
	if err != nil {
		return 0, err
	}
	y, err := toNumber(b)
	if err != nil {
		return 0, err
	}
	return do(x, y)
}

func minus(a, b float64) (float64, error) { return a - b, nil }

func divide(a, b float64) (float64, error) {
	if b == 0 {
		return 0, fmt.Errorf("%v divided by 0", a)
	}
	return a / b, nil
}

func modulo(a, b float64) (float64, error) {
	if int(b) == 0 {
		return 0, fmt.Errorf("%v modulo 0", a)
	}
	return float64(int(a) % int(b)), nil
}

func whole(n float64, err error) (int, error) { return int(n), err }

// toInt is a whole number; a string must be written as one.
func toInt(v any) (int, error) {
	if text, isText := v.(string); isText {
		n, err := strconv.Atoi(text)
		if err != nil {
			return 0, fmt.Errorf("%q is no whole number", text)
		}
		return n, nil
	}
	return whole(toNumber(v))
}

// toJSON is a value on one line of JSON, which is YAML too.
func toJSON(v any) (string, error) {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return strings.TrimSpace(out.String()), err
}

func toNumber(v any) (float64, error) {
	switch n := v.(type) {
	case int:
		return float64(n), nil
	case float64:
		return n, nil
	case string:
		if f, err := strconv.ParseFloat(n, 64); err == nil {
			return f, nil
		}
	}
	return 0, fmt.Errorf("%v is no number", v)
}
