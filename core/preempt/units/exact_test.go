// SPDX-License-Identifier: Apache-2.0

package units_test

import (
	"cmp"
	"math"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/preempt/units"
)

// party is a unit as the exact solver knows it: pods that go together.
type party struct {
	pods     []*cluster.Pod
	priority int32
}

// parties are the units that may go for a wish, found anew from the pods and the rules R4, R5, R16, A3 and A9.
func (w *gangWorld) parties(ask wish) (list []party) {
	s := w.Store.Snapshot()
	byGang := map[cluster.GangKey][]*cluster.Pod{}
	var keys []cluster.GangKey
	for n := range cluster.NodeIdx(s.Rows()) {
		s.EachPod(n, func(p *cluster.Pod, _ bool) {
			key, in := s.HeldGang(p.UID)
			switch {
			case p.Terminating || in && ask.isOwn(key):
			case !in || w.byPods[key.Name]:
				list = append(list, party{[]*cluster.Pod{p}, w.protection(p)})
			default:
				if byGang[key] == nil {
					keys = append(keys, key)
				}
				byGang[key] = append(byGang[key], p)
			}
		})
	}
	for _, key := range keys {
		list = append(list, party{byGang[key], w.protection(byGang[key][0])})
	}
	return slices.DeleteFunc(list, func(u party) bool {
		return u.priority >= ask.power || slices.ContainsFunc(u.pods, func(p *cluster.Pod) bool { return w.never[p.Name] != "" })
	})
}

// lossOf is what it costs to evict parties, worked out anew (answers A11, A12).
func (w *gangWorld) lossOf(parties []party) units.Loss {
	l := units.Loss{Highest: math.MinInt32, Units: len(parties), Oldest: math.MaxInt64}
	var pods []*cluster.Pod
	for _, u := range parties {
		l.Highest = max(l.Highest, u.priority)
		pods = append(pods, u.pods...)
	}
	l.Pods = len(pods)
	begun := func(p *cluster.Pod) int64 {
		if p.Start == 0 {
			return math.MaxInt64
		}
		return int64(p.Start)
	}
	for _, p := range pods {
		if at := begun(p); at < int64(l.Oldest) {
			l.Oldest = p.Start
		}
	}
	slices.SortFunc(pods, func(a, b *cluster.Pod) int {
		return cmp.Or(cmp.Compare(b.Spec.Priority, a.Spec.Priority), cmp.Compare(begun(a), begun(b)), cmp.Compare(a.Name, b.Name))
	})
	left := map[string]int32{} // budget -> what it allows still
	cluster.Each(w.Store.Snapshot(), func(b *policyv1.PodDisruptionBudget) bool {
		left[b.Name] = b.Status.DisruptionsAllowed
		return true
	})
	for _, p := range pods {
		broken := false
		cluster.Each(w.Store.Snapshot(), func(b *policyv1.PodDisruptionBudget) bool {
			selector, _ := metav1.LabelSelectorAsSelector(b.Spec.Selector)
			if selector.Matches(labels.Set(p.Spec.Labels)) {
				left[b.Name]--
				broken = broken || left[b.Name] < 0
			}
			return true
		})
		if broken {
			l.Violations++
		}
	}
	return l
}

// minimum tries every set of parties, the terminating pods gone, and returns the smallest loss of those that free
// enough capacity.
func (w *gangWorld) minimum(ask wish) (least units.Loss, found bool) {
	parties := w.parties(ask)
	for set := range 1 << len(parties) {
		var chosen []party
		for i, u := range parties {
			if set>>i&1 == 1 {
				chosen = append(chosen, u)
			}
		}
		l := w.lossOf(chosen)
		if found && l.Compare(least) >= 0 || !w.roomWithout(ask, chosen) {
			continue
		}
		least, found = l, true
	}
	return least, found
}

// roomWithout reports whether a wish fits with parties and terminating pods gone.
func (w *gangWorld) roomWithout(ask wish, gone []party) bool {
	w.Store.Begin()
	defer w.Store.Abort()
	trial := w.Store.Trial()
	defer trial.Discard()
	var uids []cluster.UID
	s := trial.Snapshot()
	for n := range cluster.NodeIdx(s.Rows()) {
		s.EachPod(n, func(p *cluster.Pod, _ bool) {
			if p.Terminating && !w.stuck[p.Name] {
				uids = append(uids, p.UID)
			}
		})
	}
	for _, u := range gone {
		for _, p := range u.pods {
			uids = append(uids, p.UID)
		}
	}
	for _, uid := range uids {
		trial.Evict(uid)
	}
	return w.fits(trial, w.need(ask))
}
