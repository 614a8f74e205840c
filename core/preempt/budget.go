// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// budgets are the disruption budgets of the cluster, made ready.
type budgets struct {
	revision uint64
	known    bool
	list     []budget
	// covering: pods that share a spec -> the budgets that are about them.
	covering map[*cluster.PodSpec]covered
	left     []int32 // of the node in hand, by index in list
	// spent are the pods whose eviction was asked for since the object was changed last.
	spent map[*policyv1.PodDisruptionBudget]map[cluster.UID]bool // budget -> pod -> true
}

type budget struct {
	namespace string
	selector  labels.Selector
	allowed   int32
	disrupted map[string]metav1.Time // pod name -> when its eviction was granted
	of        *policyv1.PodDisruptionBudget
}

// covered are the budgets, by index in list, that are about pods of a namespace.
type covered struct {
	namespace string
	by        []int
}

// follow brings the budgets in line with the store. One with a selector that is not valid, or that selects all, protects
// nobody (upstream: plugins/defaultpreemption, filterPodsWithPDBViolation).
func (b *budgets) follow(s cluster.Snapshot) {
	if rev := s.KindRevision(cluster.KindBudget); b.known && b.revision == rev {
		return
	} else {
		b.revision, b.known = rev, true
	}
	spent := b.spent
	b.spent = nil
	b.list, b.covering = b.list[:0], map[*cluster.PodSpec]covered{}
	cluster.Each(s, func(o *policyv1.PodDisruptionBudget) bool {
		selector, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
		if err == nil && !selector.Empty() {
			if pods := spent[o]; pods != nil {
				b.charge(o, pods)
			}
			allowed := o.Status.DisruptionsAllowed - int32(len(spent[o]))
			b.list = append(b.list, budget{o.Namespace, selector, allowed, o.Status.DisruptedPods, o})
		}
		return true
	})
}

// charge notes pods whose eviction a budget is charged with.
func (b *budgets) charge(o *policyv1.PodDisruptionBudget, pods map[cluster.UID]bool) {
	if b.spent == nil {
		b.spent = map[*policyv1.PodDisruptionBudget]map[cluster.UID]bool{}
	}
	b.spent[o] = pods
}

// protect tells for each of the pods that may go from a node, the most important first, whether its eviction would violate
// a budget, were all of them to go.
func (b *budgets) protect(pods []cell, into []bool) []bool {
	into = into[:0]
	b.left = b.left[:0]
	for i := range b.list {
		b.left = append(b.left, b.list[i].allowed)
	}
	for _, c := range pods {
		violated := false
		for _, i := range b.about(c.pod) {
			if d := b.list[i].disrupted; len(d) > 0 {
				if _, granted := d[c.pod.Name]; granted {
					continue
				}
			}
			b.left[i]--
			violated = violated || b.left[i] < 0
		}
		into = append(into, violated)
	}
	return into
}

// about lists the budgets that are about a pod. A pod without labels is in none.
func (b *budgets) about(p *cluster.Pod) []int {
	if len(b.list) == 0 || len(p.Spec.Labels) == 0 {
		return nil
	}
	known, ok := b.covering[p.Spec]
	if ok && known.namespace == p.Namespace {
		return known.by
	}
	c := covered{namespace: p.Namespace}
	for i := range b.list {
		if b.list[i].namespace == p.Namespace && b.list[i].selector.Matches(labels.Set(p.Spec.Labels)) {
			c.by = append(c.by, i)
		}
	}
	if !ok {
		b.covering[p.Spec] = c
	}
	return c.by
}

// Shielded counts those of some pods whose eviction would violate a disruption budget, were all of them to go.
func Shielded(s cluster.Snapshot, pods []*cluster.Pod) (n int) {
	var b budgets
	b.follow(s)
	cells := make([]cell, len(pods))
	for i, p := range pods {
		cells[i].pod = p
	}
	for _, violated := range b.protect(cells, nil) {
		if violated {
			n++
		}
	}
	return n
}
