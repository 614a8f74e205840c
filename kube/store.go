// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// listed is a compact record on its way through a reflector's list: the reflector wants a name and a version, nothing
// else. Records are made while the list streams in, so that the full objects never stand in memory together.
type listed[R any] struct {
	metav1.Object // nothing, for all listed ones; the methods below hide it
	key           objectKey
	version       string
	rec           *R // nil: the object broke the intake
}

// nothing answers what a reflector's store does not ask today.
var nothing metav1.Object = &metav1.ObjectMeta{}

// GetNamespace is the object's namespace.
func (l *listed[R]) GetNamespace() string { return l.key.namespace }

// GetResourceVersion is the object's version.
func (l *listed[R]) GetResourceVersion() string { return l.version }

// GetName is the object's name.
func (l *listed[R]) GetName() string { return l.key.name }

// podStore feeds an Inbox from a reflector of pods.
type podStore struct{ inbox *Inbox }

var (
	_ cache.TransformingStore = podStore{}
	_ cache.TransformingStore = nodeStore{}
)

// Add takes a new pod.
func (s podStore) Add(obj any) error { return s.Update(obj) }

// Update takes a version of a pod.
func (s podStore) Update(obj any) error {
	p, ok := obj.(*v1.Pod)
	if !ok {
		return fmt.Errorf("pod store: got a %T", obj)
	}
	if rec := s.inbox.convertPod(p); rec != nil {
		s.inbox.setPod(rec)
	}
	return nil
}

// Delete takes a pod that is gone, or whose end was missed.
func (s podStore) Delete(obj any) error {
	key, err := keyOf(obj)
	if err != nil {
		return fmt.Errorf("pod store: %w", err)
	}
	s.inbox.goPod(key)
	return nil
}

// Replace takes a full list.
func (s podStore) Replace(list []any, _ string) error {
	recs := make([]*cluster.Pod, 0, len(list))
	var kept []objectKey
	for _, obj := range list {
		var rec *cluster.Pod
		var key objectKey
		switch o := obj.(type) {
		case *listed[cluster.Pod]:
			rec, key = o.rec, o.key
		case *v1.Pod:
			rec, key = s.inbox.convertPod(o), objectKey{o.Namespace, o.Name}
		default:
			return fmt.Errorf("pod store: got a %T in a list", obj)
		}
		if rec == nil {
			kept = append(kept, key)
			continue
		}
		recs = append(recs, rec)
	}
	s.inbox.replacePods(recs, kept)
	return nil
}

// Resync does nothing: nobody missed anything.
func (podStore) Resync() error { return nil }

// Transformer converts one pod while a list streams in. The reflector does not call it for a list that came in one
// piece, so Replace takes both.
func (s podStore) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		p, ok := obj.(*v1.Pod)
		if !ok {
			return obj, nil
		}
		return &listed[cluster.Pod]{nothing, objectKey{p.Namespace, p.Name}, p.ResourceVersion, s.inbox.convertPod(p)}, nil
	}
}

// nodeStore feeds an Inbox from a reflector of nodes.
type nodeStore struct{ inbox *Inbox }

// Add takes a new node.
func (s nodeStore) Add(obj any) error { return s.Update(obj) }

// Update takes a version of a node.
func (s nodeStore) Update(obj any) error {
	n, ok := obj.(*v1.Node)
	if !ok {
		return fmt.Errorf("node store: got a %T", obj)
	}
	if rec := s.inbox.convertNode(n); rec != nil {
		s.inbox.setNode(rec)
	}
	return nil
}

// Delete takes a node that is gone.
func (s nodeStore) Delete(obj any) error {
	key, err := keyOf(obj)
	if err != nil {
		return fmt.Errorf("node store: %w", err)
	}
	s.inbox.goNode(key)
	return nil
}

// Replace takes a full list.
func (s nodeStore) Replace(list []any, _ string) error {
	recs := make([]*cluster.Node, 0, len(list))
	var kept []objectKey
	for _, obj := range list {
		var rec *cluster.Node
		var key objectKey
		switch o := obj.(type) {
		case *listed[cluster.Node]:
			rec, key = o.rec, o.key
		case *v1.Node:
			rec, key = s.inbox.convertNode(o), objectKey{name: o.Name}
		default:
			return fmt.Errorf("node store: got a %T in a list", obj)
		}
		if rec == nil {
			kept = append(kept, key)
			continue
		}
		recs = append(recs, rec)
	}
	s.inbox.replaceNodes(recs, kept)
	return nil
}

// Resync does nothing: nobody missed anything.
func (nodeStore) Resync() error { return nil }

// Transformer converts one node while a list streams in.
func (s nodeStore) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		n, ok := obj.(*v1.Node)
		if !ok {
			return obj, nil
		}
		return &listed[cluster.Node]{nothing, objectKey{name: n.Name}, n.ResourceVersion, s.inbox.convertNode(n)}, nil
	}
}

func keyOf(obj any) (objectKey, error) {
	if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		namespace, name, err := cache.SplitMetaNamespaceKey(lost.Key)
		return objectKey{namespace, name}, err
	}
	o, ok := obj.(metav1.Object)
	if !ok {
		return objectKey{}, fmt.Errorf("got a %T", obj)
	}
	return objectKey{o.GetNamespace(), o.GetName()}, nil
}
