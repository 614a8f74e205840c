// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// RunReservers says which native Reservers the profile has.
func (p *Profile) RunReservers(native []plugin.Reserver) {
	for _, r := range native {
		p.runs.reservers = append(p.runs.reservers, r.Name())
	}
}

// RunReservePluginsReserve runs Reserve of the hosted plugins, up to the first that does not accept. Native plugins
// reserve in the state of the scheduler, which a plugin must not change: for a pod for which one of them would, the
// status is ErrAbsent.
func (h *handle) RunReservePluginsReserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	node string) *fwk.Status {
	if name := h.p.reservedNatively(pod); name != "" {
		return fwk.AsStatus(fmt.Errorf("%w for a pod of which %s reserves something",
			absent("RunReservePluginsReserve"), name))
	}
	for _, hd := range h.p.reserves {
		status := hd.callOutside(ctx, config.Reserve, pod, func(ctx context.Context) *fwk.Status {
			return hd.reserve.Reserve(ctx, hd.state(config.Reserve, state), pod, node)
		})
		switch {
		case status.IsRejected():
			return status.WithPlugin(hd.name)
		case !status.IsSuccess():
			return fwk.AsStatus(fmt.Errorf("running Reserve plugin %q: %w", hd.name, failure(status)))
		}
	}
	return nil
}

// RunReservePluginsUnreserve runs Unreserve of the hosted plugins in reverse order.
func (h *handle) RunReservePluginsUnreserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) {
	for _, hd := range slices.Backward(h.p.reserves) {
		hd.callOutside(ctx, config.Reserve, pod, func(ctx context.Context) *fwk.Status {
			hd.reserve.Unreserve(ctx, hd.state(config.Reserve, state), pod, node)
			return nil
		})
	}
}

// reservedNatively returns the native plugin that reserves something for a pod; empty for none.
func (p *Profile) reservedNatively(pod *v1.Pod) string {
	uses := func(name string, does bool) bool { return does && slices.Contains(p.runs.reservers, name) }
	volumes := slices.ContainsFunc(pod.Spec.Volumes, func(v v1.Volume) bool {
		return v.PersistentVolumeClaim != nil || v.Ephemeral != nil
	})
	switch {
	case uses(config.VolumeBinding, volumes):
		return config.VolumeBinding
	case uses(config.DynamicResources, len(pod.Spec.ResourceClaims) > 0):
		return config.DynamicResources
	}
	return ""
}
