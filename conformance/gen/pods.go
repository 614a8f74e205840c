// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// mood says how demanding a pod is.
type mood int

const (
	// easy pods ask for little and fit on most nodes.
	easy mood = iota
	// mixed pods carry a few constraints.
	mixed
	// hard pods carry many, and often fit nowhere.
	hard
)

// overflow is an amount of memory past int64.
const overflow = "50E"

// Created is the creation time of every generated object: scheduling must not
// depend on it.
var Created = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

// pod makes a pod with containers and resources only.
func (m *maker) pod(md mood) *v1.Pod {
	name, _ := m.name("pod")
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: Pick(m.Rand, namespaces...), Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", CreationTimestamp: Created,
	}}
	p.Spec.SchedulerName = "default-scheduler"
	p.Labels = m.podLabels()
	m.own(p)
	for i := range m.Range(1, Pick(m.Rand, 1, 2, 3)) {
		p.Spec.Containers = append(p.Spec.Containers, m.container("main", i, md))
	}
	if m.Chance(20) {
		for i := range m.Range(1, 3) {
			c := m.container("init", i, md)
			if m.Chance(50) {
				always := v1.ContainerRestartPolicyAlways
				c.RestartPolicy = &always
			}
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		}
	}
	if m.Chance(8) {
		p.Spec.Overhead = v1.ResourceList{v1.ResourceCPU: resource.MustParse("50m"), v1.ResourceMemory: resource.MustParse("64Mi")}
		if m.Chance(20) {
			p.Spec.Overhead["example.com/gpu"] = resource.MustParse("1")
		}
	}
	if m.Chance(10) {
		p.Spec.Resources = m.podLevel()
	}
	return p
}

func (m *maker) container(kind string, i int, md mood) v1.Container {
	c := v1.Container{Name: kind + string(rune('a'+i)), Image: m.imageName()}
	c.Resources.Requests = m.requests(md)
	return c
}

func (m *maker) imageName() string {
	return Pick(m.Rand, "registry.example/app:v1", "registry.example/app", "registry.example/app@sha256:0a0a", "registry.example/app:v2",
		"registry.example:5000/team/model", "registry.example:5000/team/model:2026", "web", "web:latest", "tiny:1", "library/db:16",
		"registry.example/base:stable", "odd", "", "nowhere:1")
}

// requests leaves resources out, asks for "0", for fractions and for page pools.
func (m *maker) requests(md mood) v1.ResourceList {
	out := v1.ResourceList{}
	if m.Chance(75) {
		out[v1.ResourceCPU] = resource.MustParse(m.cpu(md))
	}
	if m.Chance(75) {
		out[v1.ResourceMemory] = resource.MustParse(m.memory(md))
	}
	if m.Chance(12) {
		out[v1.ResourceEphemeralStorage] = resource.MustParse(Pick(m.Rand, "0", "1Gi", "20Gi", "200Gi"))
	}
	special := 4
	if md == hard {
		special = 15
	}
	if m.Chance(special) {
		out["hugepages-2Mi"] = resource.MustParse(Pick(m.Rand, "0", "2Mi", "100Mi", "1Gi"))
	}
	if m.Chance(special / 2) {
		out["hugepages-1Gi"] = resource.MustParse(Pick(m.Rand, "1Gi", "2Gi"))
	}
	if m.Chance(special) {
		names := append([]v1.ResourceName{"absent.io/thing", "kubernetes.io/batch-cpu", "attachable-volumes-csi-driver"}, m.extended...)
		names = append(append(names, m.extended...), m.extended...)
		out[names[m.Intn(len(names))]] = resource.MustParse(Pick(m.Rand, "0", "1", "1", "2", "5"))
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func (m *maker) cpu(md mood) string {
	if md == hard {
		return Pick(m.Rand, "1", "2", "4", "7", "12", "40", "200")
	}
	return Pick(m.Rand, "0", "1m", "5m", "50m", "100m", "250m", "1", "0.1", "1500u", "333333333n")
}

func (m *maker) memory(md mood) string {
	if md == hard {
		return Pick(m.Rand, "1Gi", "4Gi", "16Gi", "64Gi", "1Ti", "12G")
	}
	return Pick(m.Rand, "0", "1", "16Mi", "128Mi", "200Mi", "500M", "1Gi", "100000000500m", "0.5Gi")
}

func (m *maker) podLevel() *v1.ResourceRequirements {
	r := &v1.ResourceRequirements{Requests: v1.ResourceList{}}
	if m.Chance(70) {
		r.Requests[v1.ResourceCPU] = resource.MustParse(Pick(m.Rand, "0", "100m", "1", "2500m"))
	}
	if m.Chance(70) {
		r.Requests[v1.ResourceMemory] = resource.MustParse(Pick(m.Rand, "0", "64Mi", "1Gi", "3Gi"))
	}
	if m.Chance(15) {
		r.Requests["hugepages-2Mi"] = resource.MustParse("4Mi")
	}
	if m.Rare(8) {
		// Not supported at pod level: must be ignored.
		r.Requests[v1.ResourceEphemeralStorage] = resource.MustParse("1Gi")
	}
	return r
}

// incoming makes a pod to ask about.
func (m *maker) incoming(nodes []*v1.Node) *v1.Pod {
	if m.Chance(44) || m.uniform && m.Chance(50) {
		return m.simple(nodes)
	}
	md := Pick(m.Rand, easy, easy, mixed, mixed, hard, hard, hard)
	resources := md
	if md == hard && m.Chance(40) {
		resources = mixed
	}
	p := m.pod(resources)
	p.Status.Phase = v1.PodPending
	percent := map[mood]int{easy: 4, mixed: 22, hard: 55}[md]
	priority := int32(Pick(m.Rand, 0, 0, 10, -5, 1000))
	p.Spec.Priority = &priority
	if m.Chance(percent) {
		p.Spec.NodeSelector = m.nodeSelector()
	}
	if m.Chance(percent) {
		p.Spec.Affinity = m.nodeAffinity(nodes, true)
	} else if m.Chance(30) {
		p.Spec.Affinity = m.nodeAffinity(nodes, false)
	}
	if m.Rare(20) {
		m.pinToFew(p, nodes)
	}
	m.amongOthers(p, percent)
	m.volumes(p, m.volumed)
	m.claimDevices(p, m.devices)
	m.wantFeatures(p)
	if m.Chance(45) {
		p.Spec.Tolerations = m.tolerations(md == easy)
	}
	if m.Chance(5 + percent/2) {
		m.ports(p)
	}
	if m.Rare(40) {
		p.Spec.NodeName = m.nodeName(nodes)
	}
	if m.Rare(30) || p.Spec.NodeName != "" && m.Rare(4) {
		// NodeName leaves one node to filter, and a nominated node is filtered before: only there the filter can reject.
		p.Status.NominatedNodeName = m.nodeName(nodes)
	}
	if m.Rare(50) {
		p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "example.com/hold"}}
		if m.Chance(50) {
			p.Spec.SchedulingGates = append(p.Spec.SchedulingGates, v1.PodSchedulingGate{Name: "example.com/quota"})
		}
	}
	if m.Rare(25) {
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: m.imageName()}}})
	}
	if m.Rare(300) {
		p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceMemory: resource.MustParse(overflow)}
	}
	return p
}

// simple makes a pod that asks for one kind of thing only, so that what the plugin of
// that thing says is what decides.
func (m *maker) simple(nodes []*v1.Node) *v1.Pod {
	p := m.pod(easy)
	p.Status.Phase = v1.PodPending
	p.Spec.Containers, p.Spec.Resources = p.Spec.Containers[:1], nil
	if m.Chance(70) {
		p.Spec.Containers[0].Resources.Requests = nil
		if m.Chance(50) {
			p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("10m")}
		}
	}
	if m.Chance(60) {
		p.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
	}
	switch m.Intn(21) {
	case 12, 13, 14, 15, 16, 17, 18, 19, 20:
		m.corner(p, nodes)
	case 0, 1:
		if m.has["PodTopologySpread"] {
			p.Spec.TopologySpreadConstraints = m.spread()
		}
	case 2, 3:
		if m.has["InterPodAffinity"] {
			m.podAffinity(p)
		}
	case 4, 5, 6:
		m.volumes(p, 100)
	case 7, 8, 9:
		m.claimDevices(p, 100)
	case 10:
		p.Spec.Affinity = m.nodeAffinity(nodes, m.Chance(50))
	case 11:
		m.wantFeatures(p)
		if m.Chance(40) {
			p.Spec.NodeName = m.nodeName(nodes)
			if m.Rare(4) {
				p.Status.NominatedNodeName = m.nodeName(nodes)
			}
		}
		if m.Chance(40) {
			p.Spec.Containers[0].Resources.Requests = m.requests(hard)
		}
	}
	return p
}

// pinToFew lets the pod run on a handful of named nodes, several of which may fit.
func (m *maker) pinToFew(p *v1.Pod, nodes []*v1.Node) {
	s := &v1.NodeSelector{}
	for range m.Range(2, 10) {
		s.NodeSelectorTerms = append(s.NodeSelectorTerms, v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{m.field(nodes, false)}})
		s.NodeSelectorTerms[len(s.NodeSelectorTerms)-1].MatchFields[0].Operator = v1.NodeSelectorOpIn
	}
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{}}
	}
	p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = s
}

func (m *maker) ports(p *v1.Pod) {
	for range m.Range(1, 2) {
		c := &p.Spec.Containers[m.Intn(len(p.Spec.Containers))]
		port := v1.ContainerPort{
			ContainerPort: 80,
			HostPort:      int32(Pick(m.Rand, 0, 8080, 8080, 8081, 9100, 443)),
			HostIP:        Pick(m.Rand, "", "", "0.0.0.0", "127.0.0.1", "10.0.0.1", "::"),
			Protocol:      Pick(m.Rand, v1.ProtocolTCP, v1.ProtocolTCP, v1.ProtocolUDP, v1.ProtocolSCTP, ""),
		}
		c.Ports = append(c.Ports, port)
	}
	if len(p.Spec.InitContainers) > 0 && m.Chance(50) {
		p.Spec.InitContainers[0].Ports = []v1.ContainerPort{{ContainerPort: 81, HostPort: 8080, Protocol: v1.ProtocolTCP}}
	}
}
