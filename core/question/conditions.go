// SPDX-License-Identifier: Apache-2.0

package question

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kumiki-scheduler/kumiki/record"
)

// The limits of one question, which is answered between two steps of the scheduling loop.
const (
	MaxConditions    = 32
	MaxAddedNodes    = 5000
	maxConditionSize = 1024 // bytes
)

// ConditionForms are the conditions that a question may state, for help texts and errors.
var ConditionForms = []string{
	"delete pod/NAME", "delete gang/NAME", "delete node/NAME", "drain node/NAME", "cordon node/NAME",
	"uncordon node/NAME", "add-nodes COUNT like node/NAME",
}

const addNodes = "add-nodes"

// condition is one "if".
type condition struct {
	verb, kind, namespace, name string
	count                       int // of nodes to add
}

// String returns the condition with its namespace.
func (c *condition) String() string {
	name := c.kind + "/" + c.name
	if c.namespace != "" {
		name = c.kind + "/" + c.namespace + "/" + c.name
	}
	if c.verb == addNodes {
		return fmt.Sprintf("%s %d like %s", c.verb, c.count, name)
	}
	return c.verb + " " + name
}

// CheckConditions returns what is wrong with conditions as they are written, nil if they can be read.
func CheckConditions(conditions []string) error {
	if _, err := parseConditions("default", conditions); err != nil {
		return err
	}
	return nil
}

// OtherNamespace returns the first namespace other than the given one that conditions name a pod or a gang of; empty
// for none, and for conditions that cannot be read.
func (Inspector) OtherNamespace(namespace string, conditions []string) string {
	list, _ := parseConditions(namespace, conditions)
	for i := range list {
		if c := &list[i]; c.namespace != "" && c.namespace != namespace {
			return c.namespace
		}
	}
	return ""
}

// parseConditions parses them all. Names without a namespace are of the one given.
func parseConditions(namespace string, texts []string) ([]condition, *record.Refusal) {
	if len(texts) > MaxConditions {
		return nil, unreadable("at most %d conditions, got %d", MaxConditions, len(texts))
	}
	var list []condition
	added := 0
	for _, text := range texts {
		text = strings.TrimSpace(text)
		c, why := parseCondition(namespace, text)
		if why != "" {
			return nil, unreadable("condition %q: %s", clip(text), why)
		}
		if added += c.count; added > MaxAddedNodes {
			return nil, unreadable("condition %q: at most %d nodes can be added in all", text, MaxAddedNodes)
		}
		list = append(list, c)
	}
	return list, nil
}

func unreadable(format string, args ...any) *record.Refusal {
	return &record.Refusal{Message: fmt.Sprintf(format, args...)}
}

// clip keeps a message readable whatever was typed.
func clip(text string) string {
	if len(text) > 80 {
		return text[:80] + "..."
	}
	return text
}

// parseCondition parses one; why is empty if it can be read.
func parseCondition(namespace, text string) (c condition, why string) {
	words := strings.Fields(text)
	if len(words) == 0 || len(text) > maxConditionSize {
		return c, "want one of: " + strings.Join(ConditionForms, "; ")
	}
	c.verb, words = strings.ToLower(words[0]), words[1:]
	var kinds []string
	switch c.verb {
	case "delete":
		kinds = []string{"pod", "gang", "node"}
	case "drain", "cordon", "uncordon":
		kinds = []string{"node"}
	case addNodes:
		kinds = []string{"node"}
		if len(words) != 3 && len(words) != 4 || strings.ToLower(words[1]) != "like" {
			return c, "want add-nodes COUNT like node/NAME"
		}
		n, err := strconv.Atoi(words[0])
		if err != nil || n < 1 || n > MaxAddedNodes {
			return c, fmt.Sprintf("the count must be a number from 1 to %d, got %q", MaxAddedNodes, words[0])
		}
		c.count, words = n, words[2:]
	default:
		return c, "want one of: " + strings.Join(ConditionForms, "; ")
	}
	return c, c.parseName(namespace, words, kinds)
}

// parseName parses KIND/NAME, KIND NAME or KIND/NAMESPACE/NAME; where a node is the only possible kind, NAME alone.
func (c *condition) parseName(namespace string, words, kinds []string) (why string) {
	want := "want " + c.verb + " " + strings.Join(kinds, "/NAME, "+c.verb+" ") + "/NAME"
	if c.verb == addNodes {
		want = "want add-nodes COUNT like node/NAME"
	}
	parts := strings.Split(strings.Join(words, "/"), "/")
	if len(words) == 1 && len(parts) == 1 && len(kinds) == 1 {
		parts = []string{kinds[0], parts[0]}
	}
	if slices.Contains(parts, "") || len(words) == 0 || len(words) > 2 || len(parts) < 2 || len(parts) > 3 {
		return want
	}
	if kind := kindOf(parts[0]); slices.Contains(kinds, kind) {
		c.kind = kind
	}
	c.name = parts[len(parts)-1]
	switch {
	case c.kind == "" || c.kind == "node" && len(parts) == 3:
		return want
	case c.kind != "node":
		c.namespace = namespace
		if len(parts) == 3 {
			c.namespace = parts[1]
		}
	}
	return ""
}

// kindOf returns the kind that a word names, in the short and plural forms of kubectl; empty for none.
func kindOf(word string) string {
	switch strings.ToLower(word) {
	case "pod", "pods", "po":
		return "pod"
	case "node", "nodes", "no":
		return "node"
	case "gang", "gangs", "podgroup", "podgroups", "pg":
		return "gang"
	}
	return ""
}
