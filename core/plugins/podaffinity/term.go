// SPDX-License-Identifier: Apache-2.0

package podaffinity

import (
	"fmt"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/errors"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// podTerms are the terms of one pod as they stand. matchLabelKeys and mismatchLabelKeys are not in them: the API server
// has merged them into the label selector when the pod was made (KEP-3633).
type podTerms struct {
	attract, repel []cluster.PodTerm // required
	prefer, avoid  []cluster.PodTerm // preferred
	// errs says why the terms of a kind cannot be read. All of that kind are missing then: a pod that is on a node
	// already goes by the others, one that waits is refused.
	errs [4]error
}

var termKindNames = [4]string{
	cluster.RequiredAffinity:      "requiredAffinityTerms",
	cluster.RequiredAntiAffinity:  "requiredAntiAffinityTerms",
	cluster.PreferredAffinity:     "preferredAffinityTerms",
	cluster.PreferredAntiAffinity: "preferredAntiAffinityTerms",
}

func termsOf(p *cluster.Pod) podTerms {
	var t podTerms
	if p.Spec.PodAffinity == nil && p.Spec.PodAntiAffinity == nil {
		return t
	}
	read := func(kind cluster.TermKind) (terms []cluster.PodTerm) {
		terms, t.errs[kind] = cluster.TermsOf(p.Spec, p.Namespace, kind)
		return terms
	}
	t.attract, t.repel = read(cluster.RequiredAffinity), read(cluster.RequiredAntiAffinity)
	t.prefer, t.avoid = read(cluster.PreferredAffinity), read(cluster.PreferredAntiAffinity)
	return t
}

// err joins the errors of all kinds, as upstream words them (framework.NewPodInfo).
func (t *podTerms) err() error {
	var all []error
	for kind, err := range t.errs {
		if err != nil {
			all = append(all, fmt.Errorf("%s: %w", termKindNames[kind], err))
		}
	}
	if all == nil {
		return nil
	}
	return errors.NewAggregate(all)
}

// unreadable reports whether required terms cannot be read.
func (t *podTerms) unreadable() bool {
	return t.errs[cluster.RequiredAffinity] != nil || t.errs[cluster.RequiredAntiAffinity] != nil
}

// coversAll reports whether each of the terms is about p, without reading the labels of its namespace. No terms are
// about no pod.
func coversAll(terms []cluster.PodTerm, p *cluster.Pod) bool {
	for i := range terms {
		if !terms[i].Matches(p.Namespace, nil, p.Spec.Labels) {
			return false
		}
	}
	return len(terms) != 0
}

// coversAny reports whether one of the terms is about p, without reading the labels of its namespace.
func coversAny(terms []cluster.PodTerm, p *cluster.Pod) bool {
	return slices.ContainsFunc(terms, func(t cluster.PodTerm) bool {
		return t.Matches(p.Namespace, nil, p.Spec.Labels)
	})
}

// ownTerms are the terms of a pod and what they select while the pod waits.
type ownTerms struct {
	podTerms
	err error // why the pod is refused
	// nearPods selects the pods that all affinity terms are about. The others have one selection for each term.
	nearPods                       cluster.Selection
	farPods, preferPods, avoidPods []cluster.Selection
}

func readOwn(p *cluster.Pod) *ownTerms {
	own := &ownTerms{podTerms: termsOf(p)}
	if own.err = own.podTerms.err(); own.err != nil {
		return own
	}
	var all []cluster.Term
	for i := range own.attract {
		all = append(all, selects(&own.attract[i]))
	}
	each := func(terms []cluster.PodTerm) (list []cluster.Selection) {
		for i := range terms {
			list = append(list, cluster.SelectTerminating(selects(&terms[i])))
		}
		return list
	}
	own.nearPods = cluster.SelectTerminating(all...)
	own.farPods, own.preferPods, own.avoidPods = each(own.repel), each(own.prefer), each(own.avoid)
	return own
}

// selects is the selection of a term of a pod that waits.
func selects(t *cluster.PodTerm) cluster.Term {
	sel := cluster.Term{Namespaces: t.Namespaces, Labels: t.Labels, Everywhere: t.Matching.Empty()}
	if _, some := t.Matching.Requirements(); some && !sel.Everywhere {
		sel.Matching = t.Matching
	}
	return sel
}

// resolved returns the terms of a pod that waits with the names of the existing namespaces that their selectors select.
// An empty selector stays: it selects all namespaces, whether they exist or not.
func resolved(s cluster.Snapshot, terms []cluster.PodTerm) []cluster.PodTerm {
	terms = slices.Clone(terms)
	for i := range terms {
		t := &terms[i]
		if requirements, _ := t.Matching.Requirements(); len(requirements) == 0 {
			continue // it selects all namespaces, or none
		}
		names := slices.Clone(t.Namespaces)
		cluster.Each(s, func(ns *v1.Namespace) bool {
			if t.Matching.Matches(labels.Set(ns.Labels)) {
				names = append(names, ns.Name)
			}
			return true
		})
		slices.Sort(names)
		t.Namespaces, t.Matching = slices.Compact(names), labels.Nothing()
	}
	return terms
}

// namespaceLabels are the labels of a namespace, none when it is not known.
func namespaceLabels(s cluster.Snapshot, name string) map[string]string {
	if ns, ok := cluster.Find[*v1.Namespace](s, "", name); ok {
		return ns.Labels
	}
	return nil
}

// signed is what a preferred term adds to a score, times -1 for terms that push away; 32 bits wide, as upstream
// multiplies.
func signed(weight, sign int32) int64 { return int64(weight * sign) }

// spread100 brings raw scores of the nodes that fit to 0..MaxScore: the least to 0, the greatest to MaxScore (upstream:
// interpodaffinity/scoring.go, NormalizeScore).
func spread100(scores []int64) {
	least, greatest := int64(math.MaxInt64), int64(math.MinInt64)
	for _, raw := range scores {
		least, greatest = min(least, raw), max(greatest, raw)
	}
	span := greatest - least
	for i, raw := range scores {
		scores[i] = 0
		if span > 0 {
			scores[i] = int64(float64(plugin.MaxScore) * (float64(raw-least) / float64(span)))
		}
	}
}
