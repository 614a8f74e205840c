// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"
)

// pending is a pod that was added without a node.
type pending struct {
	pod   *corev1.Pod
	added time.Time
	bound time.Time // when its bind came; zero as long as it waits
}

// Counts is what was written by clients.
type Counts struct {
	// Binds were accepted. Refused were not: of pods that are unknown, that are others than meant, or that are bound.
	Binds, Refused int
	// Patches are requested changes of pod statuses.
	Patches int
	// Events are new events by reason; LastEvent is when the last one came.
	Events    map[string]int
	LastEvent time.Time
}

// load is what the pods of a node use.
type load struct {
	milliCPU, memory int64
	pods             int64
}

func (l *load) add(p *corev1.Pod) {
	requests := resource.PodRequests(p, resource.PodResourcesOptions{})
	l.milliCPU += requests.Cpu().MilliValue()
	l.memory += requests.Memory().Value()
	l.pods++
}

// AddNode adds a node.
func (s *Server) AddNode(n *corev1.Node) {
	s.nodes = append(s.nodes, n)
	s.tables["nodes"].put(n.Name, func(version string) marshaler { n.ResourceVersion = version; return n })
}

// ChangeNode applies change to the node of an index and sends the new version. It must be called from one goroutine.
func (s *Server) ChangeNode(i int, change func(*corev1.Node)) {
	n := s.nodes[i]
	change(n)
	s.tables["nodes"].put(n.Name, func(version string) marshaler { n.ResourceVersion = version; return n })
}

// AddPod adds a pod. One without a node may be bound later.
func (s *Server) AddPod(p *corev1.Pod) {
	key := p.Namespace + "/" + p.Name
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Spec.NodeName == "" {
		s.pending[key] = &pending{pod: p, added: time.Now()}
	} else {
		addTo(s.used, p)
	}
	s.putPod(key, p)
}

func addTo(used map[string]*load, p *corev1.Pod) {
	l := used[p.Spec.NodeName]
	if l == nil {
		l = &load{}
		used[p.Spec.NodeName] = l
	}
	l.add(p)
}

func (s *Server) putPod(key string, p *corev1.Pod) {
	s.tables["pods"].put(key, func(version string) marshaler { p.ResourceVersion = version; return p })
}

// AddNamespace adds a namespace.
func (s *Server) AddNamespace(name string) {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "namespace",
		Labels: map[string]string{corev1.LabelMetadataName: name}}}
	s.tables["namespaces"].put(name, func(version string) marshaler { n.ResourceVersion = version; return n })
}

// Bound returns when the bind of a pod arrived, zero if none did.
func (s *Server) Bound(namespace, name string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.pending[namespace+"/"+name]; p != nil {
		return p.bound
	}
	return time.Time{}
}

// Counts returns what was written so far.
func (s *Server) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts
	c.Events = maps.Clone(c.Events)
	return c
}

// Refused returns the number of pods without a node that a scheduler has rejected.
func (s *Server) Refused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, p := range s.pending { // order: a sum
		for _, c := range p.pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				n++
			}
		}
	}
	return n
}

// Bind is a pod that was bound, with the times of its creation and of its bind.
type Bind struct {
	Name, Node   string // namespace/name of the pod
	Added, Bound time.Time
}

// Log returns the binds in the order of their arrival.
func (s *Server) Log() []Bind {
	s.mu.Lock()
	defer s.mu.Unlock()
	var log []Bind
	for name, p := range s.pending { // order: sorted below
		if !p.bound.IsZero() {
			log = append(log, Bind{name, p.pod.Spec.NodeName, p.added, p.bound})
		}
	}
	slices.SortFunc(log, func(a, b Bind) int { return a.Bound.Compare(b.Bound) })
	return log
}

// Problems are what no scheduler may leave behind: pods that are not bound, binds that were refused, pods on nodes
// that do not exist, and nodes whose pods request more than the node has.
func (s *Server) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []string
	used := map[string]*load{}    // node -> what its pods use
	for name, l := range s.used { // order: into a map
		copied := *l
		used[name] = &copied
	}
	waiting := 0
	for _, p := range s.pending { // order: sums
		if p.bound.IsZero() {
			waiting++
			continue
		}
		addTo(used, p.pod)
	}
	if waiting > 0 {
		found = append(found, fmt.Sprintf("%d of %d pods are not bound", waiting, len(s.pending)))
	}
	if s.counts.Refused > 0 {
		found = append(found, fmt.Sprintf("%d binds were refused: of pods that were bound before, or are unknown",
			s.counts.Refused))
	}
	for _, n := range s.nodes {
		if l := used[n.Name]; l != nil {
			found = append(found, l.beyond(n)...)
			delete(used, n.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		found = append(found, fmt.Sprintf("%d pods are bound to %q, which is not a node", used[name].pods, name))
	}
	return found
}

// beyond returns what the pods of a node use beyond what it has.
func (l *load) beyond(n *corev1.Node) (found []string) {
	has := n.Status.Allocatable
	for _, r := range []struct {
		name      corev1.ResourceName
		used, has int64
	}{
		{"cpu (milli)", l.milliCPU, has.Cpu().MilliValue()},
		{corev1.ResourceMemory, l.memory, has.Memory().Value()},
		{corev1.ResourcePods, l.pods, has.Pods().Value()},
	} {
		if r.used > r.has {
			found = append(found, fmt.Sprintf("node %s is overcommitted: %s %d of %d", n.Name, r.name, r.used, r.has))
		}
	}
	return found
}

// Streamed returns when the last streamed list of a resource was completely written to the buffers of the connection.
func (s *Server) Streamed(resource string) time.Time {
	t := s.tables[resource]
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.streamed
}

// Sent returns how much was sent to watching clients.
func (s *Server) Sent() map[string]Volume {
	sent := map[string]Volume{}         // resource -> how much
	for resource, t := range s.tables { // order: into a map
		t.mu.Lock()
		sent[resource] = t.sent
		t.mu.Unlock()
	}
	return sent
}
