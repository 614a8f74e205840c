// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// checker checks values against the part of JSON schema (draft 7) that Schema uses.
type checker struct{ definitions object }

// find is where and why a value is not valid; empty when it is.
func (c checker) find(schema object, value any, path string) string {
	for keyword, rule := range schema { // order: which fault is reported first does not matter
		if wrong := c.rule(keyword, rule, schema, value, path); wrong != "" {
			return wrong
		}
	}
	return ""
}

func (c checker) rule(keyword string, rule any, schema object, value any, path string) string {
	fail := func() string { return fmt.Sprintf("%s: %v breaks %s %v", path, value, keyword, rule) }
	number, isNumber := value.(float64)
	switch keyword {
	case "$ref":
		return c.find(c.definitions[strings.TrimPrefix(rule.(string), "#/definitions/")].(object), value, path)
	case "type":
		if types, many := rule.([]any); !slices.ContainsFunc(append(types, rule), func(t any) bool { return isA(value, t) }) || !many && !isA(value, rule) {
			return fail()
		}
	case "const":
		if !reflect.DeepEqual(value, rule) {
			return fail()
		}
	case "enum":
		if !slices.ContainsFunc(rule.([]any), func(v any) bool { return reflect.DeepEqual(v, value) }) {
			return fail()
		}
	case "minimum":
		if isNumber && number < rule.(float64) {
			return fail()
		}
	case "maximum":
		if isNumber && number > rule.(float64) {
			return fail()
		}
	case "pattern":
		if text, ok := value.(string); ok && !regexp.MustCompile(rule.(string)).MatchString(text) {
			return fail()
		}
	case "not":
		if c.find(rule.(object), value, path) == "" {
			return fail()
		}
	case "allOf":
		for _, part := range rule.([]any) {
			if wrong := c.find(part.(object), value, path); wrong != "" {
				return wrong
			}
		}
	case "if":
		if c.find(rule.(object), value, path) == "" {
			return c.find(schema["then"].(object), value, path)
		}
	case "required", "properties", "additionalProperties":
		return c.members(keyword, rule, schema, value, path)
	case "items":
		items, _ := value.([]any)
		for i, item := range items {
			if wrong := c.find(rule.(object), item, fmt.Sprintf("%s[%d]", path, i)); wrong != "" {
				return wrong
			}
		}
	case "then", "$schema", "title", "description", "definitions", "contentEncoding":
	default:
		panic("the checker does not know the keyword " + keyword)
	}
	return ""
}

// members checks the rules about an object's fields.
func (c checker) members(keyword string, rule any, schema object, value any, path string) string {
	o, ok := value.(object)
	if !ok {
		return ""
	}
	properties, _ := schema["properties"].(object)
	switch keyword {
	case "required":
		for _, name := range rule.([]any) {
			if _, there := o[name.(string)]; !there {
				return fmt.Sprintf("%s: %s is missing", path, name)
			}
		}
	case "properties":
		for name, s := range properties { // order: as above
			if v, there := o[name]; there {
				if wrong := c.find(s.(object), v, path+"."+name); wrong != "" {
					return wrong
				}
			}
		}
	case "additionalProperties":
		for name, v := range o { // order: as above
			if properties[name] != nil {
				continue
			}
			if of, is := rule.(object); !is {
				return fmt.Sprintf("%s: %s is unknown", path, name)
			} else if wrong := c.find(of, v, path+"."+name); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

// isA reports whether a value is of a type of JSON schema.
func isA(value, name any) bool {
	switch v := value.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case float64:
		return name == "number" || name == "integer" && v == math.Trunc(v)
	case []any:
		return name == "array"
	case object:
		return name == "object"
	}
	return false
}

func TestTheCheckerFindsFaults(t *testing.T) {
	schema := object{"type": []any{"object", "null"}, "additionalProperties": false, "required": []any{"a"}, "properties": object{
		"a": object{"type": "integer", "minimum": 1.0, "maximum": 9.0}, "b": object{"items": object{"enum": []any{"x"}}},
		"c": object{"if": object{"const": "yes"}, "then": object{"not": object{}}, "pattern": "^y"}}}
	for _, tt := range []struct {
		value any
		good  bool
	}{
		{object{"a": 1.0}, true}, {object{"a": 1.5}, false}, {object{"a": 0.0}, false}, {object{"a": 10.0}, false}, {object{}, false}, {nil, true}, {"x", false},
		{object{"a": 1.0, "b": []any{"x"}}, true}, {object{"a": 1.0, "b": []any{"y"}}, false}, {object{"a": 1.0, "d": 1.0}, false},
		{object{"a": 1.0, "c": "yes"}, false}, {object{"a": 1.0, "c": "yo"}, true}, {object{"a": 1.0, "c": "no"}, false},
	} {
		if wrong := (checker{}).find(schema, tt.value, ""); (wrong == "") != tt.good {
			t.Errorf("%v: %q", tt.value, wrong)
		}
	}
}
