// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"strings"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// adapter is a hosted plugin in the form of kumiki's plugins. It implements all interfaces; the profile enables it
// where the plugin extends a point.
type adapter struct{ h *hosted }

var (
	_ plugin.Filter  = adapter{}
	_ plugin.Skipper = adapter{}
	_ plugin.Gate    = adapter{}
	_ plugin.Waker   = adapter{}
	_ plugin.Sharing = adapter{}
)

// Name returns the plugin's name in the profile.
func (a adapter) Name() string { return a.h.name }

// Shared returns the state that the plugins of the profile share in a decision.
func (a adapter) Shared() plugin.Shared { return a.h.profile }

// Gated calls PreEnqueue.
func (a adapter) Gated(s cluster.Snapshot, p *cluster.Pod) (reason string, ok bool) {
	a.h.profile.host.infos.see(s)
	pod, err := objectOfPod(p)
	if err != nil {
		return err.Error(), false
	}
	if await := a.h.profile.host.env.Await; await != nil {
		await(pod)
	}
	status := a.h.call(config.PreEnqueue, lends(pod), func(ctx context.Context) *fwk.Status {
		return a.h.gate.PreEnqueue(ctx, pod)
	})
	return status.Message(), status.IsSuccess()
}

// PrepareFilter calls PreFilter.
func (a adapter) PrepareFilter(s cluster.Snapshot, p *cluster.Pod) plugin.FilterPlan {
	h, d := a.h, a.h.profile.at(s, p)
	pod, err := d.pod()
	if err != nil {
		return plugin.FilterPlan{Err: err}
	}
	h.profile.host.infos.follow(s)
	var plan plugin.FilterPlan
	if h.preFilter != nil {
		var done bool
		if plan, done = h.prepare(d, pod); done {
			return plan
		}
	}
	f := &podFilter{h: h, d: d, pod: pod, memory: h.remembered(s, pod)}
	if f.extensions = h.extensions(); f.extensions != nil || h.filter != nil {
		plan.Filter = f
	}
	return plan
}

// extensions returns what follows pods that are supposed to be there or gone; nil if the plugin does not.
func (h *hosted) extensions() (extensions fwk.PreFilterExtensions) {
	if h.preFilter == nil {
		return nil
	}
	if err := h.guard(config.PreFilter, loan{}, func() { extensions = h.preFilter.PreFilterExtensions() }); err != nil {
		h.broken(config.PreFilter, Panicked, err)
	}
	return extensions
}

// prepare calls PreFilter. done is true if the plugin does not filter the pod, rejects it, or fails.
func (h *hosted) prepare(d *decision, pod *v1.Pod) (plan plugin.FilterPlan, done bool) {
	nodes := h.profile.nodes(d)
	var result *fwk.PreFilterResult
	status := h.call(config.PreFilter, inCycle(pod), func(ctx context.Context) *fwk.Status {
		var status *fwk.Status
		result, status = h.preFilter.PreFilter(ctx, h.state(config.PreFilter, d.state), pod, nodes)
		return status
	})
	switch status.Code() {
	case fwk.Success:
	case fwk.Skip:
		d.state.filters = append(d.state.filters, h.name)
		return plan, true
	case fwk.Unschedulable, fwk.UnschedulableAndUnresolvable:
		plan.Reject, plan.Resolvable = text(status), status.Code() == fwk.Unschedulable
		return plan, true
	default:
		plan.Err = failure(status)
		return plan, true
	}
	if !result.AllNodes() {
		plan.Nodes = make(map[string]struct{}, len(result.NodeNames))
		for name := range result.NodeNames { // order: builds a set
			plan.Nodes[name] = struct{}{}
		}
	}
	return plan, false
}

// noReason stands for a rejection without a reason, which must not look like none.
const noReason = "rejected without a reason"

func text(status *fwk.Status) string {
	if message := status.Message(); message != "" {
		return message
	}
	return noReason
}

// podFilter is a plugin's Filter for one decision. Its codes are positions in a list of the rejections so far.
//
// Upstream makes dry runs on copies of the CycleState, whatever the plugins do. Here, the first AddPod or RemovePod
// makes a copy for all plugins, which lasts until each of them has been undone. So a plugin without PreFilterExtensions
// is Supposing too: what its Filter writes in a dry run is dropped.
type podFilter struct {
	h          *hosted
	d          *decision
	pod        *v1.Pod
	extensions fwk.PreFilterExtensions // nil if the plugin has none
	failed     error
	rejections []rejection
	known      map[string]plugin.Code // status -> code
	memory     *verdicts              // about pods of the same signature; nil if they are not used
}

// rejection is a rejection that was given for at least one node.
type rejection struct {
	status  string
	reasons []string
	pending bool
}

var (
	_ plugin.Failing   = (*podFilter)(nil)
	_ plugin.Pender    = (*podFilter)(nil)
	_ plugin.Supposing = (*podFilter)(nil)
)

// Plain calls Filter for one node.
func (f *podFilter) Plain(s cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	f.failed = nil
	switch {
	case f.d.dryErr != nil && f.d.dryBy == f.h:
		f.failed = f.d.dryErr
		return f.code("", nil, true, false)
	case f.h.filter == nil:
		return plugin.Fit
	}
	infos := &f.h.profile.host.infos
	infos.follow(s)
	return f.judge(infos.of(s, v))
}

// Column calls Filter for the rows that fit so far, up to the first error.
func (f *podFilter) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag plugin.Tag, out []plugin.Verdict) {
	f.failed = nil
	if f.h.filter == nil {
		return
	}
	infos := &f.h.profile.host.infos
	infos.follow(s)
	for n := lo; n < hi && f.failed == nil; n++ {
		if out[n] != plugin.Fits {
			continue
		}
		if code := f.verdictOn(n, infos.rows[n]); code != plugin.Fit {
			out[n] = tag.With(code)
		}
	}
	f.h.profile.host.compareRows()
}

// judge calls Filter.
func (f *podFilter) judge(info *NodeInfo) plugin.Code {
	status := f.h.call(config.Filter, on(f.pod, info), func(ctx context.Context) *fwk.Status {
		return f.h.filter.Filter(ctx, f.h.state(config.Filter, f.d.cycleState()), f.pod, info)
	})
	switch {
	case status.IsSuccess():
		return plugin.Fit
	case !status.IsRejected():
		f.failed = failure(status)
		return f.code("", nil, true, false)
	}
	return f.code(status.Code().String(), status.Reasons(), status.Code() != fwk.Unschedulable,
		status.Code() == fwk.Pending)
}

// code returns the code of a rejection.
func (f *podFilter) code(status string, reasons []string, unresolvable, pending bool) plugin.Code {
	key := status + "\x00" + strings.Join(reasons, "\x00")
	if code, ok := f.known[key]; ok {
		return code
	}
	if len(f.rejections) >= int(plugin.CodeBits) {
		return plugin.CodeBits | plugin.Unresolvable // has the reasons of the last one
	}
	if f.known == nil {
		f.known = map[string]plugin.Code{}
	}
	f.rejections = append(f.rejections, rejection{status, reasons, pending})
	code := plugin.Code(len(f.rejections))
	if unresolvable {
		code |= plugin.Unresolvable
	}
	f.known[key] = code
	return code
}

func (f *podFilter) rejection(c plugin.Code) rejection { return f.rejections[c&plugin.CodeBits-1] }

// Reasons returns what the plugin said.
func (f *podFilter) Reasons(c plugin.Code) []string { return f.rejection(c).reasons }

// Pending reports whether the status was Pending.
func (f *podFilter) Pending(c plugin.Code) bool { return f.rejection(c).pending }

// Failed returns the error of the last use.
func (f *podFilter) Failed() error { return f.failed }

// AddPod calls AddPod.
func (f *podFilter) AddPod(s cluster.Snapshot, other *cluster.Pod, v *cluster.NodeView) {
	f.suppose(s, other, v, 1)
}

// RemovePod calls RemovePod.
func (f *podFilter) RemovePod(s cluster.Snapshot, other *cluster.Pod, v *cluster.NodeView) {
	f.suppose(s, other, v, -1)
}

func (f *podFilter) suppose(s cluster.Snapshot, other *cluster.Pod, v *cluster.NodeView, sign int) {
	defer f.d.note(f.h, other.UID, sign)
	if f.d.dry == nil {
		f.d.dry = &CycleState{}
		if err := guard(func() { f.d.dry = f.d.state.clone() }); err != nil {
			f.d.dryErr, f.d.dryBy = f.h.broken(config.PreFilter, Panicked, err).AsError(), f.h
			return
		}
	}
	if f.extensions == nil {
		return
	}
	infos := &f.h.profile.host.infos
	infos.follow(s)
	node, info := infos.of(s, v), newPodInfo(other, other.NodeName)
	lent := on(f.pod, node)
	lent.objects[1] = info.pod
	status := f.h.call(config.PreFilter, lent, func(ctx context.Context) *fwk.Status {
		dry := f.h.state(config.PreFilter, f.d.dry)
		if sign > 0 {
			return f.extensions.AddPod(ctx, dry, f.pod, info, node)
		}
		return f.extensions.RemovePod(ctx, dry, f.pod, info, node)
	})
	if !status.IsSuccess() && f.d.dryErr == nil {
		f.d.dryErr, f.d.dryBy = failure(status), f.h
	}
}

// change is an AddPod or a RemovePod that has not been undone.
type change struct {
	by   *hosted
	pod  cluster.UID
	sign int
}

// note notes a change, or that it undoes one; the last one ends the dry run.
func (d *decision) note(by *hosted, pod cluster.UID, sign int) {
	for i := len(d.supposed) - 1; i >= 0; i-- {
		if d.supposed[i] == (change{by, pod, -sign}) {
			d.supposed = append(d.supposed[:i], d.supposed[i+1:]...)
			if len(d.supposed) == 0 {
				d.dry, d.dryErr, d.dryBy = nil, nil, nil
			}
			return
		}
	}
	d.supposed = append(d.supposed, change{by, pod, sign})
}
