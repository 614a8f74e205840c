// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework"

	kumiki "github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/host/framework"
)

// handle is the Handle of plugins with the rest of upstream's framework.Framework: plugins assert that type. The
// methods that read the configuration answer; those by which a scheduler drives its plugins are absent. An absent
// method that returns a status or an error returns framework.ErrAbsent, and another one panics with it: the panic fails
// the call of the plugin, or the start if the factory makes it. docs/plugins.md lists them.
type handle struct{ fwk.Handle }

var _ upstream.Framework = (*handle)(nil)

func absent(method string) error {
	return fmt.Errorf("%w: framework.Framework.%s", framework.ErrAbsent, method)
}

func absentStatus(method string) *fwk.Status { return fwk.AsStatus(absent(method)) }

// profile returns the configuration of the profile. It has no plugins while factories run, as upstream.
func (h *handle) profile() kumiki.Profile {
	p, _ := framework.ConfigOf(h.Handle)
	return p
}

// ListPlugins returns the plugins of the profile at each extension point, native ones among them, with the weights of
// scores.
func (h *handle) ListPlugins() *config.Plugins {
	p, out := h.profile(), &config.Plugins{}
	for at, set := range map[kumiki.Point]*config.PluginSet{ // order: each is filled
		kumiki.PreEnqueue: &out.PreEnqueue, kumiki.QueueSort: &out.QueueSort, kumiki.PreFilter: &out.PreFilter,
		kumiki.Filter: &out.Filter, kumiki.PostFilter: &out.PostFilter, kumiki.PreScore: &out.PreScore,
		kumiki.Score: &out.Score, kumiki.Reserve: &out.Reserve, kumiki.Permit: &out.Permit,
		kumiki.PreBind: &out.PreBind, kumiki.Bind: &out.Bind, kumiki.PostBind: &out.PostBind,
		kumiki.PlacementGenerate: &out.PlacementGenerate, kumiki.PlacementScore: &out.PlacementScore,
		kumiki.PodGroupPostFilter: &out.PodGroupPostFilter,
	} {
		for _, name := range p.Enabled[at] {
			entry := config.Plugin{Name: name}
			if at == kumiki.Score {
				entry.Weight = int32(p.Weights[name])
			}
			if at == kumiki.PlacementScore {
				entry.Weight = int32(p.PlacementWeights[name])
			}
			set.Enabled = append(set.Enabled, entry)
		}
	}
	return out
}

// HasFilterPlugins reports whether a plugin filters.
func (h *handle) HasFilterPlugins() bool { return len(h.profile().Enabled[kumiki.Filter]) > 0 }

// HasPostFilterPlugins reports whether a plugin runs at PostFilter.
func (h *handle) HasPostFilterPlugins() bool { return len(h.profile().Enabled[kumiki.PostFilter]) > 0 }

// HasScorePlugins reports whether a plugin scores.
func (h *handle) HasScorePlugins() bool { return len(h.profile().Enabled[kumiki.Score]) > 0 }

// PercentageOfNodesToScore returns the value for the profile, nil if neither the profile nor the file has one.
func (h *handle) PercentageOfNodesToScore() *int32 {
	if share := h.profile().PercentageOfNodesToScore; share > 0 {
		return &share
	}
	return nil
}

// GetNodeHint returns none, as upstream does without a cached result.
func (*handle) GetNodeHint(context.Context, *v1.Pod, fwk.PodSignature, fwk.CycleState, int64) string {
	return ""
}

// WillWaitOnPermit reports whether a pod waits for Permit.
func (h *handle) WillWaitOnPermit(_ context.Context, pod *v1.Pod) bool {
	return h.GetWaitingPod(pod.UID) != nil
}

// PreEnqueuePlugins is absent: native plugins are not of this type.
func (*handle) PreEnqueuePlugins() []fwk.PreEnqueuePlugin { panic(absent("PreEnqueuePlugins")) }

// EnqueueExtensions is absent, as PreEnqueuePlugins.
func (*handle) EnqueueExtensions() []fwk.EnqueueExtensions { panic(absent("EnqueueExtensions")) }

// PodGroupPostFilterPlugins is absent, as PreEnqueuePlugins.
func (*handle) PodGroupPostFilterPlugins() []fwk.PodGroupPostFilterPlugin {
	panic(absent("PodGroupPostFilterPlugins"))
}

// QueueSortFunc is absent: the queue does not hold upstream's entities.
func (*handle) QueueSortFunc() fwk.LessFunc { panic(absent("QueueSortFunc")) }

// RunPreFilterPlugins is absent.
func (*handle) RunPreFilterPlugins(context.Context, fwk.CycleState, *v1.Pod) (*fwk.PreFilterResult, *fwk.Status,
	sets.Set[string]) {
	return nil, absentStatus("RunPreFilterPlugins"), nil
}

// RunPostFilterPlugins is absent.
func (*handle) RunPostFilterPlugins(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeToStatusReader) (
	*fwk.PostFilterResult, *fwk.Status) {
	return nil, absentStatus("RunPostFilterPlugins")
}

// StoreScheduleResults is absent: there is no cache of results by signature.
func (*handle) StoreScheduleResults(context.Context, fwk.PodSignature, string, string, upstream.SortedScoredNodes,
	int64) {
	panic(absent("StoreScheduleResults"))
}

// RunRawScorePlugins is absent.
func (*handle) RunRawScorePlugins(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeInfo) ([]fwk.PluginScore,
	*fwk.Status) {
	return nil, absentStatus("RunRawScorePlugins")
}

// NormalizeScores is absent.
func (*handle) NormalizeScores(context.Context, fwk.CycleState, *v1.Pod, []fwk.NodePluginScores) *fwk.Status {
	return absentStatus("NormalizeScores")
}

// RunPlacementGeneratePlugins is absent: kumiki places pod groups itself.
func (*handle) RunPlacementGeneratePlugins(context.Context, fwk.PodGroupCycleState, fwk.PodGroupInfo, []fwk.NodeInfo) (
	[]*fwk.Placement, *fwk.Status) {
	return nil, absentStatus("RunPlacementGeneratePlugins")
}

// RunPlacementFeasiblePlugins is absent, as RunPlacementGeneratePlugins.
func (*handle) RunPlacementFeasiblePlugins(context.Context, fwk.PlacementCycleState, fwk.PodGroupInfo,
	upstream.PlacementProgress) *fwk.Status {
	return absentStatus("RunPlacementFeasiblePlugins")
}

// RunPlacementScorePlugins is absent, as RunPlacementGeneratePlugins.
func (*handle) RunPlacementScorePlugins(context.Context, fwk.PodGroupCycleState, fwk.PodGroupInfo,
	[]*fwk.PodGroupAssignments, []fwk.PlacementCycleState) ([]fwk.PlacementPluginScores, *fwk.Status) {
	return nil, absentStatus("RunPlacementScorePlugins")
}

// RunPodGroupPostFilterPlugins is absent, as RunPlacementGeneratePlugins.
func (*handle) RunPodGroupPostFilterPlugins(context.Context, *upstream.CycleState, fwk.PodGroupInfo,
	fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	return nil, absentStatus("RunPodGroupPostFilterPlugins")
}

// RunPermitPlugins is absent.
func (*handle) RunPermitPlugins(context.Context, fwk.CycleState, *v1.Pod, string) (map[string]time.Duration,
	*fwk.Status) {
	return nil, absentStatus("RunPermitPlugins")
}

// AddWaitingPod is absent: only the scheduler makes a pod wait.
func (*handle) AddWaitingPod(*v1.Pod, map[string]time.Duration) { panic(absent("AddWaitingPod")) }

// WaitOnPermit is absent: it would block the scheduling loop.
func (*handle) WaitOnPermit(context.Context, *v1.Pod) *fwk.Status {
	return absentStatus("WaitOnPermit")
}

// RunPreBindPreFlights is absent.
func (*handle) RunPreBindPreFlights(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status {
	return absentStatus("RunPreBindPreFlights")
}

// RunPreBindPlugins is absent.
func (*handle) RunPreBindPlugins(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status {
	return absentStatus("RunPreBindPlugins")
}

// RunBindPlugins is absent.
func (*handle) RunBindPlugins(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status {
	return absentStatus("RunBindPlugins")
}

// RunPostBindPlugins is absent.
func (*handle) RunPostBindPlugins(context.Context, fwk.CycleState, *v1.Pod, string) {
	panic(absent("RunPostBindPlugins"))
}

// SetPodNominator is absent: the nominator is the engine's.
func (*handle) SetPodNominator(fwk.PodNominator) { panic(absent("SetPodNominator")) }

// SetPodActivator is absent, as SetPodNominator.
func (*handle) SetPodActivator(fwk.PodActivator) { panic(absent("SetPodActivator")) }

// SetAPICacher is absent, as SetPodNominator.
func (*handle) SetAPICacher(fwk.APICacher) { panic(absent("SetAPICacher")) }

// Close is absent: the scheduler ends its plugins by their context.
func (*handle) Close() error { return absent("Close") }
