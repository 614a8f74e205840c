// SPDX-License-Identifier: Apache-2.0

package victim

import (
	"maps"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// Budgets are the disruption budgets of the cluster, with what was spent of them: evictions that were requested
// since.
type Budgets struct {
	revision uint64   // derived: of what follows from the objects
	known    bool     // derived: as revision
	list     []budget // derived: from the objects
	// covering: spec that pods share -> the budgets that select them.
	covering map[*cluster.PodSpec]covered // derived: from the objects
	// left: index in list -> what the budget still allows, in the current count.
	left []int32 // derived: of one count
	// spent are the pods whose eviction was requested since the object changed last.
	spent map[*policyv1.PodDisruptionBudget]map[cluster.UID]bool // kept; for the present objects; budget -> pod -> true
}

type budget struct {
	namespace string
	selector  labels.Selector
	allowed   int32
	disrupted map[string]metav1.Time // pod name -> when its eviction was granted
	of        *policyv1.PodDisruptionBudget
}

// covered are the budgets, by index in list, that select pods of one namespace.
type covered struct {
	namespace string
	by        []int
}

// Follow brings the budgets in line with the store. A budget whose selector is invalid or selects everything protects
// no pod (upstream: plugins/defaultpreemption, filterPodsWithPDBViolation).
func (b *Budgets) Follow(s cluster.Snapshot) {
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

// charge counts pods as evicted against a budget.
func (b *Budgets) charge(o *policyv1.PodDisruptionBudget, pods map[cluster.UID]bool) {
	if b.spent == nil {
		b.spent = map[*policyv1.PodDisruptionBudget]map[cluster.UID]bool{}
	}
	b.spent[o] = pods
}

// Protect reports for each of the pods, ordered by importance, whether its eviction would violate a budget if all of
// them were evicted. A pod that several budgets select is charged to them in the order of their names until one is
// violated (upstream: preemption/util.go, FilterVictimsWithPDBViolation). The result is appended to into[:0].
func (b *Budgets) Protect(pods []Entry, into []bool) []bool {
	into = into[:0]
	b.left = b.left[:0]
	for i := range b.list {
		b.left = append(b.left, b.list[i].allowed)
	}
	for _, c := range pods {
		violated := false
		for _, i := range b.About(c.Pod) {
			if d := b.list[i].disrupted; len(d) > 0 {
				if _, granted := d[c.Pod.Name]; granted {
					continue
				}
			}
			b.left[i]--
			if violated = b.left[i] < 0; violated {
				break
			}
		}
		into = append(into, violated)
	}
	return into
}

// About returns the indexes of the budgets that select a pod. None selects a pod without labels.
func (b *Budgets) About(p *cluster.Pod) []int {
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

// Spend counts pods whose eviction is requested against what budgets allow. Each pod counts once, until the
// budget's object changes: the disruption controller has then counted the eviction itself.
func (b *Budgets) Spend(s cluster.Snapshot, pods []*cluster.Pod) {
	b.Follow(s)
	for _, p := range pods {
		for _, i := range b.About(p) {
			of := b.list[i].of
			if b.spent[of] == nil {
				b.charge(of, map[cluster.UID]bool{})
			}
			if !b.spent[of][p.UID] {
				b.spent[of][p.UID] = true
				b.list[i].allowed--
			}
		}
	}
}

// Refund reverts Spend for a pod that was not evicted after all.
func (b *Budgets) Refund(s cluster.Snapshot, uid cluster.UID) {
	b.Follow(s)
	for i := range b.list {
		if spent := b.spent[b.list[i].of]; spent[uid] {
			delete(spent, uid)
			b.list[i].allowed++
		}
	}
}

// Left is what a budget allows, less what was spent, as of the last call of Follow, Spend or Refund.
func (b *Budgets) Left(o *policyv1.PodDisruptionBudget) int32 {
	return o.Status.DisruptionsAllowed - int32(len(b.spent[o]))
}

// Clone returns budgets with the same spending. What is spent on the clone does not change the original.
func (b *Budgets) Clone() (c Budgets) {
	for o, pods := range b.spent { // order: a map is made of a map
		c.charge(o, maps.Clone(pods))
	}
	return c
}

// Len is the number of budgets that protect pods, as of the last call of Follow.
func (b *Budgets) Len() int { return len(b.list) }

// Allows is how many more evictions the budget with an index grants; negative when more was spent than it allows.
func (b *Budgets) Allows(i int) int32 { return b.list[i].allowed }

// Granted reports whether the budget with an index has granted the eviction of a pod already.
func (b *Budgets) Granted(i int, p *cluster.Pod) bool {
	_, granted := b.list[i].disrupted[p.Name]
	return granted
}

// CountProtected returns how many of the pods a disruption budget protects if all of them are evicted.
func CountProtected(s cluster.Snapshot, pods []*cluster.Pod) (n int) {
	var b Budgets
	b.Follow(s)
	cells := make([]Entry, len(pods))
	for i, p := range pods {
		cells[i].Pod = p
	}
	for _, violated := range b.Protect(cells, nil) {
		if violated {
			n++
		}
	}
	return n
}
