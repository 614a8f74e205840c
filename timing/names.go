// SPDX-License-Identifier: Apache-2.0

package timing

import "strings"

// maxNames bounds the different names: labels of events, plugins, and sets of plugins.
const maxNames = 4096

// name is a number for a text. 0 is the empty text.
type name uint16

// tooMany is the name of all texts after the first maxNames.
const tooMany name = 1

// names numbers texts, so that spans have no pointers.
type names struct {
	of   map[string]name // text -> number
	text []string        // number -> text
	set  []byte          // for setOf
	// recent has texts that were asked for, at the index of their form: a step has texts that are constants of the
	// queue, so that comparing them is comparing pointers.
	recent [16]recentName
}

// recentName is a text with its number.
type recentName struct {
	text   string
	number name
}

func newNames() names {
	return names{of: map[string]name{"": 0, "(too many names)": tooMany}, text: []string{"", "(too many names)"}}
}

// number returns the number of a text.
func (n *names) number(text string) name {
	if text == "" {
		return 0
	}
	at := &n.recent[(len(text)+int(text[0])+int(text[len(text)-1]))%len(n.recent)]
	if at.text != text {
		id, known := n.of[text]
		if !known {
			id = n.learn(text)
		}
		*at = recentName{text, id}
	}
	return at.number
}

func (n *names) learn(text string) name {
	if len(n.text) >= maxNames {
		return tooMany
	}
	id := name(len(n.text))
	text = strings.Clone(text)
	n.of[text] = id
	n.text = append(n.text, text)
	return id
}

// setOf returns the number of a sorted set of plugins.
func (n *names) setOf(plugins []string) name {
	n.set = n.set[:0]
	for i, p := range plugins {
		if i > 0 {
			n.set = append(n.set, ',')
		}
		n.set = append(n.set, p...)
	}
	if id, known := n.of[string(n.set)]; known {
		return id
	}
	return n.learn(string(n.set))
}
