// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Pod is what became of a pod so far.
type Pod struct {
	// Node is where it is bound; empty if it is not.
	Node string
	// Assumed is the node on which it waits for Permit, and WaitsFor are the plugins that have not allowed it, sorted.
	Assumed  string
	WaitsFor []string
	// Nominated is the node for which pods were evicted.
	Nominated string
	// Message is that of its condition PodScheduled, why it waits; empty if it is bound or was not tried.
	Message string
	// Gone reports that there is no such pod (any more).
	Gone bool
	// Decision is the last decision about it, with scores and reasons; its Number is 0 if there was none.
	Decision record.Decision
}

// Pod returns what became of a pod, by name in the namespace default, or namespace/name.
func (c *Cluster) Pod(name string) Pod {
	c.t.Helper()
	key := keyOf(name)
	out := Pod{Decision: c.last[key]}
	p := c.pods[key]
	if p == nil {
		out.Gone = true
		return out
	}
	out.Node, out.Nominated = p.Spec.NodeName, p.Status.NominatedNodeName
	if h := c.lent[p.Spec.SchedulerName]; h != nil {
		if w := h.GetWaitingPod(p.UID); w != nil {
			out.Assumed, out.WaitsFor = w.GetPod().Spec.NodeName, w.GetPendingPlugins()
		}
	}
	for _, condition := range p.Status.Conditions {
		if condition.Type == v1.PodScheduled && condition.Status == v1.ConditionFalse {
			out.Message = condition.Message
		}
	}
	return out
}

func keyOf(name string) types.NamespacedName {
	namespace, name, named := strings.Cut(name, "/")
	if !named {
		namespace, name = v1.NamespaceDefault, namespace
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// Event is an event about an object, by the scheduler or by a plugin.
type Event struct {
	Object string // namespace/name
	Type   string // Normal or Warning
	Reason string // such as Scheduled or FailedScheduling
	Note   string
}

// String returns the event in one line.
func (e Event) String() string {
	return fmt.Sprintf("%s %s %s: %s", e.Type, e.Reason, e.Object, e.Note)
}

// Events returns all events so far, in the order in which they were written.
func (c *Cluster) Events() []Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.events)
}

func (c *Cluster) note(e Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, e)
}

// recorder is the recorder of events of plugins.
type recorder struct{ c *Cluster }

var _ events.EventRecorderLogger = recorder{}

// WithLogger returns the same recorder.
func (r recorder) WithLogger(klog.Logger) events.EventRecorderLogger { return r }

// Eventf notes an event.
func (r recorder) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, args ...any) {
	object := "unknown"
	if m, err := meta.Accessor(regarding); err == nil {
		object = types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}.String()
	}
	r.c.note(Event{Object: object, Type: kind, Reason: reason, Note: fmt.Sprintf(note, args...)})
}
