// SPDX-License-Identifier: Apache-2.0

package noop

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// shows is a store of a reflector that passes created, changed and deleted objects to functions and keeps none. A nil
// function is not called.
type shows[T any] struct {
	added, updated, deleted func(T)
	// listed is called after the first list, once.
	listed func()
	once   sync.Once
}

var _ cache.ReflectorStore = (*shows[*corev1.Pod])(nil)

func (s *shows[T]) give(obj any, to func(T)) error {
	o, ok := obj.(T)
	if !ok {
		return fmt.Errorf("watch of %T: got a %T", o, obj)
	}
	if to != nil {
		to(o)
	}
	return nil
}

// Add shows a new object.
func (s *shows[T]) Add(obj any) error { return s.give(obj, s.added) }

// Update shows a changed object.
func (s *shows[T]) Update(obj any) error { return s.give(obj, s.updated) }

// Delete handles the deletion of an object.
func (s *shows[T]) Delete(obj any) error { return s.give(obj, s.deleted) }

// Replace shows a full list, each as a new object.
func (s *shows[T]) Replace(list []any, _ string) error {
	for _, obj := range list {
		if err := s.Add(obj); err != nil {
			return err
		}
	}
	s.once.Do(s.listed)
	return nil
}

// Resync does nothing.
func (s *shows[T]) Resync() error { return nil }

// api is the part of a client that knows one kind of objects; L is a list of them.
type api[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// watchAll shows all objects of a kind whose fields match until ctx ends.
func watchAll[L runtime.Object](ctx context.Context, client kubernetes.Interface, of api[L], example runtime.Object, fields string, to cache.ReflectorStore) {
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = fields
			return of.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = fields
			return of.Watch(ctx, o)
		},
	}
	cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, client), example, to,
		cache.ReflectorOptions{Name: fmt.Sprintf("%T", example)}).RunWithContext(ctx)
}

// watchNodes shows all nodes until ctx ends.
func watchNodes(ctx context.Context, client kubernetes.Interface, to *shows[*corev1.Node]) {
	watchAll(ctx, client, client.CoreV1().Nodes(), &corev1.Node{}, "", to)
}

// watchPods shows all pods that have not finished, which is what schedulers watch, until ctx ends.
func watchPods(ctx context.Context, client kubernetes.Interface, to *shows[*corev1.Pod]) {
	watchAll(ctx, client, client.CoreV1().Pods(metav1.NamespaceAll), &corev1.Pod{}, "status.phase!=Succeeded,status.phase!=Failed", to)
}

// watchClaims shows all resource claims until ctx ends.
func watchClaims(ctx context.Context, client kubernetes.Interface, to *shows[*resourceapi.ResourceClaim]) {
	watchAll(ctx, client, client.ResourceV1().ResourceClaims(metav1.NamespaceAll), &resourceapi.ResourceClaim{}, "", to)
}

// eachOnce passes each new pod on once, regardless of later changes: no pod of a run returns under its UID.
func eachOnce(listed func(), show func(*corev1.Pod)) *shows[*corev1.Pod] {
	known := map[types.UID]bool{} // UID -> was shown
	one := func(p *corev1.Pod) {
		if !known[p.UID] {
			known[p.UID] = true
			show(p)
		}
	}
	return &shows[*corev1.Pod]{added: one, updated: one, listed: listed}
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
