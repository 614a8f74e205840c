// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// noDevices is a cluster without device classes: extended resources are served
// by nodes only. Methods that would need objects are absent on purpose, so that
// a plugin that starts to use them fails loudly.
type noDevices struct{ fwk.SharedDRAManager }

func (noDevices) DeviceClassResolver() fwk.DeviceClassResolver { return noDevices{} }

func (noDevices) GetDeviceClass(v1.ResourceName) *resourceapi.DeviceClass { return nil }

// nominator answers from a fixed list of nominated pods.
type nominator struct {
	// byNode: node name -> pods nominated to it, in scenario order.
	byNode map[string][]fwk.PodInfo
}

func newNominator(pods []*v1.Pod) *nominator {
	n := &nominator{}
	n.set(pods)
	return n
}

func (n *nominator) set(pods []*v1.Pod) {
	n.byNode = map[string][]fwk.PodInfo{}
	for _, p := range pods {
		info, err := framework.NewPodInfo(p)
		if err != nil {
			continue
		}
		n.byNode[p.Status.NominatedNodeName] = append(n.byNode[p.Status.NominatedNodeName], info)
	}
}

func (n *nominator) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {}
func (n *nominator) DeleteNominatedPodIfExists(*v1.Pod)                            {}
func (n *nominator) UpdateNominatedPod(klog.Logger, *v1.Pod, fwk.PodInfo)          {}
func (n *nominator) NominatedPodsForNode(node string) []fwk.PodInfo                { return n.byNode[node] }
