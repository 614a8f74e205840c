// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// table is one kind of thing that releases have, for example feature gates.
type table struct {
	Name string `json:"name"`
	// About is what a reader does with a difference.
	About string `json:"about"`
	// extract returns key -> value for one release.
	extract func(release) (map[string]string, error)
}

// change is a key whose value differs. Was is empty for what was added, Is for what was removed.
type change struct {
	Key string `json:"key"`
	Was string `json:"was,omitempty"`
	Is  string `json:"is,omitempty"`
}

// difference is what changed in one table, in the order of the keys.
type difference struct {
	table
	Rows    int      `json:"rows"` // that the newer release has
	Changes []change `json:"changes"`
}

// compare extracts a table from both releases. A table that is empty in both is an error: upstream's source has another
// form than the one that the extraction knows, and "no change" would be a false answer.
func compare(t table, from, to release) (difference, error) {
	was, err := t.extract(from)
	if err != nil {
		return difference{}, fmt.Errorf("%s: %w", t.Name, err)
	}
	is, err := t.extract(to)
	if err != nil {
		return difference{}, fmt.Errorf("%s: %w", t.Name, err)
	}
	if len(is) == 0 {
		return difference{}, fmt.Errorf("%s: nothing was found in the newer release: its source has another form now, "+
			"and the table has to be extracted in another way", t.Name)
	}
	d := difference{table: t, Rows: len(is), Changes: []change{}}
	keys := maps.Clone(was)
	maps.Copy(keys, is)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if was[key] != is[key] {
			c := change{Key: key, Was: was[key], Is: is[key]}
			parent, _, field := cutLast(key, ".")
			if p := (change{Was: was[parent], Is: is[parent]}); field && c.whole() && p.whole() && p.Was != p.Is {
				continue // a field of a type that came or went: the type's line says it
			}
			d.Changes = append(d.Changes, c)
		}
	}
	return d, nil
}

// whole reports whether the key came or went.
func (c change) whole() bool { return c.Was == "" || c.Is == "" }

// sign is + for what came, - for what went, ~ for what changed.
func (c change) sign() string {
	switch {
	case c.Was == "":
		return "+"
	case c.Is == "":
		return "-"
	}
	return "~"
}

// cutLast cuts s around the last sep.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// parts removes from two values what both have, where values are lists of parts.
func parts(was, is string) (string, string) {
	a, b := strings.Split(was, "; "), strings.Split(is, "; ")
	less := func(x, y []string) string {
		rest := slices.DeleteFunc(slices.Clone(x), func(s string) bool { return slices.Contains(y, s) })
		return strings.Join(rest, "; ")
	}
	return less(a, b), less(b, a)
}
