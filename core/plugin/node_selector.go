// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// selectorTerm is a node selector term made ready: all of it must hold.
type selectorTerm struct {
	labels []labelRule
	fields []fieldRule
}

// labelRule is one match expression.
type labelRule struct {
	key    string
	op     v1.NodeSelectorOperator
	values []string
	number int64 // of values[0], for Gt and Lt
}

// fieldRule is one match field: the node's name, or a field that is always empty, is a value or is not.
type fieldRule struct {
	isName bool
	equal  bool
	value  string
}

// nodeAnd is the conjunction of a plain node selector and a node affinity; it matches a node that satisfies all pairs
// and, if there is an affinity, one of the terms.
type nodeAnd struct {
	pairs    []labelRule
	anyOf    []selectorTerm
	hasTerms bool
}

// compileTerm makes a term ready. ok is false for terms that match nothing: empty ones, and ones that do not parse,
// which the API server lets through (upstream: component-helpers, nodeaffinity.LazyErrorNodeSelector).
func compileTerm(t *v1.NodeSelectorTerm) (term selectorTerm, ok bool) {
	if len(t.MatchExpressions) == 0 && len(t.MatchFields) == 0 {
		return term, false
	}
	for i := range t.MatchExpressions {
		rule, ok := compileRule(&t.MatchExpressions[i])
		if !ok {
			return term, false
		}
		term.labels = append(term.labels, rule)
	}
	for _, f := range t.MatchFields {
		if f.Operator != v1.NodeSelectorOpIn && f.Operator != v1.NodeSelectorOpNotIn || len(f.Values) != 1 {
			return term, false
		}
		term.fields = append(term.fields, fieldRule{f.Key == metav1.ObjectNameField, f.Operator == v1.NodeSelectorOpIn, f.Values[0]})
	}
	return term, true
}

// operators gives the node selector operators their names in label selectors, which validate them.
var operators = map[v1.NodeSelectorOperator]selection.Operator{ // node selector operator -> label selector operator
	v1.NodeSelectorOpIn:           selection.In,
	v1.NodeSelectorOpNotIn:        selection.NotIn,
	v1.NodeSelectorOpExists:       selection.Exists,
	v1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	v1.NodeSelectorOpGt:           selection.GreaterThan,
	v1.NodeSelectorOpLt:           selection.LessThan,
}

func compileRule(r *v1.NodeSelectorRequirement) (rule labelRule, ok bool) {
	op, known := operators[r.Operator]
	if !known {
		return rule, false
	}
	if _, err := labels.NewRequirement(r.Key, op, r.Values); err != nil {
		return rule, false
	}
	rule = labelRule{key: r.Key, op: r.Operator, values: r.Values}
	if op == selection.GreaterThan || op == selection.LessThan {
		n, err := strconv.ParseInt(r.Values[0], 10, 64)
		if err != nil {
			return rule, false
		}
		rule.number = n
	}
	return rule, true
}

// compileAnd makes a node selector and an affinity (nil: none) ready.
func compileAnd(pairs map[string]string, required *v1.NodeSelector) nodeAnd {
	var and nodeAnd
	for k, v := range pairs { // order: sorted below
		and.pairs = append(and.pairs, labelRule{key: k, op: v1.NodeSelectorOpIn, values: []string{v}})
	}
	slices.SortFunc(and.pairs, func(a, b labelRule) int { return strings.Compare(a.key, b.key) })
	if required != nil {
		and.hasTerms = true
		for i := range required.NodeSelectorTerms {
			if t, ok := compileTerm(&required.NodeSelectorTerms[i]); ok {
				and.anyOf = append(and.anyOf, t)
			}
		}
	}
	return and
}

func (r *labelRule) matches(node *cluster.Node) bool {
	got, has := node.Labels[r.key]
	switch r.op {
	case v1.NodeSelectorOpIn:
		return has && slices.Contains(r.values, got)
	case v1.NodeSelectorOpNotIn:
		return !has || !slices.Contains(r.values, got)
	case v1.NodeSelectorOpExists:
		return has
	case v1.NodeSelectorOpDoesNotExist:
		return !has
	}
	n, err := strconv.ParseInt(got, 10, 64)
	switch {
	case !has || err != nil:
		return false
	case n == r.number:
		return false
	}
	return (n > r.number) == (r.op == v1.NodeSelectorOpGt)
}

func (f *fieldRule) matches(node *cluster.Node) bool {
	got := ""
	if f.isName {
		got = node.Name
	}
	return (got == f.value) == f.equal
}

func (t *selectorTerm) matches(node *cluster.Node) bool {
	for i := range t.labels {
		if !t.labels[i].matches(node) {
			return false
		}
	}
	for i := range t.fields {
		if !t.fields[i].matches(node) {
			return false
		}
	}
	return true
}

func (a *nodeAnd) matches(node *cluster.Node) bool {
	for i := range a.pairs {
		if !a.pairs[i].matches(node) {
			return false
		}
	}
	return !a.hasTerms || slices.ContainsFunc(a.anyOf, func(t selectorTerm) bool { return t.matches(node) })
}
