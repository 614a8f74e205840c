// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// PrepareScore is not called: PrepareUncached is.
func (*Plugin) PrepareScore(cluster.Snapshot, *cluster.Pod) plugin.PodScore { return nil }

// Normal returns the normaliser that Normalize implements.
func (*Plugin) Normal() plugin.Normal { return plugin.ByMax }

// Skips reports whether the pod requests no devices.
func (*Plugin) Skips(_ cluster.Snapshot, p *cluster.Pod) bool { return p.Spec.Devices == nil }

// PrepareUncached ranks nodes by the positions of the alternatives that a pod's requests get there (KEP-4816). A pod
// without alternatives is not scored; upstream gives it 0 on every node.
func (pl *Plugin) PrepareUncached(_ cluster.Snapshot, p *cluster.Pod,
	_ []cluster.NodeIdx) (plugin.UncachedScore, error) {
	pr := pl.last
	if pr == nil || pr.pod.UID != p.UID || !pr.allocate || !slices.ContainsFunc(pr.claims, prioritized) {
		return nil, nil
	}
	return ranking{pr}, nil
}

// prioritized reports whether a request of the claim has alternatives.
func prioritized(c podClaim) bool {
	return slices.ContainsFunc(c.Spec.Devices.Requests, func(r resourceapi.DeviceRequest) bool {
		return len(r.FirstAvailable) > 0
	})
}

type ranking struct{ pr *prepared }

func (r ranking) Plain(_ cluster.Snapshot, v *cluster.NodeView) int64 { return r.pr.rank(v.Row) }

func (r ranking) Rows(_ cluster.Snapshot, fit []cluster.NodeIdx, out []int64) {
	for i, n := range fit {
		out[i] = r.pr.rank(n)
	}
}

func (ranking) Normalize(_ cluster.Snapshot, _ []cluster.NodeIdx, scores []int64) {
	if len(scores) == 0 {
		return
	}
	largest := slices.Max(scores)
	for i := range scores {
		scores[i] = plugin.ByMax.Apply(scores[i], largest)
	}
}

// rank sums over the claims the scores of their alternatives: 8 for the first, 7 for the second, and so on.
func (pr *prepared) rank(n cluster.NodeIdx) int64 {
	a := pr.found(n)
	if a.out == nil {
		return 0
	}
	var sum int64
	next := 0
	for i := range pr.claims {
		c := &pr.claims[i]
		allocation := c.Status.Allocation
		if allocation == nil {
			allocation = &a.out.results[next]
			next++
		}
		sum += worth(&c.Spec.Devices, allocation)
	}
	return sum
}

func worth(asked *resourceapi.DeviceClaim, got *resourceapi.AllocationResult) int64 {
	var sum int64
	for i := range asked.Requests {
		r := &asked.Requests[i]
		for j := range r.FirstAvailable {
			ref := resourceclaim.CreateSubRequestRef(r.Name, r.FirstAvailable[j].Name)
			if slices.ContainsFunc(got.Devices.Results,
				func(d resourceapi.DeviceRequestAllocationResult) bool { return d.Request == ref }) {
				sum += int64(resourceapi.FirstAvailableDeviceRequestMaxSize - j)
			}
		}
	}
	return sum
}
