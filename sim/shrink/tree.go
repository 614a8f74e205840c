// SPDX-License-Identifier: Apache-2.0

package shrink

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Keys are what YAML keeps and what it counts.
type Keys struct {
	// Keep are the keys whose values stay as they are.
	Keep []string
	// Count are the keys whose values are numbers that may become smaller, down to 1.
	Count []string
}

// YAML returns a smaller text of a YAML document for which holds is true: without entries of lists and fields of
// mappings, and with smaller counts. holds must be true for the text.
func YAML(text []byte, keys Keys, holds func([]byte) bool) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("reading YAML: %w", err)
	}
	s := &tree{doc: &doc, keys: keys, holds: holds, tried: map[string]bool{}}
	best, err := s.text()
	if err != nil {
		return nil, err
	}
	if !holds(best) { // comments and order are kept, so this is a property that depends on the layout
		return text, nil
	}
	for {
		if err := s.node(&doc); err != nil {
			return nil, err
		}
		now, err := s.text()
		if err != nil {
			return nil, err
		}
		if bytes.Equal(now, best) {
			return best, nil
		}
		best = now
	}
}

// tree is a document that is made smaller.
type tree struct {
	doc   *yaml.Node
	keys  Keys
	holds func([]byte) bool
	tried map[string]bool // text -> whether it holds
}

func (s *tree) text() ([]byte, error) {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(s.doc); err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	return out.Bytes(), enc.Close()
}

// still reports whether the document holds as it is now.
func (s *tree) still() bool {
	text, err := s.text()
	if err != nil {
		return false
	}
	is, known := s.tried[string(text)]
	if !known {
		is = s.holds(text)
		s.tried[string(text)] = is
	}
	return is
}

// node makes what is below a node smaller: first lists, which remove most.
func (s *tree) node(n *yaml.Node) error {
	switch n.Kind {
	case yaml.DocumentNode:
		return s.node(n.Content[0])
	case yaml.SequenceNode:
		n.Content = s.entries(n, n.Content)
		for _, c := range n.Content {
			if err := s.node(c); err != nil {
				return err
			}
		}
	case yaml.MappingNode:
		return s.mapping(n)
	}
	return nil
}

// entries returns the entries of a list that are needed.
func (s *tree) entries(n *yaml.Node, all []*yaml.Node) []*yaml.Node {
	left := List(all, func(part []*yaml.Node) bool {
		n.Content = part
		return s.still()
	})
	n.Content = left
	return left
}

// mapping makes the values of a mapping smaller, and removes fields.
func (s *tree) mapping(n *yaml.Node) error {
	order := make([]int, 0, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int { // lists first
		return lists(n.Content[b+1]) - lists(n.Content[a+1])
	})
	for _, i := range order {
		key, value := n.Content[i], n.Content[i+1]
		if slices.Contains(s.keys.Keep, key.Value) {
			continue
		}
		if slices.Contains(s.keys.Count, key.Value) && value.Kind == yaml.ScalarNode {
			s.number(value)
			continue
		}
		if err := s.node(value); err != nil {
			return err
		}
	}
	var fields [][]*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		fields = append(fields, n.Content[i:i+2])
	}
	whole := n.Content
	left := make([]*yaml.Node, 0, len(whole))
	for k, f := range fields {
		if !slices.Contains(s.keys.Keep, f[0].Value) {
			n.Content = slices.Concat(left, slices.Concat(fields[k+1:]...))
			if s.still() {
				continue
			}
		}
		left = append(left, f...)
	}
	n.Content = left
	return nil
}

func lists(n *yaml.Node) int {
	if n.Kind == yaml.SequenceNode {
		return 1
	}
	return 0
}

// number makes a count smaller.
func (s *tree) number(n *yaml.Node) {
	was, err := strconv.Atoi(n.Value)
	if err != nil {
		return
	}
	n.Value = strconv.Itoa(Number(1, was, func(v int) bool {
		n.Value = strconv.Itoa(v)
		return s.still()
	}))
}

// Set returns a YAML mapping with a field that has another value.
func Set(text []byte, key string, value any) ([]byte, error) {
	var doc, what yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("reading YAML: %w", err)
	}
	if err := what.Encode(value); err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("setting %s: the text is no mapping", key)
	}
	root := doc.Content[0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == key {
			root.Content = slices.Delete(root.Content, i, i+2)
			break
		}
	}
	root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, &what)
	s := tree{doc: &doc}
	return s.text()
}
