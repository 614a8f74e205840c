// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
	configv1 "k8s.io/kube-scheduler/config/v1"
	kjson "sigs.k8s.io/json"
	kyaml "sigs.k8s.io/yaml"
)

// The kind of file that Parse reads.
const (
	apiVersion = "kubescheduler.config.k8s.io/v1"
	kind       = "KubeSchedulerConfiguration"
)

// Read reads a configuration file without custom plugins.
func Read(path string) (Resolved, error) {
	return Catalog{}.Read(path)
}

// Parse reads the text of a configuration file without custom plugins, YAML or JSON. Every problem that it finds is in
// the error, an *Error.
func Parse(text []byte) (Resolved, error) {
	return Catalog{}.Parse(text)
}

// Default returns the configuration without a file.
func Default() Resolved { return Catalog{}.Default() }

// Default returns the configuration without a file.
func (c Catalog) Default() Resolved {
	r := &report{catalog: c}
	resolved := r.resolve(&configv1.KubeSchedulerConfiguration{})
	if err := r.err(); err != nil {
		panic(fmt.Sprintf("config: the default configuration is wrong: %v", err))
	}
	return resolved
}

// decode reads the wire form. It continues after errors, so that one run shows every unknown field.
func (r *report) decode(text []byte) (*configv1.KubeSchedulerConfiguration, bool) {
	root, err := document(text)
	if err != nil {
		r.yamlError(err)
		return nil, false
	}
	r.source.root = root
	asJSON, err := kyaml.YAMLToJSONStrict(text)
	if err != nil {
		r.yamlError(err)
		if asJSON, err = kyaml.YAMLToJSON(text); err != nil { // more than duplicate keys
			return nil, false
		}
	}
	wire := &configv1.KubeSchedulerConfiguration{}
	if !r.unmarshal(asJSON, "", wire) {
		return nil, false
	}
	if wire.APIVersion != apiVersion || wire.Kind != kind {
		r.add("apiVersion", "the file must say apiVersion: %s and kind: %s, it says %q and %q",
			apiVersion, kind, wire.APIVersion, wire.Kind)
		return nil, false
	}
	return wire, true
}

// document parses the one YAML document of a text.
func document(text []byte) (*yaml.Node, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc, second yaml.Node
	if err := d.Decode(&doc); errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0 {
		return nil, errors.New("the file is empty")
	} else if err != nil {
		return nil, err
	}
	if err := d.Decode(&second); err == nil {
		return nil, fmt.Errorf("line %d: a second document begins; the file must hold one", second.Line)
	}
	return doc.Content[0], nil
}

var yamlLine = regexp.MustCompile(`line (\d+): (.*)`)

// yamlError adds an error of a YAML parser, which begins with a line number if it is known.
func (r *report) yamlError(err error) {
	message := err.Error()
	for _, prefix := range []string{"error converting YAML to JSON: ", "yaml: ", "unmarshal errors:"} {
		message = strings.TrimSpace(strings.TrimPrefix(message, prefix))
	}
	found := false
	for _, m := range yamlLine.FindAllStringSubmatch(message, -1) {
		var line int
		fmt.Sscan(m[1], &line)
		r.problems = append(r.problems, Problem{Line: line, Message: m[2]})
		found = true
	}
	if !found {
		r.add("", "%s", message)
	}
}

// unmarshal fills out from the JSON at path in the file, and reports whether out can be used.
func (r *report) unmarshal(text []byte, path string, out any) bool {
	strict, err := kjson.UnmarshalStrict(text, out)
	if err != nil {
		r.typeError(text, path, out, err)
		return false
	}
	for _, e := range strict {
		var fe kjson.FieldError
		if errors.As(e, &fe) {
			r.unknownField(path, fe)
			continue
		}
		r.add(path, "%v", e)
	}
	return true
}

// removedFields are fields that our settings had: path below args -> the error for a file that has one.
var removedFields = map[string]string{
	"gangs.style": "was removed: kumiki always places a gang in one decision, which was style transaction; delete " +
		"the field. 'kumiki bench gangs' compares the other styles (docs/gangs-compared.md)",
}

// unknownField reports a field that the type does not have, or a duplicate.
func (r *report) unknownField(path string, fe kjson.FieldError) {
	at := strings.TrimPrefix(fe.FieldPath(), ".")
	if path != "" {
		at = path + "." + at
	}
	message := "unknown field"
	if strings.HasPrefix(fe.Error(), "duplicate") {
		message = "duplicate field"
	} else if _, args, ours := strings.Cut(at, "].args."); ours && removedFields[args] != "" {
		message = removedFields[args]
	}
	r.add(at, "%s", message)
}

// typeError reports where a value has the wrong type. The decoder of encoding/json knows the position.
func (r *report) typeError(text []byte, path string, out any, err error) {
	var te *json.UnmarshalTypeError
	if e := json.Unmarshal(text, out); errors.As(e, &te) {
		at := pathAt(text, te.Offset)
		if path != "" {
			at = strings.TrimSuffix(path+"."+at, ".")
		}
		r.add(at, "want %s, got %s", typeName(te.Type.String()), te.Value)
		return
	}
	// Types that decode themselves, such as durations, quote the invalid text.
	if _, quoted, ok := strings.Cut(err.Error(), `"`); ok {
		text, _, _ := strings.Cut(quoted, `"`)
		r.add(r.source.pathOf(text), "%v", err)
		return
	}
	r.add(path, "%v", err)
}

// typeName returns a Go type in the terms of a configuration file.
func typeName(goType string) string {
	goType = strings.TrimPrefix(goType, "*")
	switch {
	case strings.HasPrefix(goType, "int"), strings.HasPrefix(goType, "uint"):
		return "a whole number"
	case strings.HasPrefix(goType, "float"):
		return "a number"
	case goType == "bool":
		return "true or false"
	case goType == "string":
		return "a string"
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	}
	return "an object (" + goType[strings.LastIndex(goType, ".")+1:] + ")"
}
