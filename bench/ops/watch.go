// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

// Pod is the observed state of a pod. A time is zero if it has not happened.
type Pod struct {
	Namespace, Name string
	Labels          map[string]string
	Group           string // its pod group, namespace/name; empty for none
	// Op is the operation that created it, -1 for a pod of another client.
	Op int
	// Asked is when the creation began, or when it was due if there is a rate, so that delays of this program or the
	// API server count. Attempted is when the watch first showed a node or a condition PodScheduled, Bound when it
	// first showed a node. Gone is when it was seen deleted, or being deleted and without a node.
	Asked, Attempted, Bound, Gone time.Time
	Node                          string
	// Refused is the last reason why it has no node; empty if there was none.
	Refused string
}

// Latency is the seconds from asked to bound: infinite for a pod that was not bound.
func (p *Pod) Latency() float64 {
	if p.Bound.IsZero() {
		return math.Inf(1)
	}
	return p.Bound.Sub(p.Asked).Seconds()
}

// Is reports whether a pod is in one of the namespaces (any, if there are none) and has the labels.
func (p *Pod) Is(namespaces []string, want map[string]string) bool {
	return (len(namespaces) == 0 || slices.Contains(namespaces, p.Namespace)) && labels.SelectorFromSet(want).Matches(labels.Set(p.Labels))
}

// entry is a pod with its waiters.
type entry struct {
	Pod
	uid types.UID // empty until it was seen
	// awaited pods are those that CreatePods makes, for which barriers wait.
	awaited bool
	waiting []*waiter
	// freed, when not nil, is called once, when the pod is bound or gone.
	freed func()
}

func (e *entry) key() string { return e.Namespace + "/" + e.Name }

// at reports whether a pod has reached a stage, or never will because it is gone.
func (e *entry) at(stage workload.Stage) bool {
	return !e.Bound.IsZero() || !e.Gone.IsZero() || stage == workload.Attempted && !e.Attempted.IsZero()
}

// waiter waits until some pods have reached a stage, or some groups have enough bound pods.
type waiter struct {
	stage    workload.Stage
	groups   map[string]int // group that is waited for, namespace/name -> pods that must be bound; nil when waiting for pods
	left, of int
	moved    time.Time     // when one of them last came to a stage; what happens to others is no progress
	done     chan struct{} // closed when none is left
}

func (wait *waiter) one(now time.Time) {
	wait.moved = now
	if wait.left--; wait.left == 0 {
		close(wait.done)
	}
}

// what names the condition of the wait.
func (wait *waiter) what() string {
	if wait.groups != nil {
		return "pod groups"
	}
	return "pods"
}

// Watch records when each pod was created, attempted and bound. It is safe for concurrent use.
type Watch struct {
	clock  Clock
	synced chan struct{} // closed after the first list

	mu sync.Mutex
	// pods are in the order in which they were asked for or, those of others, seen.
	pods  []*entry
	named map[string]*entry    // namespace/name -> the newest of that name
	known map[types.UID]*entry // UID -> the pod, once seen
	// bound: group, namespace/name -> pods of it that were bound. waiting wait for groups.
	bound   map[string]int
	waiting []*waiter
}

// NewWatch makes a watch for one run; the clock is nil for that of the machine.
func NewWatch(clock Clock) *Watch {
	if clock == nil {
		clock = machine{}
	}
	return &Watch{clock: clock, synced: make(chan struct{}), named: map[string]*entry{}, known: map[types.UID]*entry{}, bound: map[string]int{}}
}

// Pods are those in the namespaces (in all when there are none) that have the labels, in the order in which they were
// asked for or, those of others, seen.
func (w *Watch) Pods(namespaces []string, want map[string]string) []Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Pod
	for _, e := range w.pods {
		if e.Is(namespaces, want) {
			out = append(out, e.Pod)
		}
	}
	return out
}

// ask records a pod whose creation begins now.
func (w *Watch) ask(e *entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods = append(w.pods, e)
	w.named[e.key()] = e
}

// expect makes a waiter for n pods that are not created yet.
func expect(stage workload.Stage, n int) *waiter {
	wait := &waiter{stage: stage, left: n, of: n, done: make(chan struct{})}
	if n == 0 {
		close(wait.done)
	}
	return wait
}

// await makes a waiter for the pods that match and are not at the stage yet.
func (w *Watch) await(stage workload.Stage, match func(*entry) bool) *waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	wait := expect(stage, 0)
	for _, e := range w.pods {
		if !match(e) {
			continue
		}
		wait.of++
		if !e.at(stage) {
			wait.left++
			e.waiting = append(e.waiting, wait)
		}
	}
	if wait.left > 0 {
		wait.done = make(chan struct{})
	}
	return wait
}

// missing returns how many pods or groups a waiter still waits for, and when one of them last made progress.
func (w *Watch) missing(wait *waiter) (left int, moved time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return wait.left, wait.moved
}

// missingNames returns up to n names of pods or groups that a waiter waits for, with the reason why the first pod of
// them has no node, if there is one.
func (w *Watch) missingNames(wait *waiter, n int) (names []string, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	names = slices.Sorted(maps.Keys(wait.groups))
	for _, e := range w.pods {
		_, grouped := wait.groups[e.Group]
		if slices.Contains(e.waiting, wait) {
			names = append(names, e.key())
		} else if !grouped || !e.Bound.IsZero() {
			continue
		}
		if why == "" {
			why = e.Refused
		}
	}
	return names[:min(n, len(names))], why
}

// see records the state of a pod from the API server.
func (w *Watch) see(p *corev1.Pod) {
	now := w.clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.find(p)
	e.Labels = p.Labels
	e.Group = groupOf(p)
	bound := p.Spec.NodeName != ""
	e.Refused = refusal(p)
	if e.Attempted.IsZero() && (bound || conditioned(p)) {
		e.Attempted = now
		e.move(now)
	}
	if e.Bound.IsZero() && bound {
		e.Bound, e.Node = now, p.Spec.NodeName
		w.settleGroup(e.Group, now)
	}
	if !bound && p.DeletionTimestamp != nil {
		w.lose(e, now)
	}
	e.settle(now)
}

// move records progress of a pod for its waiters.
func (e *entry) move(now time.Time) {
	for _, wait := range e.waiting {
		wait.moved = now
	}
}

// groupOf is the group of a pod, namespace/name; empty for none.
func groupOf(p *corev1.Pod) string {
	if p.Spec.SchedulingGroup == nil || p.Spec.SchedulingGroup.PodGroupName == nil {
		return ""
	}
	return p.Namespace + "/" + *p.Spec.SchedulingGroup.PodGroupName
}

// settleGroup counts one more pod of a group that is bound.
func (w *Watch) settleGroup(group string, now time.Time) {
	w.bound[group]++
	for _, wait := range w.waiting {
		need, waited := wait.groups[group]
		if !waited {
			continue
		}
		wait.moved = now
		if w.bound[group] >= need {
			delete(wait.groups, group)
			wait.one(now)
		}
	}
}

// awaitGroups makes a waiter for groups with how many pods of each must be bound.
func (w *Watch) awaitGroups(need map[string]int) *waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	wait := expect(workload.Scheduled, 0)
	wait.of, wait.groups = len(need), map[string]int{}
	for group, n := range need {
		if w.bound[group] < n {
			wait.groups[group] = n
		}
	}
	if wait.left = len(wait.groups); wait.left > 0 {
		wait.done = make(chan struct{})
		w.waiting = append(w.waiting, wait)
	}
	return wait
}

// conditioned reports whether a pod has a condition that it cannot be scheduled, or must not be scheduled yet.
func conditioned(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
}

// refusal returns the reason in a pod's condition why it has no node.
func refusal(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

// find gives the entry of a pod: by its UID, or by its name if that was asked for and not seen yet.
func (w *Watch) find(p *corev1.Pod) *entry {
	if e := w.known[p.UID]; e != nil {
		return e
	}
	e := w.named[p.Namespace+"/"+p.Name]
	if e == nil || e.uid != "" {
		e = &entry{Pod: Pod{Namespace: p.Namespace, Name: p.Name, Op: -1}}
		w.pods = append(w.pods, e)
		w.named[e.key()] = e
	}
	e.uid = p.UID
	w.known[p.UID] = e
	return e
}

// lose records that a pod is deleted.
func (w *Watch) lose(e *entry, now time.Time) {
	if e.Gone.IsZero() {
		e.Gone = now
	}
	e.settle(now)
}

// settle notifies the waiters of the new stage of a pod.
func (e *entry) settle(now time.Time) {
	e.waiting = slices.DeleteFunc(e.waiting, func(wait *waiter) bool {
		if !e.at(wait.stage) {
			return false
		}
		wait.one(now)
		return true
	})
	if e.freed != nil && e.at(workload.Scheduled) {
		e.freed()
		e.freed = nil
	}
}

// follow watches all pods until ctx ends.
func (w *Watch) follow(ctx context.Context, client kubernetes.Interface) {
	pods := client.CoreV1().Pods(metav1.NamespaceAll)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return pods.Watch(ctx, o)
		},
	}
	cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, client), &corev1.Pod{}, &sight{watch: w},
		cache.ReflectorOptions{Name: "pods of the workload"}).RunWithContext(ctx)
}

// sight is the store of the reflector: it keeps nothing and passes all to the watch.
type sight struct {
	watch *Watch
	once  sync.Once
}

var _ cache.ReflectorStore = (*sight)(nil)

// Add shows a pod.
func (s *sight) Add(obj any) error {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("watch of pods: got a %T", obj)
	}
	s.watch.see(p)
	return nil
}

// Update shows a pod.
func (s *sight) Update(obj any) error { return s.Add(obj) }

// Delete shows that a pod is gone.
func (s *sight) Delete(obj any) error {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("watch of pods: got a %T", obj)
	}
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	s.watch.lose(s.watch.find(p), s.watch.clock.Now())
	return nil
}

// Replace shows all pods; those that were there before and are not among them are gone.
func (s *sight) Replace(list []any, _ string) error {
	there := map[types.UID]bool{} // UID -> is in the list
	for _, obj := range list {
		if err := s.Add(obj); err != nil {
			return err
		}
		there[obj.(*corev1.Pod).UID] = true
	}
	s.watch.mu.Lock()
	now := s.watch.clock.Now()
	for _, e := range s.watch.pods {
		if e.uid != "" && !there[e.uid] {
			s.watch.lose(e, now)
		}
	}
	s.watch.mu.Unlock()
	s.once.Do(func() { close(s.watch.synced) })
	return nil
}

// Resync does nothing.
func (s *sight) Resync() error { return nil }
