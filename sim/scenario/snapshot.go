// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Snapshot is a cluster at the end of a capture or a recording.
type Snapshot struct {
	At      record.Time
	nodes   list[string, *cluster.Node]
	pods    list[cluster.UID, *cluster.Pod]
	objects list[objectID, cluster.Object]
}

type objectID struct {
	kind cluster.Kind
	key  cluster.ObjectKey
}

// list holds values by key, in the order in which the keys were added.
type list[K comparable, V any] struct {
	at    map[K]int // key -> index in keys and values
	keys  []K
	value []V
}

func (l *list[K, V]) set(k K, v V) {
	if l.at == nil {
		l.at = map[K]int{}
	}
	if i, is := l.at[k]; is {
		l.value[i] = v
		return
	}
	l.at[k] = len(l.keys)
	l.keys, l.value = append(l.keys, k), append(l.value, v)
}

func (l *list[K, V]) drop(k K) { delete(l.at, k) }

// all returns the values that are there.
func (l *list[K, V]) all() []V {
	out := make([]V, 0, len(l.at))
	for i, k := range l.keys {
		if at, is := l.at[k]; is && at == i {
			out = append(out, l.value[i])
		}
	}
	return out
}

// Add adds an event of the recording, in its order.
func (s *Snapshot) Add(ev engine.Event) {
	switch ev := ev.(type) {
	case engine.Tick:
		s.At = max(s.At, ev.Now)
	case engine.NodeSet:
		s.nodes.set(ev.Node.Name, ev.Node)
	case engine.NodeGone:
		s.nodes.drop(ev.Name)
	case engine.PodSet:
		s.pods.set(ev.Pod.UID, ev.Pod)
	case engine.PodGone:
		s.pods.drop(cluster.UID(ev.Pod.UID))
	case engine.ObjectSet:
		s.objects.set(objectID{cluster.KindOf(ev.Object), cluster.KeyOf(ev.Object)}, ev.Object)
	case engine.ObjectGone:
		s.objects.drop(objectID{ev.Kind, ev.Key})
	}
}

// Nodes returns the nodes in the order in which they were first seen.
func (s *Snapshot) Nodes() []*cluster.Node { return s.nodes.all() }

// Node returns a node by name, nil if there is none.
func (s *Snapshot) Node(name string) *cluster.Node {
	if i, is := s.nodes.at[name]; is {
		return s.nodes.value[i]
	}
	return nil
}

// Pods returns the pods in the order in which they were first seen, pending ones included.
func (s *Snapshot) Pods() []*cluster.Pod { return s.pods.all() }

// Objects returns the other objects.
func (s *Snapshot) Objects() []cluster.Object { return s.objects.all() }

// SchedulerNames returns the scheduler names of all pods.
func (s *Snapshot) SchedulerNames() (names []string) {
	for _, p := range s.Pods() {
		if !slices.Contains(names, p.Spec.SchedulerName) {
			names = append(names, p.Spec.SchedulerName)
		}
	}
	return names
}
