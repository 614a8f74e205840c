// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const mebi = 1 << 20

func (m *maker) node(i int) *v1.Node {
	name := fmt.Sprintf("node-%04d", i)
	n := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", Labels: m.nodeLabels(name)},
		Spec:       v1.NodeSpec{Taints: m.taints()},
		Status:     v1.NodeStatus{Images: m.nodeImages()},
	}
	if m.Chance(5) {
		n.Spec.Unschedulable = true
		if m.Chance(60) {
			n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule})
		}
	}
	n.Status.Allocatable = m.allocatable()
	n.Status.Capacity = n.Status.Allocatable.DeepCopy()
	n.Status.DeclaredFeatures = m.declared()
	if m.Rare(60) {
		// Capacity must not stand in for allocatable.
		n.Status.Allocatable = nil
	}
	return n
}

// declared are features that a node says it has, sorted as the API asks.
func (m *maker) declared() []string {
	if !m.has["NodeDeclaredFeatures"] || m.Chance(30) {
		return nil
	}
	return Some(m.Rand, m.Range(1, 3), "ExtendWebSocketsToKubelet", "RestartAllContainersOnContainerExits", "SomethingNew", "UserNamespacesHostNetworkSupport")
}

// wantFeatures lets the pod use what only some nodes declare.
func (m *maker) wantFeatures(p *v1.Pod) {
	if !m.has["NodeDeclaredFeatures"] {
		return
	}
	if m.Rare(25) {
		users := m.Chance(20)
		p.Spec.HostNetwork, p.Spec.HostUsers = true, &users
	}
	if m.Rare(25) {
		c := &p.Spec.Containers[0]
		if len(p.Spec.InitContainers) > 0 && m.Chance(50) {
			c = &p.Spec.InitContainers[0]
		}
		c.RestartPolicyRules = []v1.ContainerRestartRule{{Action: Pick(m.Rand, v1.ContainerRestartRuleActionRestart, v1.ContainerRestartRuleActionRestartAllContainers)}}
	}
}

func (m *maker) nodeLabels(name string) map[string]string {
	l := map[string]string{v1.LabelHostname: name, v1.LabelArchStable: Pick(m.Rand, "amd64", "amd64", "arm64")}
	if m.Chance(90) {
		l[v1.LabelTopologyZone] = Pick(m.Rand, m.zones...)
		l[v1.LabelTopologyRegion] = "region-1"
	}
	if m.Chance(50) {
		l["disk"] = Pick(m.Rand, "ssd", "ssd", "hdd", "")
	}
	if m.Chance(60) {
		l["generation"] = Pick(m.Rand, "1", "2", "3", "5", "8", "13")
	}
	if m.Chance(25) {
		// Values at and past the edges of integer parsing.
		l["rank"] = Pick(m.Rand, "007", "-3", "0", "9223372036854775807", "9223372036854775808", "1e3", "abc", "", "2.5", "42")
	}
	if m.Chance(10) {
		l["dedicated"] = ""
	}
	return l
}

func (m *maker) taints() []v1.Taint {
	if m.Chance(65) {
		return nil
	}
	var out []v1.Taint
	seen := map[[2]string]bool{} // key, effect -> present; the API refuses the pair twice
	for range m.Range(1, 3) {
		t := v1.Taint{
			Key:    Pick(m.Rand, "dedicated", "gpu", "maintenance", "spot"),
			Value:  Pick(m.Rand, "", "a", "b", "true"),
			Effect: Pick(m.Rand, v1.TaintEffectNoSchedule, v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute),
		}
		pair := [2]string{t.Key, string(t.Effect)}
		if !seen[pair] {
			seen[pair] = true
			out = append(out, t)
		}
	}
	if m.Chance(8) {
		out = append(out, v1.Taint{Key: v1.TaintNodeNotReady, Effect: v1.TaintEffectNoExecute}, v1.Taint{Key: v1.TaintNodeNotReady, Effect: v1.TaintEffectNoSchedule})
	}
	return out
}

// allocatable mixes ordinary nodes with odd ones: absent or zero resources,
// quantities that round, page pools, extended resources.
func (m *maker) allocatable() v1.ResourceList {
	cpu := Pick(m.Rand, "1", "2", "4", "8", "16", "64", "1930m", "7910m", "500m", "3999500u")
	memory := Pick(m.Rand, "1Gi", "2Gi", "8Gi", "32Gi", "256Gi", "7910Mi", "15G", "4000000000", "1.5Gi", "2147483647999m")
	a := v1.ResourceList{
		v1.ResourceCPU:    resource.MustParse(cpu),
		v1.ResourceMemory: resource.MustParse(memory),
		v1.ResourcePods:   resource.MustParse(Pick(m.Rand, "110", "110", "110", "250", "16", "4", "2", "1")),
	}
	if m.Chance(70) {
		a[v1.ResourceEphemeralStorage] = resource.MustParse(Pick(m.Rand, "10Gi", "100Gi", "1Ti", "0"))
	}
	if m.Chance(25) {
		a["hugepages-2Mi"] = resource.MustParse(Pick(m.Rand, "0", "100Mi", "512Mi", "2Gi"))
	}
	if m.Chance(15) {
		a["hugepages-1Gi"] = resource.MustParse(Pick(m.Rand, "0", "1Gi", "2Gi", "8Gi"))
	}
	for _, name := range m.extended {
		if m.Chance(40) {
			a[name] = resource.MustParse(Pick(m.Rand, "0", "1", "2", "4", "8", "1000"))
		}
	}
	if m.Rare(50) {
		a["kubernetes.io/batch-cpu"] = resource.MustParse("4")
	}
	if m.Rare(50) {
		a["attachable-volumes-csi-driver"] = resource.MustParse("8")
	}
	if m.Rare(40) {
		a[Pick(m.Rand, v1.ResourceCPU, v1.ResourceMemory, v1.ResourcePods)] = resource.MustParse("0")
	}
	if m.Rare(40) {
		delete(a, Pick(m.Rand, v1.ResourceCPU, v1.ResourceMemory, v1.ResourcePods))
	}
	return a
}

// image is one entry of a node's image list.
type image struct {
	names []string
	size  int64
}

func (m *maker) makeImages() []image {
	all := []image{
		{[]string{"registry.example/app:v1", "registry.example/app@sha256:0a0a"}, 900 * mebi},
		{[]string{"registry.example/app:v2"}, 1100 * mebi},
		{[]string{"registry.example:5000/team/model:latest", "registry.example:5000/team/model:2026"}, 6000 * mebi},
		{[]string{"web:latest"}, 24 * mebi},
		{[]string{"tiny:1"}, 3 * mebi},
		{[]string{"library/db:16", "db@sha256:0b0b"}, 431234567},
		{[]string{"registry.example/base:stable"}, 23 * mebi},
		{[]string{"odd"}, 700 * mebi},
	}
	return Some(m.Rand, m.Range(0, len(all)), all...)
}

func (m *maker) nodeImages() []v1.ContainerImage {
	var out []v1.ContainerImage
	if len(m.images) == 0 || m.Chance(25) {
		return nil
	}
	for _, im := range Some(m.Rand, m.Range(1, len(m.images)), m.images...) {
		out = append(out, v1.ContainerImage{Names: im.names, SizeBytes: im.size})
	}
	if m.Rare(20) {
		// The same image listed twice on one node.
		out = append(out, out[0])
	}
	return out
}
