// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	_ "unsafe" // for linkname

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

//go:linkname findNodesThatPassExtenders k8s.io/kubernetes/pkg/scheduler.findNodesThatPassExtenders
func findNodesThatPassExtenders(context.Context, []fwk.Extender, *v1.Pod, []fwk.NodeInfo, *framework.NodeToStatus) ([]fwk.NodeInfo, error)

//go:linkname prioritizeNodes k8s.io/kubernetes/pkg/scheduler.prioritizeNodes
func prioritizeNodes(context.Context, []fwk.Extender, framework.Framework, fwk.CycleState, *v1.Pod, []fwk.NodeInfo) ([]fwk.NodePluginScores, error)

//go:linkname extendersBinding k8s.io/kubernetes/pkg/scheduler.(*Scheduler).extendersBinding
func extendersBinding(*scheduler.Scheduler, klog.Logger, *v1.Pod, string) (bool, error)

// noScores is a framework whose plugins score nothing.
type noScores struct{ framework.Framework }

func (noScores) HasScorePlugins() bool { return true }

func (noScores) RunPreScorePlugins(context.Context, fwk.CycleState, *v1.Pod, []fwk.NodeInfo) *fwk.Status {
	return nil
}

func (noScores) RunScorePlugins(_ context.Context, _ fwk.CycleState, _ *v1.Pod, nodes []fwk.NodeInfo) ([]fwk.NodePluginScores, *fwk.Status) {
	scores := make([]fwk.NodePluginScores, len(nodes))
	for i := range nodes {
		scores[i].Name = nodes[i].Node().Name
	}
	return scores, nil
}
