// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// Remedy frees a claim that is allocated where the pod cannot run, and that no other pod uses, so that it can be
// allocated elsewhere (upstream: PostFilter). It frees one claim at a time: the first; upstream takes any. The message
// is empty if there is none.
func (pl *Plugin) Remedy(s cluster.Snapshot, p *cluster.Pod) (writes []cluster.Write, message string) {
	pr := pl.last
	if pr == nil || pr.pod.UID != p.UID || pr.at != revisions(s) {
		return nil, ""
	}
	for i := range pr.claims {
		c := &pr.claims[i]
		if !pr.unavailable[i] || pr.extended != nil && i == len(pr.claims)-1 {
			continue
		}
		if n := len(c.Status.ReservedFor); n == 0 || n == 1 && reservedFor(p, c.ResourceClaim) {
			target := targetOf(c.ResourceClaim)
			target.ResourceVersion = c.ResourceVersion
			return []cluster.Write{cluster.ReleaseClaim{Target: target, Deallocate: true}},
				"deallocation of ResourceClaim completed"
		}
	}
	if pr.extended != nil && pr.extended.made() {
		return []cluster.Write{cluster.DeleteClaim{Target: targetOf(pr.extended.claim), Pod: p.Ref()}},
			"deletion of ResourceClaim completed"
	}
	return nil, ""
}
