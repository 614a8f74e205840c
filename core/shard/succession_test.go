// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"fmt"
	"testing"
)

// Fault longestByPosition: an entry of a newer epoch counts more than the number of entries.
func TestLongest(t *testing.T) {
	for _, c := range []struct {
		claims []Claim
		want   string
	}{
		{nil, ""},
		{[]Claim{{"self", 5, 1}, {"b", 7, 1}}, "b"},
		{[]Claim{{"self", 5, 2}, {"b", 7, 1}}, "self"},
		{[]Claim{{"b", 7, 1}, {"self", 7, 1}, {"a", 7, 1}}, "self"},
		{[]Claim{{"self", 1, 1}, {"c", 7, 1}, {"b", 7, 1}}, "b"},
	} {
		got, ok := Longest(c.claims, "self")
		if got.Member != c.want || ok != (c.want != "") {
			t.Errorf("of %v: %v, want %q", c.claims, got, c.want)
		}
	}
}

// Fault observedInherited: a bind that was observed is not sent again. Fault freedInherited: nor one that was given up.
func TestInherit(t *testing.T) {
	entries := []Entry{
		{1, EntryTaken, "a", "n1", "a"},
		{2, EntryTaken, "g0", "n1", "g"},
		{3, EntryTaken, "g1", "n2", "g"},
		{4, EntryObserved, "g0", "n1", ""},
		{5, EntryTaken, "b", "n2", "b"},
		{6, EntryFreed, "b", "", ""},
		{7, EntryTaken, "b", "n3", "b"},
		{8, EntryTaken, "c", "n3", "c"},
		{9, EntryGone, "c", "", ""},
		{10, EntryTaken, "d", "n3", "d"},
		{11, EntryFreed, "d", "", ""},
	}
	got := ""
	for _, e := range Inherit(entries) {
		got += fmt.Sprintf("%d %s to %s; ", e.At, e.UID, e.Node)
	}
	if want := "1 a to n1; 3 g1 to n2; 7 b to n3; "; got != want {
		t.Errorf("inherited: %s, want %s", got, want)
	}
}
