// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	kjson "sigs.k8s.io/json"

	"github.com/kumiki-scheduler/kumiki/sim"
)

// Problem is something wrong in a scenario file.
type Problem struct {
	Line, Column int
	What         string
}

// Error returns the place and the problem.
func (p Problem) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, p.What)
}

// Share is a number from 0 to 1, which a file may give in percent.
type Share float64

// decoder fills values from nodes of YAML, and collects problems.
type decoder struct{ problems []error }

func (d *decoder) problem(n *yaml.Node, format string, a ...any) {
	d.problems = append(d.problems, Problem{n.Line, n.Column, fmt.Sprintf(format, a...)})
}

// value fills one value of any type that files have.
func (d *decoder) value(n *yaml.Node, path string, into reflect.Value) {
	if n.Kind == yaml.AliasNode {
		d.problem(n, "%s: aliases are not supported", path)
		return
	}
	if d.special(n, path, into) {
		return
	}
	switch into.Kind() {
	case reflect.Struct:
		d.object(n, path, into)
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		d.value(n, path, into.Elem())
	case reflect.Slice:
		d.list(n, path, into)
	case reflect.Map:
		d.strings(n, path, into)
	default:
		d.scalar(n, path, into)
	}
}

// special fills values of types with a form of their own, and reports whether the type is one.
func (d *decoder) special(n *yaml.Node, path string, into reflect.Value) bool {
	var err error
	switch into.Interface().(type) {
	case time.Duration:
		var v time.Duration
		if v, err = duration(n.Value); err == nil {
			into.SetInt(int64(v))
		}
	case sim.Durations:
		var v sim.Durations
		if v, err = durations(n.Value); err == nil {
			into.Set(reflect.ValueOf(v))
		}
	case Share:
		var v float64
		if v, err = share(n.Value); err == nil {
			into.SetFloat(v)
		}
	case apiresource.Quantity:
		var v apiresource.Quantity
		if v, err = amount(n.Value); err == nil {
			into.Set(reflect.ValueOf(v))
		}
	case Tail:
		var v Tail
		if v, err = tail(n.Value); err == nil {
			into.Set(reflect.ValueOf(v))
		}
	case v1.ResourceList:
		d.amounts(n, path, into)
		return true
	case v1.PodSpec, v1.Taint:
		d.api(n, path, into)
		return true
	default:
		return false
	}
	if n.Kind != yaml.ScalarNode {
		err = errors.New("must be a single value")
	}
	if err != nil {
		d.problem(n, "%s: %v", path, err)
	}
	return true
}

// object fills a struct by the names in its yaml tags.
func (d *decoder) object(n *yaml.Node, path string, into reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.problem(n, "%s: must be a mapping", cmpPath(path))
		return
	}
	fields := map[string]int{} // name in files -> index of the field
	var names []string
	for i := range into.NumField() {
		if name := into.Type().Field(i).Tag.Get("yaml"); name != "" {
			fields[name] = i
			names = append(names, name)
		}
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at, known := fields[key.Value]
		switch {
		case !known:
			d.problem(key, "%s: unknown field %q; known are %s", cmpPath(path), key.Value, strings.Join(names, ", "))
			continue
		case seen[key.Value]:
			d.problem(key, "%s: field %q is there twice", cmpPath(path), key.Value)
			continue
		}
		seen[key.Value] = true
		d.value(value, join(path, key.Value), into.Field(at))
	}
}

func cmpPath(path string) string {
	if path == "" {
		return "the file"
	}
	return path
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (d *decoder) list(n *yaml.Node, path string, into reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.problem(n, "%s: must be a list", path)
		return
	}
	out := reflect.MakeSlice(into.Type(), len(n.Content), len(n.Content))
	for i, c := range n.Content {
		d.value(c, fmt.Sprintf("%s[%d]", path, i), out.Index(i))
		if at := out.Index(i); at.Kind() == reflect.Struct {
			if f := at.FieldByName("At_"); f.IsValid() {
				f.Set(reflect.ValueOf(position{c.Line, c.Column}))
			}
		}
	}
	into.Set(out)
}

// position is where an entry of a list is in the file.
type position struct{ line, column int }

func (p position) problem(format string, a ...any) error {
	return Problem{p.line, p.column, fmt.Sprintf(format, a...)}
}

func (d *decoder) strings(n *yaml.Node, path string, into reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.problem(n, "%s: must be a mapping", path)
		return
	}
	out := map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i+1].Kind != yaml.ScalarNode {
			d.problem(n.Content[i+1], "%s.%s: must be a single value", path, n.Content[i].Value)
			continue
		}
		out[n.Content[i].Value] = n.Content[i+1].Value
	}
	into.Set(reflect.ValueOf(out))
}

func (d *decoder) amounts(n *yaml.Node, path string, into reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.problem(n, "%s: must be a mapping of resources to amounts", path)
		return
	}
	out := v1.ResourceList{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		q, err := amount(value.Value)
		if err != nil {
			d.problem(value, "%s.%s: %v", path, key.Value, err)
			continue
		}
		out[v1.ResourceName(key.Value)] = q
	}
	into.Set(reflect.ValueOf(out))
}

// amount parses an amount that is not negative.
func amount(text string) (apiresource.Quantity, error) {
	q, err := apiresource.ParseQuantity(text)
	if err == nil && q.Sign() < 0 {
		err = errors.New("must not be negative")
	}
	if err != nil {
		return q, fmt.Errorf("%q is no amount: %w", text, err)
	}
	return q, nil
}

// api fills a type of the Kubernetes API, strictly.
func (d *decoder) api(n *yaml.Node, path string, into reflect.Value) {
	var plain any
	if err := n.Decode(&plain); err != nil {
		d.problem(n, "%s: %v", path, err)
		return
	}
	text, err := json.Marshal(plain)
	if err != nil {
		d.problem(n, "%s: %v", path, err)
		return
	}
	unknown, err := kjson.UnmarshalStrict(text, into.Addr().Interface())
	for _, e := range append(unknown, err) {
		if e != nil {
			d.problem(n, "%s: %v", path, e)
		}
	}
}

func (d *decoder) scalar(n *yaml.Node, path string, into reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		d.problem(n, "%s: must be a single value", path)
		return
	}
	var err error
	switch into.Kind() {
	case reflect.String:
		into.SetString(n.Value)
	case reflect.Bool:
		var v bool
		if v, err = strconv.ParseBool(n.Value); err == nil {
			into.SetBool(v)
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		var v int64
		if v, err = strconv.ParseInt(n.Value, 10, into.Type().Bits()); err == nil {
			into.SetInt(v)
		}
	default:
		err = fmt.Errorf("type %v is not supported", into.Type())
	}
	if err != nil {
		d.problem(n, "%s: %q is no %v", path, n.Value, into.Kind())
	}
}

// duration parses a duration that is not negative.
func duration(text string) (time.Duration, error) {
	v, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is no duration, such as 90s or 1h30m", text)
	}
	if v < 0 {
		return 0, fmt.Errorf("%q is negative", text)
	}
	return v, nil
}

const durationForms = "a duration, uniform A B, exponential MEAN [max B], pareto MIN ALPHA [max B], or " +
	"quantiles with 9 durations"

// durations parses a distribution of durations.
func durations(text string) (out sim.Durations, err error) {
	words := strings.Fields(text)
	bad := fmt.Errorf("%q is none of: %s", text, durationForms)
	if n := len(words); n > 2 && words[n-2] == "max" {
		if out.B, err = duration(words[n-1]); err != nil {
			return out, err
		}
		words = words[:n-2]
		if words[0] != "exponential" && words[0] != "pareto" {
			return out, bad
		}
	}
	want := map[string]int{ // form -> words
		"uniform": 3, "exponential": 2, "pareto": 3, "quantiles": 1 + len(sim.Levels)}
	if len(words) == 0 {
		return out, bad
	}
	first := words[0]
	if n, is := want[first]; is && n != len(words) || !is && len(words) != 1 {
		return out, bad
	}
	if len(words) == 1 {
		out.A, err = duration(first)
		return out, err
	}
	if first == "quantiles" {
		return quantiles(words[1:])
	}
	if out.A, err = duration(words[1]); err != nil {
		return out, err
	}
	switch first {
	case "uniform":
		out.Shape = sim.Uniform
		if out.B, err = duration(words[2]); err == nil && out.B < out.A {
			err = fmt.Errorf("%q: the second duration is the shorter one", text)
		}
	case "exponential":
		out.Shape = sim.Exponential
	case "pareto":
		out.Shape = sim.Pareto
		out.Alpha, err = strconv.ParseFloat(words[2], 64)
		if err != nil || !(out.Alpha > 0) || math.IsInf(out.Alpha, 0) {
			err = fmt.Errorf("%q: %q is no positive number", text, words[2])
		}
	}
	return out, err
}

// quantiles parses the quantiles of a distribution.
func quantiles(words []string) (out sim.Durations, err error) {
	out.Shape = sim.Quantiles
	for i, w := range words {
		if out.Steps[i], err = duration(w); err != nil {
			return out, err
		}
		if i > 0 && out.Steps[i] < out.Steps[i-1] {
			return out, fmt.Errorf("quantiles: %s comes after %s", w, words[i-1])
		}
	}
	return out, nil
}

// share parses a share, as 0.05 or 5%.
func share(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, fmt.Errorf("%q is no share, such as 0.05 or 5%%", text)
	}
	return v, nil
}

// parse fills a value from the one document of a text.
func parse(text []byte, into any) error {
	var root yaml.Node
	dec := yaml.NewDecoder(strings.NewReader(string(text)))
	if err := dec.Decode(&root); err != nil {
		return fmt.Errorf("reading YAML: %w", err)
	}
	var d decoder
	var more yaml.Node
	if err := dec.Decode(&more); err == nil {
		d.problem(&more, "a scenario is one document")
	}
	if len(root.Content) == 1 {
		d.value(root.Content[0], "", reflect.ValueOf(into).Elem())
	}
	return joined(d.problems)
}

// joined joins problems in the order of the file.
func joined(list []error) error {
	slices.SortStableFunc(list, func(a, b error) int {
		var x, y Problem
		errors.As(a, &x)
		errors.As(b, &y)
		if x.Line != y.Line {
			return x.Line - y.Line
		}
		return x.Column - y.Column
	})
	return errors.Join(list...)
}
