// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// ReserverName is the name under which reservations of plugins appear where no single plugin is meant.
const ReserverName = "FrameworkPlugins"

// reserver is the Reserver of a profile: Reserve and Permit of all its plugins. It keeps the state of the decision for
// PreBind, Bind and PostBind.
type reserver struct{ p *Profile }

var _ plugin.Deferrer = reserver{}

// Reserver returns the Reserver of the profile, nil if no plugin needs it. It runs after native Reservers.
func (p *Profile) Reserver() plugin.Reserver {
	used := len(p.reserves) + len(p.permits) + len(p.preBinds) + len(p.binds) + len(p.postBinds)
	if used == 0 && p.host.env.Hooks.Activated == nil {
		return nil
	}
	return reserver{p}
}

// Name returns ReserverName.
func (reserver) Name() string { return ReserverName }

// flight is a pod with a node, until it is bound or its reservation is released.
type flight struct {
	p        *Profile
	d        *decision
	pod      *v1.Pod // names the node
	node     string
	reserved bool // Reserve and Permit have run
	waiting  *waitingPod
	// preBinding is used from several goroutines.
	preBinding preBinding
}

// decided returns the decision that placed a pod: the current one, or the last one about this member of a gang.
func (p *Profile) decided(pod *cluster.Pod) *decision {
	if d := p.current; d != nil && d.record.UID == pod.UID {
		return d
	}
	if d := p.kept[pod.UID]; d != nil {
		return d
	}
	d := &decision{record: pod, state: &CycleState{}}
	p.host.began(d)
	return d
}

// take starts a flight.
func (p *Profile) take(s cluster.Snapshot, d *decision, pod *cluster.Pod, node string) *flight {
	delete(p.kept, pod.UID)
	p.host.infos.follow(s)
	f := &flight{p: p, d: d, pod: newPodInfo(pod, node).pod, node: node}
	p.host.mu.Lock()
	p.host.flights[pod.UID] = f
	p.host.mu.Unlock()
	return f
}

// end ends a flight.
func (f *flight) end() {
	h := f.p.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.flights[f.d.record.UID] == f {
		delete(h.flights, f.d.record.UID)
	}
}

// flightOf returns the flight of a pod, nil if there is none.
func (h *Host) flightOf(uid cluster.UID) *flight {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.flights[uid]
}

// Reserve calls Reserve and Permit of the plugins.
func (r reserver) Reserve(t *cluster.Trial, pod *cluster.Pod, n cluster.NodeIdx) plugin.Reserved {
	s := t.Snapshot()
	f := r.p.take(s, r.p.decided(pod), pod, s.NodeName(n))
	got := f.reserve(s.Now())
	if got.Reject != "" || got.Err != nil {
		f.unreserve()
		return got
	}
	got.Hold = &reservation{f: f}
	return got
}

// ReserveLater defers Reserve and Permit until the placement is kept.
func (r reserver) ReserveLater(pod *cluster.Pod, n cluster.NodeIdx) plugin.Deferred {
	return &reservation{p: r.p, pod: pod, row: n, d: r.p.decided(pod)}
}

// reserve calls Reserve of all plugins, then Permit, up to the first that does not accept.
func (f *flight) reserve(now record.Time) plugin.Reserved {
	f.reserved = true
	state := f.d.state
	for _, h := range f.p.reserves {
		status := h.call(config.Reserve, inCycle(f.pod), func(ctx context.Context) *fwk.Status {
			return h.reserve.Reserve(ctx, h.state(config.Reserve, state), f.pod, f.node)
		})
		switch {
		case status.IsRejected():
			return plugin.Reserved{By: h.name, Reject: text(status)}
		case !status.IsSuccess():
			return plugin.Reserved{By: h.name, Err: failure(status)}
		}
	}
	state.group = nil                 // as upstream, before the binding cycle
	waits := map[string]record.Time{} // plugin -> until when
	timeouts := map[string]time.Duration{}
	var ends []context.CancelFunc
	defer func() {
		for _, end := range ends {
			end()
		}
	}()
	for _, h := range f.p.permits {
		var timeout time.Duration
		status := h.call(config.Permit, inCycle(f.pod), func(ctx context.Context) *fwk.Status {
			// Upstream's context ends with the scheduling cycle, and plugins wait for that on goroutines of their own.
			ctx, end := context.WithCancel(ctx)
			ends = append(ends, end)
			var status *fwk.Status
			status, timeout = h.permit.Permit(ctx, h.state(config.Permit, state), f.pod, f.node)
			return status
		})
		switch {
		case status.IsWait():
			timeouts[h.name] = max(min(timeout, mostWait), 0)
			waits[h.name] = now + record.Time(timeouts[h.name])
		case status.IsRejected():
			return plugin.Reserved{By: h.name, Reject: text(status)}
		case !status.IsSuccess():
			return plugin.Reserved{By: h.name, Worded: true,
				Err: fmt.Errorf("running Permit plugin %q: %w", h.name, failure(status))}
		}
	}
	if len(waits) > 0 {
		f.wait(waits, timeouts)
	}
	f.activate()
	return plugin.Reserved{}
}

// mostWait is the longest wait of Permit (upstream: maxTimeout in framework/runtime).
const mostWait = 15 * time.Minute

// unreserve calls Unreserve of all plugins in reverse order, whether or not their Reserve was called, and ends the
// flight.
func (f *flight) unreserve() {
	f.end()
	if f.waiting != nil {
		f.waiting.leave()
	}
	if !f.reserved {
		return
	}
	f.reserved = false
	for _, h := range slices.Backward(f.p.reserves) {
		h.call(config.Reserve, lends(f.pod), func(ctx context.Context) *fwk.Status {
			h.reserve.Unreserve(ctx, h.state(config.Reserve, f.d.state), f.pod, f.node)
			return nil
		})
	}
}

// reservation is what the plugins of a profile hold for a pod.
type reservation struct {
	f *flight // nil until Reserve has run

	// The placement, while f is nil.
	p   *Profile
	pod *cluster.Pod
	row cluster.NodeIdx
	d   *decision
}

var (
	_ plugin.Deferred           = (*reservation)(nil)
	_ plugin.WaitingReservation = (*reservation)(nil)
)

// Keep calls Reserve and Permit.
func (r *reservation) Keep(s cluster.Snapshot) plugin.Reserved {
	r.f = r.p.take(s, r.d, r.pod, s.NodeName(r.row))
	return r.f.reserve(s.Now())
}

// Writes returns none: PreBind runs with the bind.
func (r *reservation) Writes() []cluster.Write { return nil }

// Ready reports whether all Permit plugins have allowed the pod.
func (r *reservation) Ready(_ cluster.Snapshot, now record.Time) plugin.Readiness {
	if r.f.waiting == nil {
		return plugin.Readiness{Ready: true}
	}
	return r.f.waiting.ready(now)
}

// Rejecters returns the plugins of the profile, each of which may reject a pod that waits, and the name of a rejection
// by none of them.
func (r *reservation) Rejecters() []string {
	if r.f == nil || r.f.waiting == nil {
		return nil
	}
	names := []string{ReserverName}
	for _, h := range r.f.p.plugins {
		names = append(names, h.name)
	}
	return names
}

// Release calls Unreserve.
func (r *reservation) Release(*cluster.Trial, bool) []cluster.Write {
	if r.f != nil {
		r.f.unreserve()
	}
	return nil
}
