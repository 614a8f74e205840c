// SPDX-License-Identifier: Apache-2.0

package framework

import (
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
func (a adapter) Gated(_ cluster.Snapshot, p *cluster.Pod) (reason string, ok bool) {
	pod, err := objectOfPod(p)
	if err != nil {
		return err.Error(), false
	}
	status := a.h.call(config.PreEnqueue, func() *fwk.Status {
		return a.h.gate.PreEnqueue(a.h.profile.host.env.context(), pod)
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
	f := &podFilter{h: h, d: d, pod: pod}
	if h.preFilter != nil && h.preFilter.PreFilterExtensions() != nil {
		plan.Filter = supposing{f}
	} else if h.filter != nil {
		plan.Filter = f
	}
	return plan
}

// prepare calls PreFilter. done is true if the plugin does not filter the pod, rejects it, or fails.
func (h *hosted) prepare(d *decision, pod *v1.Pod) (plan plugin.FilterPlan, done bool) {
	host := h.profile.host
	var result *fwk.PreFilterResult
	status := h.call(config.PreFilter, func() *fwk.Status {
		var status *fwk.Status
		result, status = h.preFilter.PreFilter(host.env.context(), d.state, pod, host.infos.all)
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
type podFilter struct {
	h          *hosted
	d          *decision
	pod        *v1.Pod
	failed     error
	rejections []rejection
	known      map[string]plugin.Code // status -> code
}

// rejection is a rejection that was given for at least one node.
type rejection struct {
	reasons []string
	pending bool
}

var (
	_ plugin.Failing   = (*podFilter)(nil)
	_ plugin.Pender    = (*podFilter)(nil)
	_ plugin.Supposing = supposing{}
	_ plugin.Failing   = supposing{}
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
		if code := f.judge(infos.rows[n]); code != plugin.Fit {
			out[n] = tag.With(code)
		}
	}
}

// judge calls Filter.
func (f *podFilter) judge(info *NodeInfo) plugin.Code {
	status := f.h.call(config.Filter, func() *fwk.Status {
		return f.h.filter.Filter(f.h.profile.host.env.context(), f.d.cycleState(), f.pod, info)
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
	f.rejections = append(f.rejections, rejection{reasons, pending})
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

// supposing is a podFilter of a plugin with PreFilterExtensions. Upstream makes dry runs on copies of the CycleState.
// Here, the first AddPod or RemovePod makes a copy for all plugins, which lasts until each of them has been undone.
type supposing struct{ *podFilter }

// AddPod calls AddPod.
func (f supposing) AddPod(s cluster.Snapshot, other *cluster.Pod, v *cluster.NodeView) {
	f.suppose(s, other, v, 1)
}

// RemovePod calls RemovePod.
func (f supposing) RemovePod(s cluster.Snapshot, other *cluster.Pod, v *cluster.NodeView) {
	f.suppose(s, other, v, -1)
}

func (f supposing) suppose(s cluster.Snapshot, other *cluster.Pod, v *cluster.NodeView, sign int) {
	defer f.d.note(f.h, other.UID, sign)
	if f.d.dry == nil {
		f.d.dry = &CycleState{}
		if err := guard(func() { f.d.dry = f.d.state.clone() }); err != nil {
			f.d.dryErr, f.d.dryBy = f.h.broken(config.PreFilter, err).AsError(), f.h
			return
		}
	}
	infos := &f.h.profile.host.infos
	infos.follow(s)
	node, info := infos.of(s, v), newPodInfo(other, other.NodeName)
	status := f.h.call(config.PreFilter, func() *fwk.Status {
		ctx, extensions := f.h.profile.host.env.context(), f.h.preFilter.PreFilterExtensions()
		if sign > 0 {
			return extensions.AddPod(ctx, f.d.dry, f.pod, info, node)
		}
		return extensions.RemovePod(ctx, f.d.dry, f.pod, info, node)
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
