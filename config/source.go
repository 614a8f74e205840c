// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// source is the text of a configuration file, kept to find the line of a field.
type source struct {
	root *yaml.Node // nil when there is no text
}

// step is one part of a path: a key, or the index of a list.
type step struct {
	key   string
	index int // -1 for a key
}

// steps splits a path such as profiles[0].plugins.score.enabled[1].name.
func steps(path string) []step {
	var out []step
	for part := range strings.SplitSeq(path, ".") {
		key, rest, _ := strings.Cut(part, "[")
		if key != "" {
			out = append(out, step{key, -1})
		}
		for rest != "" {
			var number string
			number, rest, _ = strings.Cut(rest, "]")
			if i, err := strconv.Atoi(number); err == nil {
				out = append(out, step{"", i})
			}
			rest = strings.TrimPrefix(rest, "[")
		}
	}
	return out
}

// line returns the line of a path, or of as much of it as the file has; 0 if unknown.
func (s source) line(path string) int {
	line, _ := s.position(path)
	return line
}

// position is line, with the column.
func (s source) position(path string) (line, column int) {
	if s.root == nil || path == "" {
		return 0, 0
	}
	node := s.root
	for _, st := range steps(path) {
		at, child := find(node, st)
		if child == nil {
			break
		}
		node, line, column = child, at.Line, at.Column
	}
	return line, column
}

// find returns the child of a node and what names it: the key, or the child itself in a list.
func find(node *yaml.Node, st step) (at, child *yaml.Node) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch {
	case node.Kind == yaml.MappingNode && st.index < 0:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == st.key {
				return node.Content[i], node.Content[i+1]
			}
		}
	case node.Kind == yaml.SequenceNode && st.index >= 0 && st.index < len(node.Content):
		child := node.Content[st.index]
		return child, child
	}
	return nil, nil
}

// pathOf finds the path of the first scalar with this text, for errors without a position.
func (s source) pathOf(text string) string {
	var search func(node *yaml.Node, path string) string
	search = func(node *yaml.Node, path string) string {
		switch node.Kind {
		case yaml.ScalarNode:
			if node.Value == text {
				return path
			}
		case yaml.MappingNode:
			for i := 0; i+1 < len(node.Content); i += 2 {
				if p := search(node.Content[i+1], join(path, node.Content[i].Value)); p != "" {
					return p
				}
			}
		case yaml.SequenceNode:
			for i, child := range node.Content {
				if p := search(child, path+"["+strconv.Itoa(i)+"]"); p != "" {
					return p
				}
			}
		}
		return ""
	}
	if s.root == nil {
		return ""
	}
	return search(s.root, "")
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// pathAt returns the path of the value that ends at or contains a byte of a JSON text.
func pathAt(text []byte, offset int64) string {
	type level struct {
		list  bool
		index int
		key   string
		// value is true in an object if its next token is a value.
		value bool
	}
	var stack []level
	where := func() string {
		path := ""
		for _, l := range stack {
			switch {
			case l.list:
				path += "[" + strconv.Itoa(l.index) + "]"
			case l.key != "":
				path = join(path, l.key)
			}
		}
		return path
	}
	advance := func() {
		if len(stack) == 0 {
			return
		}
		top := &stack[len(stack)-1]
		if top.list {
			top.index++
		}
		top.value = false
	}
	d := json.NewDecoder(bytes.NewReader(text))
	for {
		token, err := d.Token()
		if err != nil {
			return ""
		}
		var top *level
		if len(stack) > 0 {
			top = &stack[len(stack)-1]
		}
		delim, isDelim := token.(json.Delim)
		switch {
		case isDelim && (delim == '}' || delim == ']'):
			stack = stack[:len(stack)-1]
			advance()
			continue
		case top != nil && !top.list && !top.value:
			top.key, _ = token.(string)
			top.value = true
			continue
		}
		if d.InputOffset() >= offset {
			return where()
		}
		if isDelim {
			stack = append(stack, level{list: delim == '['})
			continue
		}
		advance()
	}
}
