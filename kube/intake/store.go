// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// listed is a compact record on its way through a reflector's list: the reflector wants a name and a version, nothing
// else. Records are made while the list streams in, so that the full objects never stand in memory together.
type listed[R comparable] struct {
	metav1.Object // nothing, for all listed ones; the methods below hide it
	keyed[R]
}

// nothing answers what a reflector's store does not ask today.
var nothing metav1.Object = &metav1.ObjectMeta{}

// GetNamespace is the object's namespace.
func (l *listed[R]) GetNamespace() string { return l.key.namespace }

// GetResourceVersion is the object's version.
func (l *listed[R]) GetResourceVersion() string { return l.version }

// GetName is the object's name.
func (l *listed[R]) GetName() string { return l.key.name }

// store feeds an Inbox from a reflector of API objects of type O, which become records R.
type store[O metav1.Object, R comparable] struct {
	inbox *Inbox
	rows  *rows[R]
	// convert makes the record, zero when the object broke the intake.
	convert func(O) R
	// prefix stands before the names, where a kind has objects of several APIs.
	prefix string
}

func newPodStore(in *Inbox) store[*v1.Pod, *cluster.Pod] {
	return store[*v1.Pod, *cluster.Pod]{in, in.pods, in.convertPod, ""}
}

func newNodeStore(in *Inbox) store[*v1.Node, *cluster.Node] {
	return store[*v1.Node, *cluster.Node]{in, in.nodes, in.convertNode, ""}
}

func newObjectStore(in *Inbox, t *rows[cluster.Object]) store[cluster.Object, cluster.Object] {
	return store[cluster.Object, cluster.Object]{in, t,
		func(obj cluster.Object) cluster.Object { return in.convertObject(t.kind, obj) }, ""}
}

// PodStore is where a reflector puts the pods of an Inbox.
func (in *Inbox) PodStore() cache.ReflectorStore { return newPodStore(in) }

// NodeStore is where a reflector puts the nodes of an Inbox.
func (in *Inbox) NodeStore() cache.ReflectorStore { return newNodeStore(in) }

var _ cache.TransformingStore = store[*v1.Pod, *cluster.Pod]{}

// Add takes a new object.
func (s store[O, R]) Add(obj any) error { return s.Update(obj) }

// Update takes a version of an object.
func (s store[O, R]) Update(obj any) error {
	o, ok := obj.(O)
	if !ok {
		return fmt.Errorf("store of %T: got a %T", *new(O), obj)
	}
	if k := s.keyed(o); k.rec != *new(R) {
		s.rows.set(&s.inbox.backlog, &k)
	}
	return nil
}

func (s store[O, R]) keyed(o O) keyed[R] {
	k := keyed[R]{key: objectKey{o.GetNamespace(), s.prefix + o.GetName()}, version: o.GetResourceVersion(),
		rec: s.convert(o)}
	if s.rows.whole != nil && (s.rows.wanted == nil || s.rows.wanted(o)) {
		o.SetManagedFields(nil)
		k.whole = o
	}
	return k
}

// Delete takes an object that is gone, or whose end was missed.
func (s store[O, R]) Delete(obj any) error {
	key, err := keyOf(obj)
	if err != nil {
		return fmt.Errorf("store of %T: %w", *new(O), err)
	}
	key.name = s.prefix + key.name
	s.rows.gone(&s.inbox.backlog, key)
	return nil
}

// Replace takes a full list.
func (s store[O, R]) Replace(list []any, _ string) error {
	came := time.Now()
	all := make([]*keyed[R], 0, len(list))
	for _, obj := range list {
		switch o := obj.(type) {
		case *listed[R]:
			all = append(all, &o.keyed)
		case O:
			k := s.keyed(o)
			all = append(all, &k)
		default:
			return fmt.Errorf("store of %T: got a %T in a list", *new(O), obj)
		}
	}
	s.rows.replace(&s.inbox.backlog, all, came)
	return nil
}

// Resync does nothing: no event was missed.
func (store[O, R]) Resync() error { return nil }

// Transformer converts one object while a list streams in. The reflector does not call it for a list that came in one
// piece, so Replace takes both.
func (s store[O, R]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		o, ok := obj.(O)
		if !ok {
			return obj, nil
		}
		return &listed[R]{nothing, s.keyed(o)}, nil
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
