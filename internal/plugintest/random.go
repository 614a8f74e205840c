// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// The words that random clusters are made of: few, so that they meet.
var (
	someKeys   = []string{"zone", "disk", "gen", "metadata.name"}
	someValues = []string{"a", "b", "1", "5", "10", "x!"}
	Effects    = []v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute,
		v1.TaintEffectPreferNoSchedule}
	someImages        = []string{"big:1", "small:1", "rare:1"}
	ExtendedResources = []string{"example.com/gpu", "other.org/nic", "hugepages-2Mi"}
	someIPs           = []string{"", "127.0.0.1", "10.0.0.1"}
)

func Pick[T any](t *rapid.T, from []T, what string) T { return rapid.SampledFrom(from).Draw(t, what) }

func Chance(t *rapid.T, percent int, what string) bool {
	return rapid.IntRange(0, 99).Draw(t, what) < percent
}

func amount(t *rapid.T, most int) string {
	return fmt.Sprint(rapid.IntRange(0, most).Draw(t, "amount"))
}

func RandomNode(t *rapid.T, name string) *v1.Node {
	n := Node(name)
	n.Status.Allocatable = ResourceList("pods", amount(t, 4), "cpu", amount(t, 4), "memory",
		Pick(t, []string{"0", "1Gi", "4Gi", "3e18", "50E"}, "memory"))
	if Chance(t, 30, "ephemeral") {
		Allocatable("ephemeral-storage", amount(t, 8))(n)
	}
	for _, sc := range ExtendedResources {
		if Chance(t, 30, sc) {
			Allocatable(sc, amount(t, 4))(n)
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "labels") {
		Labels(Pick(t, someKeys, "key"), Pick(t, someValues, "value"))(n)
	}
	for range rapid.IntRange(0, 2).Draw(t, "taints") {
		Taint(Pick(t, someKeys, "key"), Pick(t, someValues, "value"), Pick(t, Effects, "effect"))(n)
	}
	if Chance(t, 10, "cordon") {
		Cordon(n)
	}
	for _, img := range someImages {
		if Chance(t, 20, img) {
			HasImage(img, rapid.Int64Range(1, 2000).Draw(t, "size"))(n)
		}
	}
	return n
}

func RandomTerm(t *rapid.T, nodes int) v1.NodeSelectorTerm {
	var term v1.NodeSelectorTerm
	for range rapid.IntRange(0, 3).Draw(t, "expressions") {
		op := Pick(t, []v1.NodeSelectorOperator{v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn, v1.NodeSelectorOpExists,
			v1.NodeSelectorOpDoesNotExist, v1.NodeSelectorOpGt, v1.NodeSelectorOpLt}, "operator")
		var values []string
		switch op {
		case v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn:
			values = rapid.SliceOfN(rapid.SampledFrom(someValues), 0, 3).Draw(t, "values")
		case v1.NodeSelectorOpGt, v1.NodeSelectorOpLt:
			values = []string{Pick(t, someValues, "value")}
		}
		term.MatchExpressions = append(term.MatchExpressions, Expression(Pick(t, someKeys, "key"), op, values...))
	}
	if Chance(t, 20, "match fields") {
		for range rapid.IntRange(1, 2).Draw(t, "fields") {
			op := Pick(t, []v1.NodeSelectorOperator{v1.NodeSelectorOpIn, v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn},
				"operator")
			key := Pick(t, []string{"metadata.name", "metadata.name", "metadata.name", "spec.other"}, "field")
			term.MatchFields = append(term.MatchFields, Expression(key, op,
				Pick(t, []string{NodeName(rapid.IntRange(0, nodes).Draw(t, "node")), ""}, "name")))
		}
	}
	return term
}

func NodeName(i int) string { return fmt.Sprintf("n%03d", i) }

func RandomPod(t *rapid.T, name string, nodes int) *v1.Pod {
	p := Pod(name)
	for range rapid.IntRange(1, 2).Draw(t, "containers") {
		Requests()(p)
		c := &p.Spec.Containers[len(p.Spec.Containers)-1]
		c.Image = Pick(t, append(someImages, "absent:1"), "image")
		c.Resources.Requests = v1.ResourceList{}
		for _, name := range []string{"cpu", "memory", "ephemeral-storage"} {
			if Chance(t, 50, name) {
				q := Pick(t, []string{"0", "1", "500m", "2", "1Gi", "3e18", "50E"}, "request")
				for k, v := range ResourceList(name, q) { // order: one entry
					c.Resources.Requests[k] = v
				}
			}
		}
		for _, name := range ExtendedResources {
			if Chance(t, 25, name) {
				for k, v := range ResourceList(name, amount(t, 3)) { // order: one entry
					c.Resources.Requests[k] = v
				}
			}
		}
	}
	if Chance(t, 3, "many scalars") {
		for i := range 20 {
			for k, v := range ResourceList(fmt.Sprintf("example.com/many-%d", i), amount(t, 2)) { // order: one entry
				p.Spec.Containers[0].Resources.Requests[k] = v
			}
		}
	}
	if Chance(t, 30, "ports") {
		HostPort(Pick(t, someIPs, "ip"), Pick(t, []v1.Protocol{"", v1.ProtocolTCP, v1.ProtocolUDP}, "protocol"),
			rapid.Int32Range(80, 81).Draw(t, "port"))(p)
	}
	for range rapid.IntRange(0, 2).Draw(t, "tolerations") {
		op := Pick(t, []v1.TolerationOperator{"", v1.TolerationOpEqual, v1.TolerationOpExists, v1.TolerationOpGt},
			"operator")
		Toleration(Pick(t, append(someKeys, "", v1.TaintNodeUnschedulable), "key"), op,
			Pick(t, append(someValues, ""), "value"), Pick(t, append(Effects, ""), "effect"))(p)
	}
	if Chance(t, 20, "selector") {
		NodeSelector(Pick(t, someKeys, "key"), Pick(t, someValues, "value"))(p)
	}
	if Chance(t, 50, "required") {
		var terms []v1.NodeSelectorTerm
		for range rapid.IntRange(0, 2).Draw(t, "terms") {
			terms = append(terms, RandomTerm(t, nodes))
		}
		RequiredAffinity(terms...)(p)
	}
	for range rapid.IntRange(0, 2).Draw(t, "preferred") {
		PreferredAffinity(rapid.Int32Range(0, 100).Draw(t, "weight"), RandomTerm(t, nodes))(p)
	}
	if Chance(t, 5, "insists") {
		OnNode(NodeName(rapid.IntRange(0, nodes).Draw(t, "node")))(p)
	}
	return p
}

// RandomCluster is a cluster of up to most nodes with pods on them, some nodes gone under their pods.
func RandomCluster(t *rapid.T, most int) (w *Cluster, nodes int) {
	w, nodes = NewCluster(), rapid.IntRange(0, most).Draw(t, "nodes")
	templates := rapid.IntRange(1, 6).Draw(t, "templates")
	var kinds []*v1.Node
	for i := range templates {
		kinds = append(kinds, RandomNode(t, fmt.Sprint("template", i)))
	}
	for i := range nodes {
		n := Pick(t, kinds, "kind").DeepCopy()
		n.Name = NodeName(i)
		w.With(n)
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "pods") {
		p := RandomPod(t, fmt.Sprint("bound", i), nodes)
		p.Spec.NodeName = NodeName(rapid.IntRange(0, nodes).Draw(t, "on")) // one name more than there are nodes
		w.With(p)
	}
	return w, nodes
}

// RandomChange does something small to a world.
func RandomChange(t *rapid.T, w *Cluster, nodes, step int) {
	name := NodeName(rapid.IntRange(0, nodes).Draw(t, "changed node"))
	switch rapid.IntRange(0, 3).Draw(t, "change") {
	case 0:
		w.With(RandomNode(t, name))
	case 1:
		w.Store.DeleteNode(name)
	case 2:
		p := RandomPod(t, fmt.Sprint("late", step), nodes)
		p.Spec.NodeName = name
		w.With(p)
	case 3:
		w.Store.DeletePod(cluster.UID(fmt.Sprint("uid-bound", rapid.IntRange(0, 5).Draw(t, "gone"))))
	}
}
