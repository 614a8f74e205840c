// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/conformance/outcome"
)

// PostFilter runs PostFilter for a pod that Decide has just found to fit nowhere, and returns upstream's message and
// the nomination: override is false if the pod keeps the one that it has. asked is false if upstream would not run it.
func (c *Cluster) PostFilter(pod *v1.Pod, out *outcome.Outcome) (message, node string, override, asked bool) {
	failed := out.PreFilter != nil && out.PreFilter.Code == outcome.Failed
	if !out.Infeasible() || failed || len(c.nodes) == 0 || c.fit == nil {
		return "", "", false, false
	}
	result, status := c.framework.RunPostFilterPlugins(c.ctx, c.state, pod, c.fit.Diagnosis.NodeToStatus)
	c.fit.Diagnosis.PostFilterMsg = status.Message()
	if result != nil && result.NominatingInfo.Mode() == fwk.ModeOverride {
		node, override = result.NominatedNodeName, true
	}
	return c.fit.Error(), node, override, true
}
