// SPDX-License-Identifier: Apache-2.0

package noop

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// observations are the changes of nodes and pods while a run was recorded, in the order of resource versions, which
// etcd assigns across all kinds of objects. It is safe for concurrent use.
type observations struct {
	mu sync.Mutex
	// updates: node -> resource versions of its updates, ascending.
	updates map[string][]uint64
	pods    map[string]*podObservation // namespace/name -> the first pod of that name
	on      map[string][]string        // node -> pods that were bound there, namespace/name
}

// podObservation has the observed changes of a pod. A resource version is 0 if the change was not observed.
type podObservation struct {
	node                 string
	generation           int64 // the last before the bind, or 0
	came                 uint64
	refused, bound, gone uint64
	// changed: generation -> since when, for a pod that has a node.
	changed map[int64]uint64
}

func newObservations() *observations {
	return &observations{updates: map[string][]uint64{}, pods: map[string]*podObservation{}, on: map[string][]string{}}
}

func versionOf(o metav1.Object) uint64 {
	v, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("%s has resource version %q", o.GetName(), o.GetResourceVersion()))
	}
	return v
}

func (s *observations) nodeUpdated(n *corev1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updates[n.Name] = append(s.updates[n.Name], versionOf(n))
}

func (s *observations) podSeen(p *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := versionOf(p)
	seen := s.pods[keyOf(p)]
	if seen == nil {
		seen = &podObservation{changed: map[int64]uint64{}, came: now}
		s.pods[keyOf(p)] = seen
	}
	if p.Spec.NodeName == "" {
		seen.generation = p.Generation
		if seen.refused == 0 && refused(p) {
			seen.refused = now
		}
		return
	}
	if seen.bound == 0 {
		seen.bound, seen.node = now, p.Spec.NodeName
		s.on[seen.node] = append(s.on[seen.node], keyOf(p))
	}
	if _, known := seen.changed[p.Generation]; !known {
		seen.changed[p.Generation] = now
	}
}

func (s *observations) podGone(p *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seen := s.pods[keyOf(p)]; seen != nil && seen.gone == 0 {
		seen.gone = versionOf(p)
	}
}

// refused reports whether a scheduler has rejected a pod in a condition. Scheduling gates do not count.
func refused(p *corev1.Pod) bool {
	return condition(p, corev1.PodScheduled) == corev1.ConditionFalse && len(p.Spec.SchedulingGates) == 0
}

// needs returns the conditions for a pod's bind: that the node exists, and, if the pod was rejected before, the
// changes of the node, of the pods on it and of the pod between the rejection and the bind. If there were no such
// changes, the pod waited for other pods. The recording does not say for which, so the condition is the first of them
// that was bound.
func (s *observations) needs(pod, node string) []Need {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []Need{{Node: node}}
	me := s.pods[pod]
	if me == nil || me.refused == 0 || me.bound == 0 {
		return out
	}
	meanwhile := func(version uint64) bool { return me.refused < version && version < me.bound }
	for i, version := range s.updates[node] {
		if meanwhile(version) {
			out[0].Updates = i + 1
		}
	}
	if me.generation > 1 {
		out = append(out, Need{Pod: pod, Generation: me.generation})
	}
	for _, key := range s.on[node] {
		other := s.pods[key]
		if meanwhile(other.gone) {
			out = append(out, Need{Pod: key, Gone: true})
			continue
		}
		generation := int64(0)
		for of, since := range other.changed { // order: the highest
			if meanwhile(since) && since != other.bound {
				generation = max(generation, of)
			}
		}
		if generation > 0 {
			out = append(out, Need{Pod: key, Generation: generation})
		}
	}
	slices.SortFunc(out[1:], func(a, b Need) int { return cmp.Compare(a.Pod, b.Pod) })
	if len(out) > 1 || out[0].Updates > 0 {
		return out
	}
	if first := s.firstOf(func(other *podObservation) bool { return meanwhile(other.came) && meanwhile(other.bound) }); first != "" {
		out = append(out, Need{Pod: first, Bound: true})
	}
	return out
}

// firstOf returns which of some pods was bound first. It must be called with mu held.
func (s *observations) firstOf(some func(*podObservation) bool) (first string) {
	for key, p := range s.pods { // order: no two were bound at one version
		if some(p) && (first == "" || p.bound < s.pods[first].bound) {
			first = key
		}
	}
	return first
}

// after calls do at the nth call.
func after(n int32, do func()) func() {
	var missing atomic.Int32
	missing.Store(n)
	return func() {
		if missing.Add(-1) == 0 {
			do()
		}
	}
}

// watch follows nodes and pods until ctx ends; listed is called when both were listed.
func (s *observations) watch(ctx context.Context, client kubernetes.Interface, listed func()) {
	one := after(2, listed)
	var working sync.WaitGroup
	working.Go(func() {
		watchNodes(ctx, client, &shows[*corev1.Node]{updated: s.nodeUpdated, listed: one})
	})
	working.Go(func() {
		watchPods(ctx, client, &shows[*corev1.Pod]{added: s.podSeen, updated: s.podSeen, deleted: s.podGone, listed: one})
	})
	working.Wait()
}
