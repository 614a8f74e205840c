// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"fmt"
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// Sizes says how many nodes and pods a scenario gets.
type Sizes struct {
	// Pods asked about per cluster.
	Pods int
	// LargeEvery makes each cluster of that many have more than 500 nodes; 0 none.
	LargeEvery int
	// AtMost bounds the nodes instead, for histories in which capacity is scarce; such clusters
	// are too small to be counted by the oracle. 0 means no bound.
	AtMost int
}

// DefaultSizes meets the counted shares: at least 20 nodes everywhere and more
// than a tenth of the clusters over 500 nodes.
var DefaultSizes = Sizes{Pods: 12, LargeEvery: 8}

// maker carries the draws and the vocabulary of one scenario, so that pods ask
// for what nodes of the same cluster have, nearly have, or lack.
type maker struct {
	*Rand
	zones []string
	// extended resource names that some nodes of this cluster have.
	extended []v1.ResourceName
	images   []image
	// crowd is how full nodes are: percent of allocatable taken by bound pods.
	crowd int
	// has: plugin name -> kumiki has it, so what it reads is generated.
	has map[string]bool
	// owners are the controllers of pods in this cluster, by namespace.
	owners map[string][]owner
	// crossed is the share in percent of pods with rules about other pods.
	crossed int
	// claims: namespace -> names of its claims. volumed is the share in percent of pods
	// with volumes; 0 without any objects of storage.
	claims  map[string][]string
	volumed int
	// deviceClaims: namespace -> names of its resource claims. devices is the share in
	// percent of pods that ask for devices.
	deviceClaims map[string][]string
	devices      int
	// resourceOf: device class -> the extended resource that it states, empty for none.
	resourceOf map[string]string
	// given: pool/device -> some claim has it.
	given map[string]bool
	// made are objects that came with the pods just made.
	made []scenario.Object
	// uniform clusters have nodes of one kind, mostly empty.
	uniform bool
	// serial numbers pods, so that names and UIDs are unique.
	serial int
}

// Make returns scenario number n of the seed, for the plugins that kumiki has.
func Make(seed uint64, n int, sizes Sizes) *scenario.Scenario {
	return MakeWith(seed, n, sizes, DefaultPlugins())
}

// MakeWith is Make for a list of plugins.
func MakeWith(seed uint64, n int, sizes Sizes, plugins []scenario.Plugin) *scenario.Scenario {
	m := &maker{Rand: NewRand(seed, uint64(n)), has: named(plugins)}
	m.zones = []string{"zone-a", "zone-b", "zone-c", "zone-d"}[:m.Range(1, 4)]
	m.extended = Some[v1.ResourceName](m.Rand, m.Range(0, 3), "example.com/gpu", "example.com/fpga", "other.io/nic", "example.com/licence", "example.community/seat")
	m.crowd = Pick(m.Rand, 0, 20, 50, 80, 95, 110)
	m.images = m.makeImages()

	s := &scenario.Scenario{Name: fmt.Sprintf("seed %d cluster %d", seed, n), Profile: m.profile(plugins)}
	m.crossed = Pick(m.Rand, 0, 10, 30, 60)
	m.objects(s)
	count := m.clusterSize(n, sizes)
	m.uniform = m.Rare(5)
	for i := range count {
		n := m.node(i)
		if m.uniform && i > 0 {
			// All of one kind, and empty: nothing ranks them.
			n.Status, n.Spec = *s.Nodes[0].Status.DeepCopy(), *s.Nodes[0].Spec.DeepCopy()
			name := n.Labels[v1.LabelHostname]
			n.Labels = maps.Clone(s.Nodes[0].Labels)
			n.Labels[v1.LabelHostname] = name
		}
		s.Nodes = append(s.Nodes, n)
	}
	m.storageObjects(s, s.Nodes)
	m.deviceObjects(s, s.Nodes)
	for _, node := range s.Nodes {
		if !m.uniform || m.Rare(20) {
			s.Bound = append(s.Bound, m.boundPods(node)...)
		}
	}
	for range m.Intn(3) {
		ghost := m.pod(easy)
		ghost.Spec.NodeName = "gone"
		s.Bound = append(s.Bound, ghost)
	}
	if m.Chance(25) {
		for range m.Range(1, 4) {
			s.Nominated = append(s.Nominated, m.nominated(s.Nodes))
		}
	}
	s.Objects = append(s.Objects, m.taken()...)
	m.attachments(s)
	m.asks(s, sizes.Pods)
	return s
}

func named(plugins []scenario.Plugin) map[string]bool {
	out := make(map[string]bool, len(plugins))
	for _, p := range plugins {
		out[p.Name] = true
	}
	return out
}

// asks draws the questions: some pods share the template of an earlier one, and
// the cluster changes between questions, so that what a scheduler remembers from
// one to the next is put to the test.
func (m *maker) asks(s *scenario.Scenario, count int) {
	nodes := append([]*v1.Node(nil), s.Nodes...)
	for i := range count {
		a := scenario.Ask{Pod: m.incoming(nodes)}
		if i > 0 && m.Chance(30) {
			a.Pod = m.again(s.Asks[m.Intn(i)].Pod)
		}
		a.PlacePrevious = i > 0 && m.Chance(40)
		if m.Chance(15) {
			k := m.Intn(len(nodes))
			nodes[k] = (&World{m}).ChangeNode(nodes[k])
			a.SetNodes = append(a.SetNodes, nodes[k])
		}
		if m.Chance(3) {
			node := m.node(len(nodes) + 1000)
			nodes = append(nodes, node)
			a.SetNodes = append(a.SetNodes, node)
		}
		if m.Chance(3) && len(nodes) > 21 {
			k := m.Intn(len(nodes))
			a.DeleteNodes = append(a.DeleteNodes, nodes[k].Name)
			nodes = append(nodes[:k], nodes[k+1:]...)
		}
		if m.Chance(4) {
			a.DropNominated = true
		}
		if m.Chance(4) {
			a.Nominate = append(a.Nominate, m.nominated(nodes))
		}
		a.SetObjects = append(a.SetObjects, m.taken()...)
		m.changeObjects(s, &a)
		s.Asks = append(s.Asks, a)
	}
}

// taken empties made.
func (m *maker) taken() []scenario.Object {
	out := m.made
	m.made = nil
	return out
}

// again is another pod of the same template.
func (m *maker) again(p *v1.Pod) *v1.Pod {
	out := p.DeepCopy()
	name, _ := m.name("pod")
	out.Name, out.UID = name, types.UID("uid-"+name)
	return out
}

func (m *maker) clusterSize(number int, sizes Sizes) int {
	switch {
	case sizes.AtMost > 0:
		return m.Range(1, sizes.AtMost)
	case sizes.LargeEvery > 0 && number%sizes.LargeEvery == 2:
		return m.Range(501, 760)
	case m.Chance(75):
		return m.Range(20, 60)
	default:
		return m.Range(61, 200)
	}
}

func (m *maker) name(prefix string) (string, int) {
	m.serial++
	return fmt.Sprintf("%s-%d", prefix, m.serial), m.serial
}
