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

// watchCluster feeds the ledger until ctx ends.
func watchCluster(ctx context.Context, client kubernetes.Interface, l *ledger) {
	nodes := nodeStore{l: l, listed: make(chan struct{})}
	nodeLW := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.CoreV1().Nodes().List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.CoreV1().Nodes().Watch(ctx, o)
		},
	}
	go cache.NewReflectorWithOptions(nodeLW, &v1.Node{}, nodes, cache.ReflectorOptions{Name: "nodes"}).RunWithContext(ctx)

	bound := fields.OneTermNotEqualSelector("spec.nodeName", "").String()
	podLW := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = bound
			return client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = bound
			return client.CoreV1().Pods(metav1.NamespaceAll).Watch(ctx, o)
		},
	}
	go func() {
		select {
		case <-nodes.listed:
		case <-ctx.Done():
			return
		}
		cache.NewReflectorWithOptions(podLW, &v1.Pod{}, podStore{l: l}, cache.ReflectorOptions{Name: "pods"}).RunWithContext(ctx)
	}()
}

// podUID is the work queue's key.
type podUID = types.UID
