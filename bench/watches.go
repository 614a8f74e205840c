// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

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
