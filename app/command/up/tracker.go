// SPDX-License-Identifier: Apache-2.0

package up

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// expectLabel marks a pod that is expected to wait.
const expectLabel = "kumiki.dev/expect"

// workload identifies the creator of a pod.
type workload struct{ kind, namespace, name string }

// watched is the observed state of one pod.
type watched struct {
	workload        workload
	namespace, name string
	// first and bound are when the watch first showed it, and first with a node, by the clock of this process,
	// because creation times have a resolution of one second.
	first, bound time.Time
	node         string
	phase        v1.PodPhase
	gone         bool
	// answered: the scheduler has reported why it does not place the pod.
	answered bool
	gated    bool
	expected bool // to wait
}

// tracker follows pods through a watch.
type tracker struct {
	now func() time.Time
	mu  struct {
		sync.Mutex
		pods    map[types.UID]*watched
		changed time.Time // when something last happened to a pod
	}
}

func newTracker(now func() time.Time) *tracker {
	t := &tracker{now: now}
	t.mu.pods = map[types.UID]*watched{}
	t.mu.changed = now()
	return t
}

// handler feeds the tracker from an informer.
func (t *tracker) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { t.see(o.(*v1.Pod)) },
		UpdateFunc: func(_, o any) { t.see(o.(*v1.Pod)) },
		DeleteFunc: func(o any) {
			if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			if pod, ok := o.(*v1.Pod); ok {
				t.lose(pod)
			}
		},
	}
}

func (t *tracker) see(p *v1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	w := t.mu.pods[p.UID]
	if w == nil {
		w = &watched{workload: workloadOf(p), namespace: p.Namespace, name: p.Name, first: now,
			expected: p.Labels[expectLabel] == "pending"}
		t.mu.pods[p.UID] = w
		t.mu.changed = now
	}
	if w.node == "" && p.Spec.NodeName != "" {
		w.node, w.bound = p.Spec.NodeName, now
	}
	answered := slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse
	})
	if w.phase != p.Status.Phase || w.answered != answered || w.bound == now {
		t.mu.changed = now
	}
	w.phase, w.answered, w.gated = p.Status.Phase, answered, len(p.Spec.SchedulingGates) > 0
}

func (t *tracker) lose(p *v1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.mu.pods[p.UID]; w != nil {
		w.gone = true
		t.mu.changed = t.now()
	}
}

// workloadOf returns the creator of a pod. The owner of a deployment's pod is a replica set, named after the
// deployment.
func workloadOf(p *v1.Pod) workload {
	owner := metav1.GetControllerOf(p)
	switch {
	case owner == nil:
		return workload{"Pod", p.Namespace, p.Name}
	case owner.Kind == "ReplicaSet" && p.Labels["pod-template-hash"] != "":
		return workload{"Deployment", p.Namespace, strings.TrimSuffix(owner.Name, "-"+p.Labels["pod-template-hash"])}
	}
	return workload{owner.Kind, p.Namespace, owner.Name}
}

// summary is the state of the pods so far.
type summary struct {
	pods, bound, running, waiting, failed int
	// perSecond is pods bound per second, from the first pod seen to the last one bound.
	perSecond float64
	// p50 and p99 are from the first observation of a pod to its bind.
	p50, p99  time.Duration
	workloads []workloadRow
	pending   []watched // without a node, sorted by name
	failures  []watched
	// settled: every pod has a node, or a reason why not, and what is bound has started.
	settled bool
	quiet   time.Duration // since the last change
}

type workloadRow struct {
	workload
	pods, bound, running, done, failed, nodes int
}

func (t *tracker) summary() summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := summary{settled: true, quiet: t.now().Sub(t.mu.changed)}
	var first, last time.Time
	var latencies []time.Duration
	rows := map[workload]*workloadRow{}
	nodes := map[workload]map[string]bool{} // workload -> nodes with its pods
	for _, w := range t.mu.pods {
		if w.gone && w.node == "" {
			continue
		}
		s.pods++
		if first.IsZero() || w.first.Before(first) {
			first = w.first
		}
		row := rows[w.workload]
		if row == nil {
			row = &workloadRow{workload: w.workload}
			rows[w.workload], nodes[w.workload] = row, map[string]bool{}
		}
		row.pods++
		if w.node == "" {
			s.waiting++
			s.pending = append(s.pending, *w)
			s.settled = s.settled && w.answered
			continue
		}
		s.bound++
		row.bound++
		nodes[w.workload][w.node] = true
		latencies = append(latencies, w.bound.Sub(w.first))
		if w.bound.After(last) {
			last = w.bound
		}
		switch w.phase {
		case v1.PodRunning:
			s.running++
			row.running++
		case v1.PodSucceeded:
			s.running++
			row.done++
		case v1.PodFailed:
			s.failed++
			row.failed++
			s.failures = append(s.failures, *w)
		default:
			s.settled = false
		}
	}
	for key, row := range rows {
		row.nodes = len(nodes[key])
		s.workloads = append(s.workloads, *row)
	}
	sortRows(s.workloads)
	byName := func(a, b watched) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	}
	slices.SortFunc(s.pending, byName)
	slices.SortFunc(s.failures, byName)
	slices.Sort(latencies)
	s.p50, s.p99 = quantile(latencies, 50), quantile(latencies, 99)
	if took := last.Sub(first).Seconds(); took > 0 {
		s.perSecond = float64(s.bound) / took
	}
	return s
}

func sortRows(rows []workloadRow) {
	slices.SortFunc(rows, func(a, b workloadRow) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
}

// quantile is the smallest value that q percent of the sorted values do not exceed; 0 without values.
func quantile(sorted []time.Duration, q int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max((len(sorted)*q+99)/100-1, 0)]
}
