// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

var _ plugin.PostFilter = adapter{}

// PreparePostFilter returns the call of PostFilter, with the CycleState of the decision.
func (a adapter) PreparePostFilter(s cluster.Snapshot, p *cluster.Pod,
	rejected func(cluster.NodeIdx) plugin.NodeRejection) func() plugin.Help {
	d := a.h.profile.at(s, p)
	return func() plugin.Help { return a.h.help(d, nodeStatuses{s, rejected}) }
}

// help calls PostFilter. What it nominates besides the pod is part of the answer.
func (h *hosted) help(d *decision, statuses nodeStatuses) plugin.Help {
	host := h.profile.host
	pod, err := d.pod()
	if err != nil {
		return plugin.Help{Message: err.Error(), Last: true}
	}
	host.infos.follow(statuses.s)
	host.nominated.collect()
	var result *fwk.PostFilterResult
	status := h.call(config.PostFilter, inCycle(pod), func(ctx context.Context) (status *fwk.Status) {
		result, status = h.postFilter.PostFilter(ctx, h.state(config.PostFilter, d.state), pod, statuses)
		return status
	})
	answer := plugin.Help{Others: host.nominated.collected(), Message: status.Message(),
		Last: status.IsSuccess() || status.Code() == fwk.UnschedulableAndUnresolvable}
	switch {
	case !status.IsSuccess() && !status.IsRejected():
		answer.Message, answer.Last = failure(status).Error(), true
	case result != nil && result.Mode() == fwk.ModeOverride:
		answer.Nominates, answer.Node = true, result.NominatedNodeName
	}
	return answer
}

// nodeStatuses are the statuses of nodes in a decision that found none.
type nodeStatuses struct {
	s        cluster.Snapshot
	rejected func(cluster.NodeIdx) plugin.NodeRejection
}

var _ fwk.NodeToStatusReader = nodeStatuses{}

// Get returns the status of a node; of a node that does not exist, that of nodes that were not considered.
func (n nodeStatuses) Get(name string) *fwk.Status {
	row, exists := n.s.Find(name)
	if !exists {
		row = cluster.NoNode
	}
	why := n.rejected(row)
	code := fwk.Unschedulable
	switch {
	case why.Pending:
		code = fwk.Pending
	case why.Unresolvable:
		code = fwk.UnschedulableAndUnresolvable
	}
	return fwk.NewStatus(code, why.Reasons...).WithPlugin(why.Plugin)
}

// NodesForStatusCode returns the nodes of a lister that have a code, in its order.
func (n nodeStatuses) NodesForStatusCode(nodes fwk.NodeInfoLister, code fwk.Code) ([]fwk.NodeInfo, error) {
	all, err := nodes.List()
	if err != nil {
		return nil, err
	}
	var out []fwk.NodeInfo
	for _, info := range all {
		if n.Get(info.Node().Name).Code() == code {
			out = append(out, info)
		}
	}
	return out, nil
}

// nominatedNode returns the node of a nomination, as upstream reads it.
func nominatedNode(pod *v1.Pod, info *fwk.NominatingInfo) string {
	if info.Mode() == fwk.ModeOverride {
		return info.NominatedNodeName
	}
	return pod.Status.NominatedNodeName
}
