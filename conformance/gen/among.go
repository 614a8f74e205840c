// SPDX-License-Identifier: Apache-2.0

package gen

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// Rules about other pods: spreading and affinity between pods.

func (m *maker) podLabels() map[string]string {
	if m.Chance(10) {
		return nil
	}
	l := map[string]string{"app": Pick(m.Rand, "a", "a", "b", "c")}
	if m.Chance(60) {
		l["tier"] = Pick(m.Rand, "web", "web", "db", "")
	}
	if m.Chance(50) {
		l["pod-template-hash"] = Pick(m.Rand, "r1", "r1", "r2")
	}
	return l
}

// selector draws a label selector over podLabels. It can be absent, empty, or one
// that does not convert.
func (m *maker) selector() *metav1.LabelSelector {
	switch n := m.Intn(100); {
	case n < 4:
		return nil
	case n < 9:
		return &metav1.LabelSelector{}
	case n < 11:
		return Pick(m.Rand,
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn}}},
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near", Values: []string{"a"}}}},
			&metav1.LabelSelector{MatchLabels: map[string]string{"app": "bad value!"}},
		)
	case n < 60:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": Pick(m.Rand, "a", "a", "b", "c", "none")}}
	case n < 70:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": Pick(m.Rand, "a", "b"), "tier": Pick(m.Rand, "web", "db", "")}}
	}
	s := &metav1.LabelSelector{}
	for range m.Range(1, 2) {
		r := metav1.LabelSelectorRequirement{
			Key:      Pick(m.Rand, "app", "app", "tier", "pod-template-hash", "absent"),
			Operator: Pick(m.Rand, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist),
		}
		if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
			r.Values = Some(m.Rand, m.Range(1, 2), "a", "b", "web", "db", "r1")
		}
		s.MatchExpressions = append(s.MatchExpressions, r)
	}
	if m.Chance(40) {
		s.MatchLabels = map[string]string{"app": Pick(m.Rand, "a", "b")}
	}
	return s
}

func (m *maker) topologyKey() string {
	return Pick(m.Rand, v1.LabelTopologyZone, v1.LabelTopologyZone, v1.LabelTopologyZone, v1.LabelHostname, v1.LabelHostname, v1.LabelTopologyRegion, "disk", "generation", "nobody-has-this")
}

// amongOthers gives the pod rules about other pods in percent of the draws.
func (m *maker) amongOthers(p *v1.Pod, percent int) {
	if m.has["PodTopologySpread"] && m.Chance(percent) {
		p.Spec.TopologySpreadConstraints = m.spread()
	}
	if m.has["InterPodAffinity"] && m.Chance(percent) {
		m.podAffinity(p)
	}
}

func (m *maker) spread() []v1.TopologySpreadConstraint {
	var out []v1.TopologySpreadConstraint
	count := m.Range(1, Pick(m.Rand, 1, 2, 3))
	if m.Rare(60) {
		count = 100
	}
	for range count {
		c := v1.TopologySpreadConstraint{
			MaxSkew:           int32(Pick(m.Rand, 1, 1, 2, 3, 5, 50)),
			TopologyKey:       m.topologyKey(),
			WhenUnsatisfiable: Pick(m.Rand, v1.DoNotSchedule, v1.ScheduleAnyway),
			LabelSelector:     m.selector(),
		}
		if c.WhenUnsatisfiable == v1.DoNotSchedule && m.Chance(35) {
			domains := int32(m.Range(1, 6))
			c.MinDomains = &domains
		}
		if m.Chance(40) {
			policy := Pick(m.Rand, v1.NodeInclusionPolicyHonor, v1.NodeInclusionPolicyIgnore)
			c.NodeAffinityPolicy = &policy
		}
		if m.Chance(40) {
			policy := Pick(m.Rand, v1.NodeInclusionPolicyHonor, v1.NodeInclusionPolicyIgnore)
			c.NodeTaintsPolicy = &policy
		}
		if m.Chance(30) && c.LabelSelector != nil {
			c.MatchLabelKeys = Some(m.Rand, m.Range(1, 2), "pod-template-hash", "tier", "absent")
		}
		out = append(out, c)
	}
	return out
}

func (m *maker) spreadArgs() *configv1.PodTopologySpreadArgs {
	a := &configv1.PodTopologySpreadArgs{DefaultingType: configv1.SystemDefaulting}
	if m.Chance(60) {
		a.DefaultingType = configv1.ListDefaulting
		for _, key := range Some(m.Rand, m.Range(Pick(m.Rand, 0, 1), 2), v1.LabelTopologyZone, v1.LabelHostname, "disk") {
			a.DefaultConstraints = append(a.DefaultConstraints, v1.TopologySpreadConstraint{
				MaxSkew: int32(Pick(m.Rand, 1, 2, 5)), TopologyKey: key,
				WhenUnsatisfiable: Pick(m.Rand, v1.DoNotSchedule, v1.ScheduleAnyway),
			})
		}
	}
	return a
}

func (m *maker) podAffinityArgs() *configv1.InterPodAffinityArgs {
	a := &configv1.InterPodAffinityArgs{IgnorePreferredTermsOfExistingPods: m.Chance(45)}
	if m.Chance(80) {
		weight := int32(Pick(m.Rand, 0, 1, 5, 100))
		a.HardPodAffinityWeight = &weight
	}
	return a
}

func (m *maker) podAffinity(p *v1.Pod) {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &v1.Affinity{}
	}
	kinds := m.Range(1, 15)
	required := func() []v1.PodAffinityTerm {
		var out []v1.PodAffinityTerm
		for range m.Range(1, Pick(m.Rand, 1, 1, 2)) {
			out = append(out, m.podTerm(p))
		}
		return out
	}
	preferred := func() []v1.WeightedPodAffinityTerm {
		var out []v1.WeightedPodAffinityTerm
		for range m.Range(1, Pick(m.Rand, 1, 2, 3)) {
			out = append(out, v1.WeightedPodAffinityTerm{Weight: int32(Pick(m.Rand, 1, 10, 50, 100)), PodAffinityTerm: m.podTerm(p)})
		}
		return out
	}
	if kinds&3 != 0 {
		a := &v1.PodAffinity{}
		if kinds&1 != 0 {
			a.RequiredDuringSchedulingIgnoredDuringExecution = required()
		}
		if kinds&2 != 0 {
			a.PreferredDuringSchedulingIgnoredDuringExecution = preferred()
		}
		p.Spec.Affinity.PodAffinity = a
	}
	if kinds&12 != 0 {
		a := &v1.PodAntiAffinity{}
		if kinds&4 != 0 {
			a.RequiredDuringSchedulingIgnoredDuringExecution = required()
		}
		if kinds&8 != 0 {
			a.PreferredDuringSchedulingIgnoredDuringExecution = preferred()
		}
		p.Spec.Affinity.PodAntiAffinity = a
	}
}

// podTerm draws a term; now and then one that the pod itself matches, which is how
// the first pod of a group is let in.
func (m *maker) podTerm(p *v1.Pod) v1.PodAffinityTerm {
	t := v1.PodAffinityTerm{LabelSelector: m.selector(), TopologyKey: m.topologyKey()}
	if app := p.Labels["app"]; app != "" && m.Chance(35) {
		t.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	}
	if m.Rare(80) {
		t.TopologyKey = ""
	}
	switch n := m.Intn(100); {
	case n < 55:
	case n < 70:
		t.Namespaces = Some(m.Rand, m.Range(1, 2), "default", "team-a", "team-b", "nowhere")
	case n < 95:
		t.NamespaceSelector = Pick(m.Rand,
			&metav1.LabelSelector{},
			&metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}},
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: metav1.LabelSelectorOpExists}}},
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"a"}}}},
			&metav1.LabelSelector{MatchLabels: map[string]string{"team": "z"}},
		)
		if m.Chance(30) {
			t.Namespaces = []string{Pick(m.Rand, namespaces...)}
		}
	case n < 96:
		t.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpIn}}}
	}
	if m.Chance(15) {
		t.MatchLabelKeys = []string{Pick(m.Rand, "pod-template-hash", "tier")}
	}
	if m.Chance(10) {
		t.MismatchLabelKeys = []string{Pick(m.Rand, "pod-template-hash", "tier")}
	}
	if m.Chance(60) {
		m.mergeKeys(p, &t)
	}
	return t
}

// mergeKeys adds to the selector what the API server adds for the label keys.
func (m *maker) mergeKeys(p *v1.Pod, t *v1.PodAffinityTerm) {
	if t.LabelSelector == nil {
		return
	}
	t.LabelSelector = t.LabelSelector.DeepCopy()
	add := func(keys []string, op metav1.LabelSelectorOperator) {
		for _, k := range keys {
			if v, ok := p.Labels[k]; ok {
				t.LabelSelector.MatchExpressions = append(t.LabelSelector.MatchExpressions, metav1.LabelSelectorRequirement{Key: k, Operator: op, Values: []string{v}})
			}
		}
	}
	add(t.MatchLabelKeys, metav1.LabelSelectorOpIn)
	add(t.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
}
