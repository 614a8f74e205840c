// SPDX-License-Identifier: Apache-2.0

package intake

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// withoutGroup is a pod as it counts while its native pod group cannot be read: a member of the gang that it declares
// in another way, or of none.
func withoutGroup(p *cluster.Pod) *cluster.Pod {
	if p.Gang == nil || p.Gang.Key.Source != cluster.GangOfGroup {
		return p
	}
	other := *p
	if other.Gang = p.Gang.Unread; other.Gang == nil {
		other.Bound = nil
	}
	return &other
}
