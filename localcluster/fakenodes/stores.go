// SPDX-License-Identifier: Apache-2.0

package fakenodes

import (
	"context"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// podStore and nodeStore hand a reflector's calls, which come one by one in the
// order of the watch, to the ledger.
type podStore struct{ l *ledger }

type nodeStore struct {
	l *ledger
	// listed is closed after the first list, so that pods are looked at with
	// their nodes known.
	listed chan struct{}
}

func (s podStore) Add(obj any) error    { return s.Update(obj) }
func (s podStore) Update(obj any) error { s.l.SetPod(slim(obj.(*v1.Pod))); return nil }
func (s podStore) Delete(obj any) error { s.l.DropPod(obj.(*v1.Pod).UID); return nil }
func (s podStore) Resync() error        { return nil }

func (s podStore) Replace(list []any, _ string) error {
	pods := make([]*v1.Pod, 0, len(list))
	for _, obj := range list {
		pods = append(pods, slim(obj.(*v1.Pod)))
	}
	s.l.ReplacePods(pods)
	return nil
}

// slim drops what no one reads here and what fills most of an object.
func slim(pod *v1.Pod) *v1.Pod {
	pod.ManagedFields = nil
	return pod
}

func (s nodeStore) Add(obj any) error    { return s.Update(obj) }
func (s nodeStore) Delete(obj any) error { s.l.DropNode(obj.(*v1.Node).Name); return nil }
func (s nodeStore) Resync() error        { return nil }

func (s nodeStore) Update(obj any) error {
	node := obj.(*v1.Node)
	node.ManagedFields = nil
	s.l.SetNode(node)
	return nil
}

func (s nodeStore) Replace(list []any, _ string) error {
	// listed: node name -> in the list.
	listed := map[string]bool{}
	for _, obj := range list {
		listed[obj.(*v1.Node).Name] = true
	}
	s.l.mu.Lock()
	var gone []string
	for name := range s.l.nodes {
		if !listed[name] {
			gone = append(gone, name)
		}
	}
	s.l.mu.Unlock()
	for _, name := range gone {
		s.l.DropNode(name)
	}
	for _, obj := range list {
		if err := s.Update(obj); err != nil {
			return err
		}
	}
	select {
	case <-s.listed:
	default:
		close(s.listed)
	}
	return nil
}

// shown is a store of a reflector that shows each object when it comes or
// changes, and keeps none.
type shown[T any] func(T)

func (s shown[T]) Add(obj any) error    { return s.Update(obj) }
func (s shown[T]) Update(obj any) error { s(obj.(T)); return nil }
func (s shown[T]) Delete(any) error     { return nil }
func (s shown[T]) Resync() error        { return nil }

func (s shown[T]) Replace(list []any, _ string) error {
	for _, obj := range list {
		s(obj.(T))
	}
	return nil
}

// reflector feeds a store from one kind of objects, those whose fields match.
func reflector[L runtime.Object](name string, kind runtime.Object, list func(context.Context, metav1.ListOptions) (L, error),
	follow func(context.Context, metav1.ListOptions) (watch.Interface, error), match string, to cache.ReflectorStore) *cache.Reflector {
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = match
			return list(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = match
			return follow(ctx, o)
		},
	}
	return cache.NewReflectorWithOptions(lw, kind, to, cache.ReflectorOptions{Name: name})
}

// watchCluster feeds the ledger until ctx ends.
func watchCluster(ctx context.Context, client kubernetes.Interface, l *ledger) {
	nodes := nodeStore{l: l, listed: make(chan struct{})}
	go reflector("nodes", &v1.Node{}, client.CoreV1().Nodes().List, client.CoreV1().Nodes().Watch, "", nodes).RunWithContext(ctx)

	pods := client.CoreV1().Pods(metav1.NamespaceAll)
	bound := fields.OneTermNotEqualSelector("spec.nodeName", "").String()
	go func() {
		select {
		case <-nodes.listed:
		case <-ctx.Done():
			return
		}
		reflector("pods", &v1.Pod{}, pods.List, pods.Watch, bound, podStore{l: l}).RunWithContext(ctx)
	}()
}

// podUID is the work queue's key.
type podUID = types.UID
