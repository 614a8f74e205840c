// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
)

// pick chooses one of n.
type pick func(what string, n int) int

func (c pick) oneIn(what string, n int) bool { return c(what, n) == 0 }

// mix is what instances are made of.
type mix struct {
	nodes, members int // at most; there are two at least
	// kinds is of how many kinds members are at most.
	kinds int
	// wide members have to do with pods on other nodes: affinity, spread.
	wide bool
	// picky members have node selectors and ports.
	picky bool
	// domains asks for a topology.
	domains bool
	// extras leaves some members out of the quorum.
	extras bool
	// used puts other pods on the nodes.
	used bool
}

const zone, rack, host = v1.LabelTopologyZone, "rack", v1.LabelHostname

// instance makes a small cluster and a gang that may fit it or not.
func instance(w *world, c pick, m mix) gang.Need {
	nodes := 2 + c("nodes", m.nodes-1)
	for i := range nodes {
		labels := map[string]string{host: fmt.Sprintf("n%d", i)}
		if z := c("zone", 2); !c.oneIn("no zone", 8) {
			labels[zone], labels[rack] = fmt.Sprintf("z%d", z), fmt.Sprintf("z%dr%d", z, c("rack", 2))
		}
		if c.oneIn("disk", 3) {
			labels["disk"] = "ssd"
		}
		w.node(fmt.Sprintf("n%d", i), labels, map[string]string{
			"cpu": fmt.Sprint(1 + c("cores", 6)), "memory": fmt.Sprintf("%dGi", 1+c("memory", 6)),
			"example.com/gpu": fmt.Sprint(c("gpus", 3)),
			"pods":            fmt.Sprint(2 + c("pods", 5))})
	}
	if m.used {
		for i := range c("used", 4) {
			p := pod(fmt.Sprintf("old%d", i), map[string]string{"cpu": fmt.Sprint(1 + c("old cores", 2))})
			p.Labels = map[string]string{"app": fmt.Sprintf("k%d", c("old app", 3))}
			p.Spec.NodeName = fmt.Sprintf("n%d", c("old node", nodes))
			w.store.SetPod(w.intake.Pod(p))
		}
	}
	need := gang.Need{Members: m.gang(w, c)}
	need.Quorum = len(need.Members)
	if m.extras {
		need.Quorum -= c("extras", min(3, need.Quorum))
	}
	if m.domains {
		need.Topology = [][]cluster.GangTopology{
			{{Key: rack, Required: true}}, {{Key: zone, Required: true}}, {{Key: zone, Required: true}, {Key: rack}},
			{{Key: rack}}, {{Key: zone}, {Key: rack}},
		}[c("topology", 5)]
		if c.oneIn("bound", 4) {
			need.Bound = []cluster.NodeIdx{0}
		}
	}
	return need
}

// gang makes members of some kinds, those of one kind alike.
func (m mix) gang(w *world, c pick) []*cluster.Pod {
	var like []*v1.Pod
	for k := range 1 + c("kinds", m.kinds) {
		like = append(like, m.kind(c, k))
	}
	var members []*cluster.Pod
	for i := range 2 + c("members", m.members-1) {
		p := like[c("kind", len(like))].DeepCopy()
		p.Name = fmt.Sprintf("m%d", i)
		p.UID = types.UID(p.Name)
		members = append(members, w.intake.Pod(p))
	}
	return members
}

// kind makes one kind of member.
func (m mix) kind(c pick, k int) *v1.Pod {
	amounts := map[string]string{"cpu": fmt.Sprint(1 + c("asks cores", 4)),
		"memory": fmt.Sprintf("%dGi", 1+c("asks memory", 4))}
	if c.oneIn("asks gpu", 3) {
		amounts["example.com/gpu"] = "1"
	}
	p := pod("m", amounts)
	p.Labels = map[string]string{"app": fmt.Sprintf("k%d", k)}
	if m.picky && c.oneIn("picky", 3) {
		p.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	}
	if m.picky && c.oneIn("port", 5) {
		p.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 80, HostPort: 80, Protocol: v1.ProtocolTCP}}
	}
	if m.wide {
		m.widen(c, p, k)
	}
	return p
}

// widen makes a kind depend on pods on other nodes.
func (m mix) widen(c pick, p *v1.Pod, k int) {
	about := func(k int) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("k%d", k)}}
	}
	key := []string{host, zone}[c("key", 2)]
	switch c("wide", 6) {
	case 0:
		p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
				{LabelSelector: about(k), TopologyKey: key}}}}
	case 1:
		p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
				{LabelSelector: about(c("near", m.kinds)), TopologyKey: key}}}}
	case 2:
		p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
				{LabelSelector: about(c("far", m.kinds)), TopologyKey: key}}}}
	case 3:
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: key,
			WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: about(k)}}
	}
}
