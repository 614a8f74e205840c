// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Recording is what a scheduler decided in a correct run of a workload. The null binder plays it: the objects of a
// workload have the same names in every run, so what was right for a name is right again.
type Recording struct {
	// Parts: namespace/name of a pod -> what was decided about it.
	Parts map[string]Part `json:"parts"`
}

// Part is what was decided about one pod.
type Part struct {
	// Node is empty for a pod that was refused and never bound.
	Node string `json:"node,omitempty"`
	// Victims are the pods, namespace/name, that were told to leave the node before this one was bound there.
	Victims []string `json:"victims,omitempty"`
}

// podStore shows a reflector's pods as they come and go. It keeps none.
type podStore struct {
	show   func(*corev1.Pod)
	gone   func(*corev1.Pod)
	listed func()
	once   sync.Once
}

var _ cache.ReflectorStore = (*podStore)(nil)

func (s *podStore) give(obj any, to func(*corev1.Pod)) error {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("watch of pods: got a %T", obj)
	}
	to(p)
	return nil
}

// Add shows a pod.
func (s *podStore) Add(obj any) error { return s.give(obj, s.show) }

// Update shows a pod.
func (s *podStore) Update(obj any) error { return s.give(obj, s.show) }

// Delete tells that a pod is gone.
func (s *podStore) Delete(obj any) error { return s.give(obj, s.gone) }

// Replace shows a full list.
func (s *podStore) Replace(list []any, _ string) error {
	for _, obj := range list {
		if err := s.Add(obj); err != nil {
			return err
		}
	}
	s.once.Do(s.listed)
	return nil
}

// Resync does nothing.
func (s *podStore) Resync() error { return nil }

// watchPods shows all pods that have not finished, which is what schedulers watch, until ctx ends.
func watchPods(ctx context.Context, client kubernetes.Interface, to *podStore) {
	const unfinished = "status.phase!=Succeeded,status.phase!=Failed"
	pods := client.CoreV1().Pods(metav1.NamespaceAll)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = unfinished
			return pods.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = unfinished
			return pods.Watch(ctx, o)
		},
	}
	cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, client), &corev1.Pod{}, to,
		cache.ReflectorOptions{Name: "pods"}).RunWithContext(ctx)
}

func keyOf(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

// condition is the status of a condition of a pod; empty when it has none.
func condition(p *corev1.Pod, of corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range p.Status.Conditions {
		if c.Type == of {
			return c.Status
		}
	}
	return ""
}

// recorder notes what is decided while a workload runs.
type recorder struct {
	mu sync.Mutex
	// parts: namespace/name -> the decision so far.
	parts map[string]Part
	// leaving: node -> pods, namespace/name, that were told to leave it and that no pod was bound after yet.
	leaving map[string][]string
	told    map[types.UID]bool // UID -> is in leaving, or was
}

func newRecorder() *recorder {
	return &recorder{parts: map[string]Part{}, leaving: map[string][]string{}, told: map[types.UID]bool{}}
}

// see notes what became of a pod.
func (r *recorder) see(p *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, node := keyOf(p), p.Spec.NodeName
	part, known := r.parts[key]
	switch {
	case node != "" && part.Node == "":
		// Whoever was told to leave made room for this one: it is the first that was bound there since.
		r.parts[key] = Part{Node: node, Victims: r.leaving[node]}
		delete(r.leaving, node)
	case node == "" && !known && condition(p, corev1.PodScheduled) == corev1.ConditionFalse && len(p.Spec.SchedulingGates) == 0:
		r.parts[key] = Part{}
	}
	if node != "" && condition(p, corev1.DisruptionTarget) == corev1.ConditionTrue && !r.told[p.UID] {
		r.told[p.UID] = true
		r.leaving[node] = append(r.leaving[node], key)
	}
}

// store is for a reflector. A victim that is deleted in one go is seen once, with its condition, when it is gone.
func (r *recorder) store(listed func()) *podStore {
	return &podStore{show: r.see, gone: r.see, listed: listed}
}

func (r *recorder) recording() Recording {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Recording{Parts: r.parts}
}

func (r Recording) write(path string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// player is a null binder that plays a recording.
type player struct {
	*null
	recording Recording

	mu    sync.Mutex
	begun map[types.UID]bool // UID -> a binder has it, or had
	// uids: namespace/name -> that of the pod with this name, for victims.
	uids map[string]types.UID
	// free: namespace -> nodes that a bound pod has left, for pods that the recording does not know: those of a steady state,
	// of which there are as many as there is time.
	free map[string][]string
}

func newPlayer(n *null, file string) (*player, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p := &player{null: n, begun: map[types.UID]bool{}, uids: map[string]types.UID{}, free: map[string][]string{}}
	if err := json.Unmarshal(text, &p.recording); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

// store is for a reflector: pods that wait and may be scheduled go to the binders, once.
func (pl *player) store(listed func()) *podStore {
	return &podStore{listed: listed, show: func(p *corev1.Pod) {
		pl.mu.Lock()
		pl.uids[keyOf(p)] = p.UID
		waits := p.Spec.NodeName == "" && len(p.Spec.SchedulingGates) == 0 && p.DeletionTimestamp == nil && !pl.begun[p.UID]
		if waits {
			pl.begun[p.UID] = true
		}
		pl.mu.Unlock()
		if waits {
			pl.pods <- p
		}
	}, gone: func(p *corev1.Pod) {
		if p.Spec.NodeName != "" {
			pl.mu.Lock()
			pl.free[p.Namespace] = append(pl.free[p.Namespace], p.Spec.NodeName)
			pl.mu.Unlock()
		}
	}}
}

// partOf is what was decided about a pod. One that the recording does not know takes the node that one of its namespace
// left first, and is refused when there is none.
func (pl *player) partOf(p *corev1.Pod) Part {
	if part, known := pl.recording.Parts[keyOf(p)]; known {
		return part
	}
	pl.mu.Lock()
	defer pl.mu.Unlock()
	free := pl.free[p.Namespace]
	if len(free) == 0 {
		return Part{}
	}
	pl.free[p.Namespace] = free[1:]
	return Part{Node: free[0]}
}

// playAll makes the writes of pods until there are no more.
func (pl *player) playAll(ctx context.Context) {
	for p := range pl.pods {
		if err := pl.play(ctx, p); err != nil && !apierrors.IsNotFound(err) {
			fmt.Fprintf(pl.stderr, "%s: %v\n", keyOf(p), err)
		}
	}
}

func (pl *player) play(ctx context.Context, p *corev1.Pod) error {
	part := pl.partOf(p)
	if part.Node == "" || len(part.Victims) > 0 {
		if err := pl.refuse(ctx, p, part.Node); err != nil {
			return err
		}
	}
	for _, victim := range part.Victims {
		if err := pl.evict(ctx, victim); err != nil {
			return err
		}
	}
	if part.Node == "" {
		return nil
	}
	return pl.bind(ctx, p, part.Node)
}

// refuse writes what schedulers write of a pod that has no place: the condition, the node that it will have when others
// have left, the event.
func (pl *player) refuse(ctx context.Context, p *corev1.Pod, nominated string) error {
	type status struct {
		Conditions    []corev1.PodCondition `json:"conditions"`
		NominatedNode string                `json:"nominatedNodeName,omitempty"`
	}
	const message = "0 nodes are available"
	patch, err := json.Marshal(map[string]status{"status": {NominatedNode: nominated, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message,
		LastTransitionTime: metav1.Now()}}}})
	if err != nil {
		return err
	}
	_, err = pl.clients.Binds.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("refuse: %w", err)
	}
	e := pl.event(p, "")
	e.Reason, e.Action, e.Type, e.Note = "FailedScheduling", "Scheduling", corev1.EventTypeWarning, message
	pl.bound <- e
	return nil
}

// evict makes the writes of a victim: the condition and the deletion.
func (pl *player) evict(ctx context.Context, key string) error {
	pl.mu.Lock()
	uid := pl.uids[key]
	pl.mu.Unlock()
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.PodCondition{{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
		Message: "preempting to accommodate a higher priority pod", LastTransitionTime: metav1.NewTime(time.Now())}}}})
	if err != nil {
		return err
	}
	pods := pl.clients.Binds.CoreV1().Pods(namespace)
	_, marked := pods.Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	deleted := pods.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	for _, err := range []error{marked, deleted} {
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("evict %s: %w", key, errors.Join(marked, deleted))
		}
	}
	return nil
}

// newNull has room for all pods and events of a run, so that no watch waits for a binder.
func newNull() *null {
	return &null{stderr: os.Stderr, pods: make(chan *corev1.Pod, 1<<20), bound: make(chan *eventsv1.Event, 1<<20)}
}

// playable tells why null cannot play a plan; empty when it can.
func playable(opcodes []string) string {
	for _, code := range []string{"createResourceDriver", "createResourceClaims", "allocResourceClaims"} {
		if slices.Contains(opcodes, code) {
			return "null does not write the status of resource claims"
		}
	}
	return ""
}
