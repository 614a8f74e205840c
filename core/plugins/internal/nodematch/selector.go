// SPDX-License-Identifier: Apache-2.0

package nodematch

import (
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// Required is the pod's own requirement as component-helpers has it.
func Required(p *cluster.Pod) nodeaffinity.RequiredNodeAffinity {
	return nodeaffinity.GetRequiredNodeAffinity(&v1.Pod{Spec: v1.PodSpec{
		NodeSelector: p.Spec.NodeSelector,
		Affinity: &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: p.Spec.Required,
		}},
	}})
}

// AsObject is what component-helpers reads of a node.
func AsObject(n *cluster.Node) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}}
}

// Term is a node selector term made ready: all of it must hold.
type Term struct {
	Labels []LabelRule
	Fields []fieldRule
}

// LabelRule is one match expression.
type LabelRule struct {
	Key    string
	Op     v1.NodeSelectorOperator
	Values []string
	number int64 // of values[0], for Gt and Lt
}

// fieldRule is one match field: the node's name, or a field that is always empty, is a value or is not.
type fieldRule struct {
	isName bool
	equal  bool
	value  string
}

// Selector is the conjunction of a plain node selector and a node affinity; it matches a node that satisfies all pairs
// and, if there is an affinity, one of the terms.
type Selector struct {
	pairs    []LabelRule
	AnyOf    []Term
	HasTerms bool
}

// CompileTerm makes a term ready. ok is false for terms that match nothing: empty ones, and ones that do not parse,
// which the API server lets through (upstream: component-helpers, nodeaffinity.LazyErrorNodeSelector).
func CompileTerm(t *v1.NodeSelectorTerm) (term Term, ok bool) {
	if len(t.MatchExpressions) == 0 && len(t.MatchFields) == 0 {
		return term, false
	}
	for i := range t.MatchExpressions {
		rule, ok := CompileRule(&t.MatchExpressions[i])
		if !ok {
			return term, false
		}
		term.Labels = append(term.Labels, rule)
	}
	for _, f := range t.MatchFields {
		if f.Operator != v1.NodeSelectorOpIn && f.Operator != v1.NodeSelectorOpNotIn || len(f.Values) != 1 {
			return term, false
		}
		term.Fields = append(term.Fields, fieldRule{f.Key == metav1.ObjectNameField,
			f.Operator == v1.NodeSelectorOpIn, f.Values[0]})
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

func CompileRule(r *v1.NodeSelectorRequirement) (rule LabelRule, ok bool) {
	op, known := operators[r.Operator]
	if !known {
		return rule, false
	}
	if _, err := labels.NewRequirement(r.Key, op, r.Values); err != nil {
		return rule, false
	}
	rule = LabelRule{Key: r.Key, Op: r.Operator, Values: r.Values}
	if op == selection.GreaterThan || op == selection.LessThan {
		n, err := strconv.ParseInt(r.Values[0], 10, 64)
		if err != nil {
			return rule, false
		}
		rule.number = n
	}
	return rule, true
}

// CompileAnd makes a node selector and an affinity (nil: none) ready.
func CompileAnd(pairs map[string]string, required *v1.NodeSelector) Selector {
	var and Selector
	for k, v := range pairs { // order: sorted below
		and.pairs = append(and.pairs, LabelRule{Key: k, Op: v1.NodeSelectorOpIn, Values: []string{v}})
	}
	slices.SortFunc(and.pairs, func(a, b LabelRule) int { return strings.Compare(a.Key, b.Key) })
	if required != nil {
		and.HasTerms = true
		for i := range required.NodeSelectorTerms {
			if t, ok := CompileTerm(&required.NodeSelectorTerms[i]); ok {
				and.AnyOf = append(and.AnyOf, t)
			}
		}
	}
	return and
}

func (r *LabelRule) matches(node *cluster.Node) bool {
	got, has := node.Labels[r.Key]
	switch r.Op {
	case v1.NodeSelectorOpIn:
		return has && slices.Contains(r.Values, got)
	case v1.NodeSelectorOpNotIn:
		return !has || !slices.Contains(r.Values, got)
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
	return (n > r.number) == (r.Op == v1.NodeSelectorOpGt)
}

func (f *fieldRule) matches(node *cluster.Node) bool {
	got := ""
	if f.isName {
		got = node.Name
	}
	return (got == f.value) == f.equal
}

func (t *Term) matches(node *cluster.Node) bool {
	for i := range t.Labels {
		if !t.Labels[i].matches(node) {
			return false
		}
	}
	for i := range t.Fields {
		if !t.Fields[i].matches(node) {
			return false
		}
	}
	return true
}

func (a *Selector) Matches(node *cluster.Node) bool {
	for i := range a.pairs {
		if !a.pairs[i].matches(node) {
			return false
		}
	}
	return !a.HasTerms || slices.ContainsFunc(a.AnyOf, func(t Term) bool { return t.matches(node) })
}
