// SPDX-License-Identifier: Apache-2.0

package podaffinity

import (
	"fmt"
	"strings"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Advise says which pods would have to come near the node, or to leave.
func (pl *InterPodAffinity) Advise(v *cluster.NodeView, p *cluster.Pod, r *record.Remedy) {
	own := pl.own(p)
	if own.err != nil {
		r.Do = "correct the pod's affinity: " + own.err.Error()
		return
	}
	if !pl.asked {
		return
	}
	f := pl.filter(pl.state, p)
	if f == nil {
		return
	}
	f.advise(own, v.Node, r)
}

func (f *podAffinityFilter) advise(own *ownTerms, node *cluster.Node, r *record.Remedy) {
	first := f.near != nil && f.isFirst()
	for _, by := range f.nearBy {
		value, ok := node.Labels[by.Key()]
		switch {
		case !ok:
			r.Do = fmt.Sprintf("label %s with %s, by which the pod's affinity counts", r.Node, by.Key())
			return
		case !first && podsOn(f.near, by, value) == 0:
			r.Do = fmt.Sprintf("run a pod that matches %s where %s=%s", selectors(own.attract), by.Key(), value)
			return
		}
	}
	for i, term := range f.far {
		if value, ok := node.Labels[term.by.Key()]; ok && podsOn(term.pods, term.by, value) > 0 {
			r.Do = fmt.Sprintf("move the pods that match %s away from where %s=%s", selectors(own.repel[i:i+1]),
				term.by.Key(), value)
			return
		}
	}
	for i := range f.others {
		by := f.others[i].by
		if value, ok := node.Labels[by.Key()]; ok && f.others[i].on(by.ID(value)) > 0 {
			r.Do = fmt.Sprintf("move the pods whose anti-affinity is about this one away from where %s=%s", by.Key(),
				value)
			return
		}
	}
}

// selectors names what the terms select, for people.
func selectors(terms []cluster.PodTerm) string {
	var words []string
	for i := range terms {
		word := terms[i].Labels.String()
		if terms[i].Labels.Empty() {
			word = "anything"
		} else if word == "" {
			word = "nothing"
		}
		words = append(words, word)
	}
	return strings.Join(words, " and ")
}
