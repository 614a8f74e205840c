// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
)

// loan is what a call lends to a plugin. A plugin must not modify it; config.Hosted.Check finds out if it does.
type loan struct {
	objects [3]runtime.Object // nil for none
	// node is the NodeInfo of the call. If it is nil and rows is set, the plugin may read the NodeInfos of all nodes.
	node *NodeInfo
	rows bool
}

// lends returns a loan of one pod.
func lends(pod *v1.Pod) loan { return loan{objects: [3]runtime.Object{pod}} }

// inCycle is the loan of a pod and of all NodeInfos.
func inCycle(pod *v1.Pod) loan { return loan{objects: [3]runtime.Object{pod}, rows: true} }

// on is the loan of a pod and one NodeInfo.
func on(pod *v1.Pod, info *NodeInfo) loan {
	return loan{objects: [3]runtime.Object{pod}, node: info, rows: true}
}

// asObject returns a value as an object, nil if it is none.
func asObject(of any) runtime.Object {
	object, _ := of.(runtime.Object)
	return object
}

// suspects are the calls since the NodeInfos of all nodes were compared, without repeats. A plugin may have modified a
// NodeInfo that it found through Handle.
type suspects struct {
	mu    sync.Mutex
	calls []running
}

// add adds a call.
func (s *suspects) add(call running) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.calls, call) {
		s.calls = append(s.calls, call)
	}
}

// take returns the calls and forgets them.
func (s *suspects) take() []running {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

// lend returns what compares a loan after the call; nil if nothing is compared.
func (h *hosted) lend(at config.Point, l loan) func() {
	host := h.profile.host
	if !host.env.Limits.Check {
		return nil
	}
	if l.rows && l.node == nil {
		host.compareRows() // what the calls before did
	}
	var copies [len(l.objects)]runtime.Object
	for i, o := range l.objects {
		if o != nil {
			copies[i] = o.DeepCopyObject()
		}
	}
	return func() {
		for i, o := range l.objects {
			if o != nil && !equality.Semantic.DeepEqual(o, copies[i]) {
				h.broken(at, Modified, fmt.Errorf("it modified %s, which was lent to it", describe(o)))
			}
		}
		if !l.rows {
			return
		}
		if l.node != nil {
			if what := l.node.modified(); what != "" {
				h.broken(at, Modified, fmt.Errorf("it modified %s, which was lent to it", what))
			}
		}
		host.suspects.add(running{h, at})
		if l.node == nil {
			host.compareRows()
		}
	}
}

// describe names an object.
func describe(o runtime.Object) string {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", o), "*")
	if named, is := o.(interface {
		GetNamespace() string
		GetName() string
	}); is {
		return fmt.Sprintf("the %s %s", kind, strings.TrimPrefix(named.GetNamespace()+"/"+named.GetName(), "/"))
	}
	return "a " + kind
}

// compareRows compares the NodeInfos of all nodes with what was lent, and reports the plugins that were called since.
func (h *Host) compareRows() {
	if !h.env.Limits.Check {
		return
	}
	calls := h.suspects.take()
	for _, info := range h.infos.all {
		what := info.(*NodeInfo).modified()
		if what == "" || len(calls) == 0 {
			continue
		}
		var names, places []string
		for _, call := range calls {
			names = append(names, call.plugin.name)
			places = append(places, fmt.Sprintf("plugin %q at %s", call.plugin.name, call.at))
		}
		slices.Sort(names)
		h.report(Problem{strings.Join(slices.Compact(names), " or "), calls[0].at, fmt.Errorf(
			"%s: it modified %s, which was lent to it", strings.Join(places, " or "), what), Modified})
	}
}

// original is what a NodeInfo was when it was lent.
type original struct {
	object *v1.Node // a copy
	// filled is a copy of the computed content; nil until it is computed.
	filled atomic.Pointer[NodeInfo]
}

// keepOriginal notes what a NodeInfo is before it is lent, for modified. before is the NodeInfo of the same row before
// the last change, or nil.
func (n *NodeInfo) keepOriginal(before *NodeInfo) {
	n.original = &original{}
	if before != nil && before.original != nil && before.node == n.node {
		n.original.object = before.original.object
	} else {
		n.original.object = n.node.DeepCopy()
	}
	if n.fromNode != nil {
		n.keepContent()
	}
}

// keepContent notes the computed content.
func (n *NodeInfo) keepContent() {
	filled := n.copied()
	filled.fromNode.images = map[string]*fwk.ImageStateSummary{}
	for name, state := range n.fromNode.images { // order: builds a map
		filled.fromNode.images[name] = new(*state)
	}
	for _, info := range n.pods {
		if ours, is := info.(*PodInfo); is && ours.original == nil {
			ours.original = ours.pod.DeepCopy()
		}
	}
	n.original.filled.Store(filled)
}

// modified describes what differs from what was lent; empty if nothing does. What it describes once is not described
// again.
func (n *NodeInfo) modified() string {
	if n.original == nil {
		return ""
	}
	what := ""
	if !equality.Semantic.DeepEqual(n.node, n.original.object) {
		what = fmt.Sprintf("the object of node %s", n.original.object.Name)
	}
	if was := n.original.filled.Load(); was != nil {
		if !n.same(was) {
			what = fmt.Sprintf("the NodeInfo of node %s", n.original.object.Name)
		}
		for _, info := range was.pods {
			ours, is := info.(*PodInfo)
			if is && ours.original != nil && !equality.Semantic.DeepEqual(ours.pod, ours.original) {
				what = fmt.Sprintf("%s on node %s", describe(ours.original), n.original.object.Name)
				ours.original = ours.pod.DeepCopy()
			}
		}
	}
	if what != "" {
		n.keepOriginal(nil)
	}
	return what
}

// same reports whether the computed content is that of a copy.
func (n *NodeInfo) same(was *NodeInfo) bool {
	return slices.Equal(n.pods, was.pods) && slices.Equal(n.affinity, was.affinity) &&
		slices.Equal(n.anti, was.anti) && n.generation == was.generation &&
		reflect.DeepEqual(n.ports, was.ports) && maps.Equal(n.claims, was.claims) &&
		reflect.DeepEqual(n.requested, was.requested) && reflect.DeepEqual(n.nonZero, was.nonZero) &&
		reflect.DeepEqual(n.fromNode.allocatable, was.fromNode.allocatable) &&
		reflect.DeepEqual(n.fromNode.images, was.fromNode.images)
}

// ownedState is a CycleState as one plugin receives it at a point, if its changes are checked.
type ownedState struct {
	*CycleState
	by *hosted
	at config.Point
}

// state returns a CycleState in the form in which a plugin receives it.
func (h *hosted) state(at config.Point, of fwk.CycleState) fwk.CycleState {
	if !h.profile.host.env.Limits.Check {
		return of
	}
	switch s := of.(type) {
	case *CycleState:
		return ownedState{s, h, at}
	case ownedState:
		return ownedState{s.CycleState, h, at}
	}
	return of
}

// Write stores a value, and reports a plugin that replaces what another plugin of the profile wrote.
func (o ownedState) Write(key fwk.StateKey, value fwk.StateData) {
	o.own(key, "replaced")
	o.CycleState.Write(key, value)
	o.writers.Store(key, o.by)
}

// Delete removes a value, and reports a plugin that removes what another one wrote.
func (o ownedState) Delete(key fwk.StateKey) {
	o.own(key, "deleted")
	o.CycleState.Delete(key)
	o.writers.Delete(key)
}

// own reports that a plugin changes a value unless it wrote it.
func (o ownedState) own(key fwk.StateKey, verb string) {
	writer, known := o.writers.Load(key)
	if !known || writer == o.by || strings.HasPrefix(string(key), ownKeys) {
		return
	}
	o.by.broken(o.at, Modified, fmt.Errorf("it %s data of plugin %q in the CycleState, key %q", verb,
		writer.(*hosted).name, key))
}

// Clone returns a copy for the same plugin.
func (o ownedState) Clone() fwk.CycleState { return ownedState{o.clone(), o.by, o.at} }
