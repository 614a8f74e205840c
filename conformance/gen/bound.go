// SPDX-License-Identifier: Apache-2.0

package gen

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// boundPods fills a node to about the crowd of its cluster: one big pod that
// takes most of it, and a few small ones with every odd shape.
func (m *maker) boundPods(node *v1.Node) []*v1.Pod {
	var out []*v1.Pod
	for range m.Intn(Pick(m.Rand, 1, 3, 5)) {
		out = append(out, m.bound(node, m.pod(easy)))
	}
	if m.crowd > 0 && m.Chance(70) {
		out = append(out, m.bound(node, m.filler(node)))
	}
	return out
}

// filler takes crowd percent of what the node has, give or take.
func (m *maker) filler(node *v1.Node) *v1.Pod {
	p := m.pod(easy)
	p.Spec.Resources, p.Spec.InitContainers, p.Spec.Overhead = nil, nil, nil
	p.Spec.Containers = p.Spec.Containers[:1]
	req := v1.ResourceList{}
	// Sorted by listing them: the draws must not follow map order.
	for _, name := range append([]v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, "hugepages-2Mi", "hugepages-1Gi"}, m.extended...) {
		q, ok := node.Status.Allocatable[name]
		if !ok || m.Chance(20) {
			continue
		}
		percent := int64(m.crowd + m.Range(-15, 10))
		if percent < 0 {
			percent = 0
		}
		if name == v1.ResourceCPU {
			req[name] = *resource.NewMilliQuantity(q.MilliValue()*percent/100, resource.DecimalSI)
		} else {
			req[name] = *resource.NewQuantity(q.Value()/100*percent, resource.DecimalSI)
		}
	}
	p.Spec.Containers[0].Resources.Requests = req
	return p
}

func (m *maker) bound(node *v1.Node, p *v1.Pod) *v1.Pod {
	p.Spec.NodeName = node.Name
	p.Status.Phase = v1.PodRunning
	priority := int32(0)
	p.Spec.Priority = &priority
	if m.Chance(15) {
		m.ports(p)
	}
	if m.Chance(6) {
		// Terminating pods keep what they hold until they are gone.
		deleted, grace := Created, int64(30)
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &deleted, &grace
		p.Finalizers = []string{"example.com/keep"}
	}
	if m.Chance(10) {
		m.resize(p)
	}
	m.amongOthers(p, m.crossed/4)
	m.volumes(p, m.volumed/4)
	if m.volumed > 0 && m.Chance(10) {
		p.Spec.Volumes = append(p.Spec.Volumes, Pick(m.Rand,
			v1.Volume{Name: "disk", VolumeSource: v1.VolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "disk-1"}}},
			v1.Volume{Name: "disk", VolumeSource: v1.VolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}}},
			v1.Volume{Name: "disk", VolumeSource: v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{TargetPortal: "portal", IQN: "iqn.disk-1"}}},
			v1.Volume{Name: "disk", VolumeSource: v1.VolumeSource{RBD: &v1.RBDVolumeSource{CephMonitors: []string{"mon-a"}, RBDPool: "pool", RBDImage: "disk-1"}}}))
	}
	return p
}

// resize reports container statuses whose allocated and actual resources differ
// from the spec, with every state a resize can be in.
func (m *maker) resize(p *v1.Pod) {
	for i := range p.Spec.Containers {
		if m.Chance(80) {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, m.status(&p.Spec.Containers[i]))
		}
	}
	for i := range p.Spec.InitContainers {
		if m.Chance(60) {
			p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, m.status(&p.Spec.InitContainers[i]))
		}
	}
	switch m.Intn(5) {
	case 0:
		p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: v1.PodResizePending, Status: v1.ConditionTrue, Reason: v1.PodReasonInfeasible})
	case 1:
		p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: v1.PodResizePending, Status: v1.ConditionTrue, Reason: v1.PodReasonDeferred})
	case 2:
		p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: v1.PodResizeInProgress, Status: v1.ConditionTrue})
	}
	if p.Spec.Resources != nil && m.Chance(70) {
		p.Status.AllocatedResources = m.smallList()
		p.Status.Resources = &v1.ResourceRequirements{Requests: m.smallList()}
	}
}

func (m *maker) status(c *v1.Container) v1.ContainerStatus {
	s := v1.ContainerStatus{Name: c.Name}
	if m.Chance(85) {
		s.AllocatedResources = m.smallList()
	}
	if m.Chance(85) {
		s.Resources = &v1.ResourceRequirements{Requests: m.smallList()}
	}
	return s
}

func (m *maker) smallList() v1.ResourceList {
	out := v1.ResourceList{}
	if m.Chance(85) {
		out[v1.ResourceCPU] = resource.MustParse(m.cpu(easy))
	}
	if m.Chance(85) {
		out[v1.ResourceMemory] = resource.MustParse(m.memory(easy))
	}
	return out
}

// nominated is a pending pod that preemption has promised a node.
func (m *maker) nominated(nodes []*v1.Node) *v1.Pod {
	p := m.pod(Pick(m.Rand, easy, hard))
	priority := int32(Pick(m.Rand, 0, 10, 1000))
	p.Spec.Priority = &priority
	p.Status = v1.PodStatus{Phase: v1.PodPending, NominatedNodeName: nodes[m.Intn(len(nodes))].Name}
	if m.Chance(40) {
		m.ports(p)
	}
	m.amongOthers(p, m.crossed)
	m.volumes(p, m.volumed)
	m.claimDevices(p, m.devices)
	return p
}
