// SPDX-License-Identifier: Apache-2.0

package config

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:embed schema.json
var schema []byte

// Schema is a JSON schema (draft 7) of configuration files, for editors. conformance/config generates it from
// upstream's types and ours.
func Schema() []byte { return schema }

// Schema returns the JSON schema of configuration files whose profiles may enable the custom plugins. It has the name
// of each custom plugin at its extension points, and the default arguments of those that take arguments.
func (c Catalog) Schema() ([]byte, error) {
	if len(c.custom) == 0 {
		return schema, nil
	}
	var out schemaObject
	if err := json.Unmarshal(schema, &out); err != nil {
		return nil, fmt.Errorf("reading the schema of the default plugins: %w", err)
	}
	for _, at := range append([]Point{MultiPoint}, points...) {
		names := c.pluginsAt(at)
		if len(names) == len(PluginsAt(at)) {
			continue
		}
		set := out.at("definitions", "Plugins", "properties", string(at), "properties", "enabled")
		set["items"] = schemaObject{"allOf": []any{schemaObject{"$ref": "#/definitions/Plugin"}, named("enum", names)}}
	}
	entry := out.at("definitions", "PluginConfig")
	entry.at("properties")["name"] = schemaObject{"enum": append(c.Plugins(), Kumiki)}
	for _, p := range c.custom {
		if p.DefaultArgs == nil {
			continue
		}
		when := named("const", p.Name)
		when["required"] = []string{"name"}
		args := schemaObject{"type": []string{"object", "null"}, "default": p.DefaultArgs(),
			"description": "arguments of the custom plugin " + p.Name}
		entry["allOf"] = append(entry["allOf"].([]any),
			schemaObject{"if": when, "then": schemaObject{"properties": schemaObject{"args": args}}})
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the schema with custom plugins: %w", err)
	}
	return append(text, '\n'), nil
}

// schemaObject is an object of a JSON schema.
type schemaObject map[string]any

// at returns the object at a path of keys. It panics if there is none.
func (o schemaObject) at(path ...string) schemaObject {
	for _, key := range path {
		o = o[key].(map[string]any)
	}
	return o
}

// named returns a schema that holds objects by their name.
func named(keyword string, names any) schemaObject {
	return schemaObject{"properties": schemaObject{"name": schemaObject{keyword: names}}}
}

// pluginsAt returns the plugins that a profile can enable at a point, custom ones last.
func (c Catalog) pluginsAt(at Point) []string {
	names := PluginsAt(at)
	for _, p := range c.custom {
		if d, _ := c.describe(p.Name); at == MultiPoint || d.runsAt(at) {
			names = append(names, p.Name)
		}
	}
	return names
}
