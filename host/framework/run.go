// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// RunFilters says which filters the profile has, native and hosted, in its order. Handle runs them for plugins.
func (p *Profile) RunFilters(filters []plugin.Filter) { p.runs.filters = filters }

// runs is what Handle needs to run plugins for plugins. Plugins call it from any goroutine while the scheduling loop
// waits for one of them, so the state of the cluster does not change.
type runs struct {
	filters   []plugin.Filter // of the profile, in its order
	scorers   []place.Scorer  // the same
	reservers []string        // native ones

	mu    sync.Mutex          // guards the rest, and native filters, which have memory of their own
	of    *decision           // plans are of this decision, and
	pod   *cluster.Pod        // of this pod
	plans []plugin.FilterPlan // by position in filters; empty for hosted ones
}

// supposed are pods that RunPreFilterExtensionAddPod and RemovePod were called with for a CycleState: native filters
// that count pods of other nodes keep no data in it.
type supposed []supposition

// supposition is one such pod, and the view of its node with it or without it.
type supposition struct {
	pod   *cluster.Pod
	view  *cluster.NodeView
	added bool
}

// ownKeys begins the keys of kumiki in a CycleState.
const ownKeys = "kumiki.dev/"

// supposedKey is the key of supposed.
const supposedKey fwk.StateKey = ownKeys + "supposed"

// Clone returns a copy to which more can be added.
func (s supposed) Clone() fwk.StateData { return slices.Clone(s) }

// suppositions returns those of a CycleState.
func suppositions(state fwk.CycleState) supposed {
	data, err := state.Read(supposedKey)
	if err != nil {
		return nil
	}
	return data.(supposed)
}

// record returns the record of a pod that a plugin names.
func (p *Profile) record(info fwk.PodInfo) (*cluster.Pod, error) {
	if ours, is := info.(*PodInfo); is && ours.record != nil {
		return ours.record, nil
	}
	return p.recordOf(info.GetPod())
}

func (p *Profile) recordOf(pod *v1.Pod) (*cluster.Pod, error) {
	uid := cluster.UID(pod.UID)
	if d := p.current; d != nil && d.record.UID == uid {
		return d.record, nil
	}
	if d := p.kept[uid]; d != nil {
		return d.record, nil
	}
	if known, _, _, there := p.host.infos.state.PodOn(uid); there {
		return known, nil
	}
	for _, info := range p.host.nominated.all() {
		if ours, is := info.(*PodInfo); is && ours.record != nil && ours.record.UID == uid {
			return ours.record, nil
		}
	}
	return nil, fmt.Errorf("pod %s/%s is neither on a node, nor nominated, nor the one that is being scheduled",
		pod.Namespace, pod.Name)
}

// view returns the view of a node with the pods of a NodeInfo. The node object is that of the cluster.
func (p *Profile) view(info fwk.NodeInfo) (*cluster.NodeView, error) {
	s := p.host.infos.state
	row, there := s.Find(info.Node().Name)
	if !there {
		return nil, fmt.Errorf("node %q is not in the cluster", info.Node().Name)
	}
	view := s.EmptyView(row, nil)
	for _, other := range info.GetPods() {
		record, err := p.record(other)
		if err != nil {
			return nil, err
		}
		view.AddPod(record)
	}
	return view, nil
}

// plansFor returns the native filters prepared for the decision about a pod. Those that count pods of other nodes are
// prepared anew if pods are supposed to be there or gone. runs.mu must be held.
func (p *Profile) plansFor(record *cluster.Pod, pods supposed) []plugin.FilterPlan {
	r, s := &p.runs, p.host.infos.state
	prepare := func(i int) plugin.FilterPlan {
		if _, hosted := r.filters[i].(adapter); hosted {
			return plugin.FilterPlan{}
		}
		return r.filters[i].PrepareFilter(s, record)
	}
	if d := p.current; r.of == nil || r.of != d || r.pod != record {
		r.of, r.pod, r.plans = d, record, r.plans[:0]
		for i := range r.filters {
			r.plans = append(r.plans, prepare(i))
		}
	}
	if len(pods) == 0 {
		return r.plans
	}
	plans := slices.Clone(r.plans)
	for i := range plans {
		if _, counts := plans[i].Filter.(plugin.Supposing); !counts {
			continue
		}
		plans[i] = prepare(i)
		counting, counts := plans[i].Filter.(plugin.Supposing)
		for _, one := range pods {
			switch {
			case !counts:
			case one.added:
				counting.AddPod(s, one.pod, one.view)
			default:
				counting.RemovePod(s, one.pod, one.view)
			}
		}
	}
	return plans
}

// RunFilterPlugins runs the filters of the profile for a pod on a node, up to the first that rejects it. Native filters
// see the pods of the NodeInfo, and the node object of the cluster.
func (h *handle) RunFilterPlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	info fwk.NodeInfo) *fwk.Status {
	record, err := h.p.recordOf(pod)
	if err != nil {
		return fwk.AsStatus(err)
	}
	view, err := h.p.view(info)
	if err != nil {
		return fwk.AsStatus(err)
	}
	pods := suppositions(state)
	for i, f := range h.p.runs.filters {
		var status *fwk.Status
		if a, hosted := f.(adapter); hosted {
			status = a.h.filterOutside(ctx, state, pod, info)
		} else {
			status = h.p.runNative(i, record, view, pods)
		}
		if status.IsSuccess() {
			continue
		}
		if !status.IsRejected() {
			status = fwk.AsStatus(fmt.Errorf("running %q filter plugin: %w", f.Name(), failure(status)))
		}
		return status.WithPlugin(f.Name())
	}
	return nil
}

// filterOutside calls Filter of a hosted plugin unless the state says that it skips the pod.
func (h *hosted) filterOutside(ctx context.Context, state fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) *fwk.Status {
	if h.filter == nil || state.GetSkipFilterPlugins().Has(h.name) {
		return nil
	}
	return h.callOutside(ctx, config.Filter, pod, func(ctx context.Context) *fwk.Status {
		return h.filter.Filter(ctx, h.state(config.Filter, state), pod, info)
	})
}

// runNative runs the plain form of one native filter.
func (p *Profile) runNative(i int, record *cluster.Pod, view *cluster.NodeView, pods supposed) *fwk.Status {
	p.runs.mu.Lock()
	defer p.runs.mu.Unlock()
	plan := p.plansFor(record, pods)[i]
	switch {
	case plan.Err != nil:
		return fwk.AsStatus(plan.Err)
	case plan.Reject != "" && plan.Resolvable:
		return fwk.NewStatus(fwk.Unschedulable, plan.Reject)
	case plan.Reject != "":
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, plan.Reject)
	case plan.Filter == nil:
		return nil
	}
	code := plan.Filter.Plain(p.host.infos.state, view)
	if failing, can := plan.Filter.(plugin.Failing); can && failing.Failed() != nil {
		return fwk.AsStatus(failing.Failed())
	}
	switch {
	case code == plugin.Fit:
		return nil
	case code&plugin.Unresolvable != 0:
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, plan.Filter.Reasons(code)...)
	}
	return fwk.NewStatus(fwk.Unschedulable, plan.Filter.Reasons(code)...)
}

// RunFilterPluginsWithNominatedPods runs the filters with the pods that are nominated to the node and go before the
// pod, and if these pass and there are such pods, without them.
func (h *handle) RunFilterPluginsWithNominatedPods(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	info fwk.NodeInfo) *fwk.Status {
	with, crowded := state, info
	added := false
	for _, other := range h.NominatedPodsForNode(info.Node().Name) {
		if other.GetPod().UID == pod.UID || corev1.PodPriority(other.GetPod()) < corev1.PodPriority(pod) {
			continue
		}
		if !added {
			with, crowded, added = state.Clone(), info.Snapshot(), true
		}
		crowded.AddPodInfo(other)
		if status := h.RunPreFilterExtensionAddPod(ctx, with, pod, other, crowded); !status.IsSuccess() {
			return status
		}
	}
	status := h.RunFilterPlugins(ctx, with, pod, crowded)
	if added && status.IsSuccess() {
		status = h.RunFilterPlugins(ctx, state, pod, info)
	}
	return status
}

// RunPreFilterExtensionAddPod supposes that another pod is on a node, which has it already.
func (h *handle) RunPreFilterExtensionAddPod(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	other fwk.PodInfo, info fwk.NodeInfo) *fwk.Status {
	return h.p.suppose(ctx, state, pod, other, info, true)
}

// RunPreFilterExtensionRemovePod supposes that another pod is gone from a node, which does not have it any more.
func (h *handle) RunPreFilterExtensionRemovePod(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	other fwk.PodInfo, info fwk.NodeInfo) *fwk.Status {
	return h.p.suppose(ctx, state, pod, other, info, false)
}

// suppose calls AddPod or RemovePod of hosted plugins, and notes the pod for native ones.
func (p *Profile) suppose(ctx context.Context, state fwk.CycleState, pod *v1.Pod, other fwk.PodInfo,
	info fwk.NodeInfo, added bool) *fwk.Status {
	for _, f := range p.runs.filters {
		a, hosted := f.(adapter)
		if !hosted || a.h.preFilter == nil || state.GetSkipFilterPlugins().Has(a.h.name) {
			continue
		}
		verb := "RemovePod"
		status := a.h.callOutside(ctx, config.PreFilter, pod, func(ctx context.Context) *fwk.Status {
			extensions, state := a.h.preFilter.PreFilterExtensions(), a.h.state(config.PreFilter, state)
			switch {
			case extensions == nil:
				return nil
			case added:
				verb = "AddPod"
				return extensions.AddPod(ctx, state, pod, other, info)
			}
			return extensions.RemovePod(ctx, state, pod, other, info)
		})
		if !status.IsSuccess() {
			return fwk.AsStatus(fmt.Errorf("running %s on PreFilter plugin %q: %w", verb, a.h.name, failure(status)))
		}
	}
	record, err := p.record(other)
	if err != nil {
		return fwk.AsStatus(err)
	}
	view, err := p.view(info)
	if err != nil {
		return fwk.AsStatus(err)
	}
	state.Write(supposedKey, append(slices.Clone(suppositions(state)), supposition{record, view, added}))
	return nil
}
