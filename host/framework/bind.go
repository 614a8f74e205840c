// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"fmt"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Via is the name under which the effect Bind requests PreBind and Bind of plugins.
const Via = "plugins of kube-scheduler's framework"

// ErrNative means that the pod is to be bound as without plugins: by an extender or the API server.
var ErrNative = errors.New("no plugin of kube-scheduler's framework binds the pod")

// Binder makes the engine request binds of a profile by Via. Plugins take no part in decisions by it.
type Binder struct {
	place.Foreign // nil, or the extenders
	p             *Profile
}

// Foreign returns what the engine calls in place of extenders, which may be nil: they take part as without it, and
// binds go through Host.Bind if a plugin has PreBind or Bind.
func (p *Profile) Foreign(extenders place.Foreign) Binder {
	p.extenders = extenders
	return Binder{extenders, p}
}

// Over returns the same with extenders.
func (b Binder) Over(extenders place.Foreign) Binder { return b.p.Foreign(extenders) }

// Takes reports whether an extender takes part in deciding about a pod.
func (b Binder) Takes(pod *cluster.Pod) bool { return b.Foreign != nil && b.Foreign.Takes(pod) }

// Preempts reports whether an extender takes part in choosing victims.
func (b Binder) Preempts(pod *cluster.Pod) bool { return b.Foreign != nil && b.Foreign.Preempts(pod) }

// Binder returns Via if a plugin has PreBind or Bind, else the extender that binds.
func (b Binder) Binder(pod *cluster.Pod) string {
	switch {
	case len(b.p.preBinds)+len(b.p.binds) > 0:
		return Via
	case b.Foreign != nil:
		return b.Foreign.Binder(pod)
	}
	return ""
}

// Bind calls PreBind and Bind of the plugins for a pod, outside of the loop. ErrNative means that none of them binds;
// extends reports whether an extender does then. A rejection is a message.Rejected.
func (h *Host) Bind(ctx context.Context, ref record.PodRef, node string) (extends bool, err error) {
	f := h.flightOf(cluster.UID(ref.UID))
	if f == nil {
		return false, fmt.Errorf("binding pod %s: its reservation was released", ref.Key())
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f.preBinding.begin(cancel)
	err = f.preBind(ctx)
	if why := f.preBinding.end(); why != nil {
		return false, fmt.Errorf("binding pod %s: %w", ref.Key(), why)
	}
	if err != nil {
		return false, err
	}
	if err := f.bind(ctx, node); !errors.Is(err, ErrNative) {
		return false, err
	}
	return f.p.extenders != nil && f.p.extenders.Binder(f.d.record) != "", ErrNative
}

// bind calls Bind of the plugins, up to the first that does not skip the pod.
func (f *flight) bind(ctx context.Context, node string) error {
	for i, hd := range f.p.binds {
		if i == f.p.nativeBind && f.p.native {
			return ErrNative
		}
		status := hd.callOutside(ctx, config.Bind, f.pod, func(ctx context.Context) *fwk.Status {
			return hd.bind.Bind(ctx, hd.state(config.Bind, f.d.state), f.pod, node)
		})
		switch {
		case status.IsSkip():
		case status.IsSuccess():
			return nil
		case status.IsRejected():
			return message.Rejected{Plugin: hd.name, Text: text(status)}
		default:
			return fmt.Errorf("running Bind plugin %q: %w", hd.name, failure(status))
		}
	}
	if !f.p.native {
		return fmt.Errorf("binding pod %s: all Bind plugins skip it", f.d.record.Key())
	}
	return ErrNative
}

// preBind calls PreBindPreFlight of all plugins, then PreBind of those that do not skip the pod. If there are any, the
// node is nominated meanwhile, so that no other pod takes it and others see that the pod has one.
func (f *flight) preBind(ctx context.Context) error {
	var acting []*hosted
	for _, h := range f.p.preBinds {
		status := h.callOutside(ctx, config.PreBind, f.pod, func(ctx context.Context) *fwk.Status {
			_, status := h.preBind.PreBindPreFlight(ctx, h.state(config.PreBind, f.d.state), f.pod, f.node)
			return status
		})
		switch {
		case status.IsSkip():
			f.d.state.preBinds = with(f.d.state.preBinds, h.name)
		case status.IsSuccess():
			acting = append(acting, h)
		default:
			return fmt.Errorf("running PreBindPreFlight %q: %w", h.name, failure(status))
		}
	}
	if nominate := f.p.host.env.Nominate; nominate != nil && len(acting) > 0 && f.d.record.Nominated != f.node {
		nominate(f.d.record.Ref(), f.node)
	}
	for _, h := range acting {
		status := h.callOutside(ctx, config.PreBind, f.pod, func(ctx context.Context) *fwk.Status {
			return h.preBind.PreBind(ctx, h.state(config.PreBind, f.d.state), f.pod, f.node)
		})
		switch {
		case status.IsRejected():
			return message.Rejected{Plugin: h.name, Text: text(status)}
		case !status.IsSuccess():
			return fmt.Errorf("running PreBind plugin %q: %w", h.name, failure(status))
		}
	}
	return nil
}

// Observe follows the events of the engine: a bind whose node is gone is cancelled. It returns what PostBind returns,
// and must see each event once, on the loop's goroutine, instead of PostBind.
func (h *Host) Observe(ev message.Event) func() {
	if gone, is := ev.(message.NodeGone); is {
		for _, f := range h.flightsOn(gone.Name) {
			f.preBinding.stop(fmt.Errorf("node %q is gone", gone.Name))
		}
	}
	return h.PostBind(ev)
}

// flightsOn returns the flights to a node.
func (h *Host) flightsOn(node string) (on []*flight) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.flights { // order: each is cancelled alone
		if f.node == node {
			on = append(on, f)
		}
	}
	return on
}

// PostBind returns what calls PostBind of the plugins after an event of the engine, nil if nothing does. It must see
// each event once, on the loop's goroutine; the result is to be called outside of the loop.
func (h *Host) PostBind(ev message.Event) func() {
	bound, is := ev.(message.BindDone)
	if !is || bound.Outcome != message.Bound {
		return nil
	}
	f := h.flightOf(cluster.UID(bound.Pod.UID))
	if f == nil {
		return nil
	}
	f.end()
	if len(f.p.postBinds) == 0 && h.env.Hooks.Activated == nil {
		return nil
	}
	return func() {
		defer f.activate()
		for _, hd := range f.p.postBinds {
			hd.callOutside(h.env.context(), config.PostBind, f.pod, func(ctx context.Context) *fwk.Status {
				hd.postBind.PostBind(ctx, hd.state(config.PostBind, f.d.state), f.pod, f.node)
				return nil
			})
		}
	}
}
