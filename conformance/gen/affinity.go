// SPDX-License-Identifier: Apache-2.0

package gen

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// requirement draws one expression over the label vocabulary of nodeLabels.
// With malformed, shapes that the API server refuses but a scheduler must not
// trip over can come too.
func (m *maker) requirement(malformed bool) v1.NodeSelectorRequirement {
	key := Pick(m.Rand, v1.LabelTopologyZone, v1.LabelTopologyZone, "disk", "disk", "generation", "generation", "rank", v1.LabelArchStable, "dedicated", "absent")
	op := Pick(m.Rand, v1.NodeSelectorOpIn, v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn, v1.NodeSelectorOpExists, v1.NodeSelectorOpDoesNotExist)
	if key == "generation" || key == "rank" {
		op = Pick(m.Rand, v1.NodeSelectorOpIn, v1.NodeSelectorOpGt, v1.NodeSelectorOpLt, v1.NodeSelectorOpExists, v1.NodeSelectorOpNotIn)
	}
	r := v1.NodeSelectorRequirement{Key: key, Operator: op}
	switch op {
	case v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn:
		r.Values = m.labelValues(key)
	case v1.NodeSelectorOpGt, v1.NodeSelectorOpLt:
		r.Values = []string{Pick(m.Rand, "1", "2", "3", "7", "40", "0", "007")}
		if m.Rare(25) {
			// The API server lets these pass in preferred terms, and the first two everywhere.
			r.Values[0] = Pick(m.Rand, "abc", "9223372036854775808", "", "2.5", "1e3", "9223372036854775807", "+5", "-4")
		}
	}
	if malformed && m.Rare(6) {
		switch m.Intn(6) {
		case 0:
			r.Values = nil
		case 1:
			r.Values = append(r.Values, "1", "2")
		case 2:
			r.Operator = "Near"
		case 3:
			r.Key = "not a key!"
		case 4:
			r.Values = []string{"bad value!"}
		case 5:
			r.Key = ""
		}
	}
	return r
}

func (m *maker) labelValues(key string) []string {
	switch key {
	case v1.LabelTopologyZone:
		return Some(m.Rand, m.Range(1, 2), "zone-a", "zone-b", "zone-c", "zone-d", "zone-x")
	case "disk":
		return Some(m.Rand, m.Range(1, 2), "ssd", "hdd", "")
	case "generation":
		return Some(m.Rand, m.Range(1, 4), "1", "2", "3", "5", "8", "13", "21")
	case "rank":
		return Some(m.Rand, m.Range(1, 3), "007", "7", "abc", "", "42")
	case v1.LabelArchStable:
		return []string{Pick(m.Rand, "amd64", "arm64")}
	}
	return []string{Pick(m.Rand, "", "x")}
}

// field draws a matchFields requirement on the node's name.
func (m *maker) field(nodes []*v1.Node, malformed bool) v1.NodeSelectorRequirement {
	r := v1.NodeSelectorRequirement{
		Key:      metav1.ObjectNameField,
		Operator: Pick(m.Rand, v1.NodeSelectorOpIn, v1.NodeSelectorOpIn, v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn),
		Values:   []string{m.nodeName(nodes)},
	}
	if malformed && m.Rare(4) {
		switch m.Intn(4) {
		case 0:
			r.Values = append(r.Values, m.nodeName(nodes))
		case 1:
			r.Key = "metadata.namespace"
		case 2:
			r.Operator = v1.NodeSelectorOpExists
		case 3:
			r.Values = nil
		}
	}
	return r
}

func (m *maker) nodeName(nodes []*v1.Node) string {
	if len(nodes) == 0 || m.Rare(8) {
		return "no-such-node"
	}
	return nodes[m.Intn(len(nodes))].Name
}

// term draws one node selector term; with nodes it may match the name field.
// An empty term matches nothing.
func (m *maker) term(nodes []*v1.Node, malformed bool) v1.NodeSelectorTerm {
	var t v1.NodeSelectorTerm
	if malformed && m.Rare(15) {
		return t
	}
	if nodes != nil && m.Rare(6) {
		for range m.Range(1, 2) {
			t.MatchFields = append(t.MatchFields, m.field(nodes, malformed))
		}
		if m.Chance(60) {
			return t
		}
	}
	for range m.Range(1, 2) {
		t.MatchExpressions = append(t.MatchExpressions, m.requirement(malformed))
	}
	return t
}

// nodeAffinity draws required and preferred terms.
func (m *maker) nodeAffinity(nodes []*v1.Node, required bool) *v1.Affinity {
	a := &v1.NodeAffinity{}
	malformed := m.Rare(6)
	if required {
		s := &v1.NodeSelector{}
		pinned := m.Rare(6)
		for range m.Range(1, 3) {
			if pinned {
				// Every term names nodes: the PreFilter result narrows the search.
				s.NodeSelectorTerms = append(s.NodeSelectorTerms, v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{m.field(nodes, malformed)}})
				if m.Rare(4) {
					last := &s.NodeSelectorTerms[len(s.NodeSelectorTerms)-1]
					last.MatchFields = append(last.MatchFields, m.field(nodes, malformed))
				}
				continue
			}
			s.NodeSelectorTerms = append(s.NodeSelectorTerms, m.term(nodes, malformed))
		}
		if malformed && m.Rare(10) {
			s.NodeSelectorTerms = nil
		}
		a.RequiredDuringSchedulingIgnoredDuringExecution = s
	}
	if !required || m.Chance(40) {
		for range m.Range(1, 4) {
			weight := m.Range(1, 100)
			if malformed && m.Rare(6) {
				weight = 0
			}
			a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
				v1.PreferredSchedulingTerm{Weight: int32(weight), Preference: m.term(nodes, malformed)})
		}
	}
	return &v1.Affinity{NodeAffinity: a}
}

func (m *maker) nodeSelector() map[string]string {
	out := map[string]string{}
	for range m.Range(1, 2) {
		key := Pick(m.Rand, v1.LabelTopologyZone, "disk", "generation", v1.LabelArchStable, "dedicated")
		out[key] = m.labelValues(key)[0]
	}
	return out
}

func (m *maker) tolerations(all bool) []v1.Toleration {
	if all && m.Chance(50) {
		return []v1.Toleration{{Operator: v1.TolerationOpExists}}
	}
	var out []v1.Toleration
	for range m.Range(1, 3) {
		t := v1.Toleration{
			Key:      Pick(m.Rand, "dedicated", "gpu", "maintenance", "spot", v1.TaintNodeUnschedulable, v1.TaintNodeNotReady),
			Operator: Pick(m.Rand, v1.TolerationOpExists, v1.TolerationOpEqual, ""),
			Effect:   Pick(m.Rand, "", v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute),
		}
		if t.Operator != v1.TolerationOpExists {
			t.Value = Pick(m.Rand, "", "a", "b", "true")
		}
		if m.Rare(15) {
			t.Operator, t.Value = Pick(m.Rand, v1.TolerationOperator("Gt"), v1.TolerationOperator("Near")), "1"
		}
		if t.Effect == v1.TaintEffectNoExecute && m.Chance(30) {
			seconds := int64(300)
			t.TolerationSeconds = &seconds
		}
		out = append(out, t)
	}
	return out
}
