// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// waitingPod is a pod that Permit plugins hold back. Plugins call it from any goroutine.
type waitingPod struct {
	f        *flight
	timeouts map[string]time.Duration // plugin -> how long it may wait

	mu      sync.Mutex
	pending map[string]record.Time // plugin that has not allowed the pod -> until when it waits
	answer  *plugin.Readiness      // nil while the pod waits
}

var _ fwk.WaitingPod = (*waitingPod)(nil)

// wait lets the pod wait for plugins.
func (f *flight) wait(until map[string]record.Time, timeouts map[string]time.Duration) {
	f.waiting = &waitingPod{f: f, pending: until, timeouts: timeouts}
}

// GetPod returns the object.
func (w *waitingPod) GetPod() *v1.Pod { return w.f.pod }

// GetPendingPlugins returns the plugins that have not allowed the pod, sorted.
func (w *waitingPod) GetPendingPlugins() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.pending))
}

// Allow allows the pod for one plugin. A name that the pod does not wait for, and a second call, have no effect.
func (w *waitingPod) Allow(name string) {
	w.mu.Lock()
	delete(w.pending, name)
	if len(w.pending) == 0 && w.answer == nil {
		w.answer = &plugin.Readiness{Ready: true}
	}
	w.mu.Unlock()
	w.f.p.host.reconsider()
}

// Reject makes the pod unschedulable. It reports whether the pod was waiting.
func (w *waitingPod) Reject(name, text string) bool {
	if text == "" {
		text = noReason
	}
	return w.stop(plugin.Readiness{By: name, Reject: text})
}

// Preempt ends the attempt with an error, after which the pod is tried again. It reports whether the pod was waiting.
func (w *waitingPod) Preempt(name, text string) bool {
	return w.stop(plugin.Readiness{By: name, Worded: true,
		Err: fmt.Errorf("waiting on permit for pod: %w", errors.New(text))})
}

func (w *waitingPod) stop(answer plugin.Readiness) bool {
	w.mu.Lock()
	waits := w.answer == nil
	if waits {
		w.answer = &answer
	}
	w.mu.Unlock()
	if waits {
		w.f.p.host.reconsider()
	}
	return waits
}

// leave ends the wait without an answer.
func (w *waitingPod) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.answer == nil {
		w.answer = &plugin.Readiness{Reject: "the pod does not wait any more"}
	}
}

// ready returns the answer, or that of the first plugin whose time is over.
func (w *waitingPod) ready(now record.Time) plugin.Readiness {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.answer != nil {
		return *w.answer
	}
	var first string // the plugin whose time ends first, by name if there are several
	for _, name := range slices.Sorted(maps.Keys(w.pending)) {
		if first == "" || w.pending[name] < w.pending[first] {
			first = name
		}
	}
	if w.pending[first] > now {
		return plugin.Readiness{Again: w.pending[first]}
	}
	w.answer = &plugin.Readiness{By: first, Reject: fmt.Sprintf(
		"rejected due to timeout after waiting %v at plugin %v", w.timeouts[first], first)}
	return *w.answer
}

// waits reports whether the pod still waits.
func (w *waitingPod) waits() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.answer == nil
}

// reconsider makes the engine ask the reservations of waiting pods again.
func (h *Host) reconsider() {
	if h.env.Post != nil {
		h.env.Post(message.Activate{})
	}
}

// waitingPods returns the pods of a profile that wait, by their keys.
func (p *Profile) waitingPods() []*waitingPod {
	p.host.mu.Lock()
	defer p.host.mu.Unlock()
	var out []*waitingPod
	for _, f := range p.host.flights {
		if f.p == p && f.waiting != nil && f.waiting.waits() {
			out = append(out, f.waiting)
		}
	}
	slices.SortFunc(out, func(a, b *waitingPod) int {
		return slices.Compare([]string{a.f.pod.Namespace, a.f.pod.Name}, []string{b.f.pod.Namespace, b.f.pod.Name})
	})
	return out
}
