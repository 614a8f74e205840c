// SPDX-License-Identifier: Apache-2.0

// Package labelindex owns an index of selectors by a label that each of them requires, so that the selectors that may
// match a pod are found by the pod's labels. Most of many thousand selectors require a label that few pods have.
package labelindex

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Label is a label.
type Label struct{ Key, Value string }

// None represents the absence of a label that selectors require: keys of labels are never empty.
var None Label

// Index finds, among many selectors, those that may match a pod, by one label that each of them requires.
type Index[T comparable] struct {
	hooked map[Label][]T // label -> the selectors that require it
	loose  []T           // the selectors that require no label
}

// RequiredBy returns a label that a selector requires, None if there is none.
func RequiredBy(s labels.Selector) Label {
	requirements, _ := s.Requirements()
	for i := range requirements {
		switch r := &requirements[i]; r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			if values := r.ValuesUnsorted(); len(values) == 1 && r.Key() != "" {
				return Label{r.Key(), values[0]}
			}
		}
	}
	return None
}

// Add adds a selector that requires a label, or None.
func (x *Index[T]) Add(sel T, label Label) {
	if label == None {
		x.loose = append(x.loose, sel)
		return
	}
	if x.hooked == nil {
		x.hooked = map[Label][]T{}
	}
	x.hooked[label] = append(x.hooked[label], sel)
}

// Remove removes a selector that was added with the same label.
func (x *Index[T]) Remove(sel T, label Label) {
	if label == None {
		i := slices.Index(x.loose, sel)
		x.loose = slices.Delete(x.loose, i, i+1)
		return
	}
	list := x.hooked[label]
	i := slices.Index(list, sel)
	if list = slices.Delete(list, i, i+1); len(list) == 0 {
		delete(x.hooked, label)
	} else {
		x.hooked[label] = list
	}
}

// Each calls f for each selector that may match a pod with these labels.
func (x *Index[T]) Each(podLabels map[string]string, f func(T)) {
	for key, value := range podLabels { // order: callers do not depend on it
		for _, sel := range x.hooked[Label{key, value}] {
			f(sel)
		}
	}
	for _, sel := range x.loose {
		f(sel)
	}
}
