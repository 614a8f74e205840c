// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugins/internal/nodematch"
)

// labelIndex finds the first of many things whose rules a node satisfies, without trying them all: thousands of local
// volumes each name one host. Each term is filed under the values of one of its In rules, its anchor; a node looks only
// under its own values.
type labelIndex struct {
	rules   []*nodematch.Selector // item -> what it asks of a node
	anchors []anchor
	rest    []int32 // items with a term that has no anchor, ascending
	files   []filed
}

// anchor is a label key under which items are filed.
type anchor struct {
	key   string
	first map[string]int32 // label value -> position in files of the first item, plus one
}

// filed is an item in a chain of ascending items.
type filed struct {
	item int32
	next int32 // position in files, plus one; 0 ends the chain
}

func indexLabels(rules []*nodematch.Selector) labelIndex {
	x := labelIndex{rules: rules}
	values := valuesPerKey(rules)
	for i, r := range rules {
		if !r.HasTerms || hasLooseTerm(r) {
			x.rest = append(x.rest, int32(i))
		}
	}
	// From the last to the first, each put in front, so that chains ascend.
	for i := len(rules) - 1; i >= 0; i-- {
		r := rules[i]
		if !r.HasTerms || hasLooseTerm(r) {
			continue
		}
		for t := range r.AnyOf {
			x.file(int32(i), bestAnchor(&r.AnyOf[t], values))
		}
	}
	return x
}

func (x *labelIndex) file(item int32, under *nodematch.LabelRule) {
	k := 0
	for k < len(x.anchors) && x.anchors[k].key != under.Key {
		k++
	}
	if k == len(x.anchors) {
		x.anchors = append(x.anchors, anchor{under.Key, make(map[string]int32, len(x.rules))})
	}
	first := x.anchors[k].first
	for _, value := range under.Values {
		x.files = append(x.files, filed{item, first[value]})
		first[value] = int32(len(x.files))
	}
}

// first is the first item that the node satisfies and skip (nil: nothing) does not skip, -1 if there is none.
func (x *labelIndex) first(node *cluster.Node, skip func(item int32) bool) int32 {
	best := int32(-1)
	good := func(item int32) bool { return x.rules[item].Matches(node) && (skip == nil || !skip(item)) }
	for _, item := range x.rest {
		if good(item) {
			best = item
			break
		}
	}
	for k := range x.anchors {
		value, has := node.Labels[x.anchors[k].key]
		if !has {
			continue
		}
		for at := x.anchors[k].first[value]; at != 0; at = x.files[at-1].next {
			item := x.files[at-1].item
			if best >= 0 && item >= best {
				break
			}
			if good(item) {
				best = item
				break
			}
		}
	}
	return best
}

// hasLooseTerm reports whether a term has no In rule.
func hasLooseTerm(r *nodematch.Selector) bool {
	for t := range r.AnyOf {
		if bestAnchor(&r.AnyOf[t], nil) == nil {
			return true
		}
	}
	return false
}

// bestAnchor is the In rule of a term whose key tells most: the one with the most values; nil if there is none.
func bestAnchor(t *nodematch.Term, values map[string]int) *nodematch.LabelRule {
	var best *nodematch.LabelRule
	for i := range t.Labels {
		if r := &t.Labels[i]; r.Op == v1.NodeSelectorOpIn && (best == nil || values[r.Key] > values[best.Key]) {
			best = r
		}
	}
	return best
}

// valuesPerKey counts the distinct values of each key in In rules, where some term has several such rules to choose
// from; nil where none has.
func valuesPerKey(rules []*nodematch.Selector) map[string]int { // label key -> number of values
	type pair struct{ key, value string }
	choice := false
	for i := range rules {
		for t := range rules[i].AnyOf {
			choice = choice || len(rules[i].AnyOf[t].Labels) > 1
		}
	}
	if !choice {
		return nil
	}
	seen, count := map[pair]struct{}{}, map[string]int{}
	for i := range rules {
		for t := range rules[i].AnyOf {
			for _, r := range rules[i].AnyOf[t].Labels {
				for _, v := range r.Values {
					if _, again := seen[pair{r.Key, v}]; !again && r.Op == v1.NodeSelectorOpIn {
						seen[pair{r.Key, v}] = struct{}{}
						count[r.Key]++
					}
				}
			}
		}
	}
	return count
}
