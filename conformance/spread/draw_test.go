// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

func pick[T any](t *rapid.T, from []T, what string) T { return rapid.SampledFrom(from).Draw(t, what) }
func chance(t *rapid.T, percent int, what string) bool {
	return rapid.IntRange(0, 99).Draw(t, what) < percent
}

var keys = []string{v1.LabelHostname, v1.LabelTopologyZone, "rack", "nobody"}
var apps = []string{"a", "b"}

// drawNode draws a node from few words, so that values meet.
func drawNode(t *rapid.T, i int) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i), Labels: map[string]string{}}}
	if chance(t, 90, "host") {
		n.Labels[v1.LabelHostname] = n.Name
		if chance(t, 10, "same host") {
			n.Labels[v1.LabelHostname] = "n0"
		}
	}
	if chance(t, 85, "zone") {
		n.Labels[v1.LabelTopologyZone] = pick(t, []string{"z1", "z2", "z3", ""}, "z")
	}
	if chance(t, 60, "rack") {
		n.Labels["rack"] = pick(t, []string{"r1", "r2", ""}, "r")
	}
	if chance(t, 40, "disk") {
		n.Labels["disk"] = pick(t, []string{"ssd", "hdd"}, "d")
	}
	if chance(t, 25, "taint") {
		n.Spec.Taints = []v1.Taint{{Key: "k", Value: pick(t, []string{"a", "b"}, "tv"), Effect: pick(t, []v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute, v1.TaintEffectPreferNoSchedule}, "effect")}}
	}
	n.Spec.Unschedulable = chance(t, 5, "cordon")
	return n
}

func drawPod(t *rapid.T, name string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Namespace: pick(t, []string{"ns", "ns", "other"}, "ns"), Labels: map[string]string{}}}
	if chance(t, 90, "app?") {
		p.Labels["app"] = pick(t, apps, "app")
	}
	if chance(t, 50, "versioned") {
		p.Labels["version"] = pick(t, []string{"1", "2"}, "version")
	}
	if chance(t, 15, "terminating") {
		now := metav1.Unix(1, 0)
		p.DeletionTimestamp = &now
	}
	return p
}

func drawSelector(t *rapid.T) *metav1.LabelSelector {
	switch rapid.IntRange(0, 9).Draw(t, "selector") {
	case 0:
		return nil
	case 1:
		return &metav1.LabelSelector{}
	case 2:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "version", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	case 3:
		if chance(t, 20, "broken") {
			return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "version", Operator: "Near"}}}
		}
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "version", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"1"}}}}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick(t, apps, "app")}}
}

func drawConstraint(t *rapid.T) v1.TopologySpreadConstraint {
	pol := []v1.NodeInclusionPolicy{v1.NodeInclusionPolicyHonor, v1.NodeInclusionPolicyIgnore}
	c := v1.TopologySpreadConstraint{
		MaxSkew:           rapid.Int32Range(1, 4).Draw(t, "skew"),
		TopologyKey:       pick(t, append(slices.Clone(keys), keys[:3]...), "key"),
		WhenUnsatisfiable: pick(t, []v1.UnsatisfiableConstraintAction{v1.DoNotSchedule, v1.ScheduleAnyway}, "action"),
		LabelSelector:     drawSelector(t),
	}
	if chance(t, 3, "odd skew") {
		c.MaxSkew = rapid.Int32Range(-1, 0).Draw(t, "odd")
	}
	if chance(t, 30, "min domains") {
		least := rapid.Int32Range(0, 4).Draw(t, "least")
		c.MinDomains = &least
	}
	if chance(t, 40, "ap") {
		x := pick(t, pol, "p")
		c.NodeAffinityPolicy = &x
	}
	if chance(t, 40, "tp") {
		x := pick(t, pol, "p")
		c.NodeTaintsPolicy = &x
	}
	if chance(t, 30, "mlk") {
		c.MatchLabelKeys = []string{pick(t, []string{"version", "app", "absent"}, "lk")}
	}
	return c
}

// drawDefaults draws default constraints that upstream's validation lets pass.
func drawDefaults(t *rapid.T) []v1.TopologySpreadConstraint {
	var out []v1.TopologySpreadConstraint
	for range rapid.IntRange(0, 2).Draw(t, "defaults") {
		c := drawConstraint(t)
		c.LabelSelector, c.MaxSkew = nil, max(1, c.MaxSkew)
		if !slices.ContainsFunc(out, func(o v1.TopologySpreadConstraint) bool {
			return o.TopologyKey == c.TopologyKey && o.WhenUnsatisfiable == c.WhenUnsatisfiable
		}) {
			out = append(out, c)
		}
	}
	return out
}

// drawPending draws the pod to place: values that the API server refuses are among its own.
func drawPending(t *rapid.T) *v1.Pod {
	p := drawPod(t, "pending")
	p.Namespace, p.DeletionTimestamp = "ns", nil
	if chance(t, 70, "own") {
		for range rapid.IntRange(1, 3).Draw(t, "constraints") {
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, drawConstraint(t))
		}
	}
	if chance(t, 25, "selects") {
		p.Spec.NodeSelector = map[string]string{"disk": pick(t, []string{"ssd", "hdd"}, "disk")}
	}
	if chance(t, 20, "requires") {
		op := pick(t, []v1.NodeSelectorOperator{v1.NodeSelectorOpNotIn, v1.NodeSelectorOpIn, v1.NodeSelectorOpGt, "Near"}, "op")
		terms := []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "rack", Operator: op, Values: []string{"r1"}}}}}
		if chance(t, 30, "second") {
			terms = append(terms, v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "In", Values: []string{"n1"}}}})
		}
		if chance(t, 10, "no terms") {
			terms = nil
		}
		p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: terms}}}
	}
	if chance(t, 30, "tolerates") {
		p.Spec.Tolerations = []v1.Toleration{{Key: "k", Operator: pick(t, []v1.TolerationOperator{"", "Equal", "Exists", "Gt"}, "top"), Value: pick(t, []string{"a", "b"}, "value")}}
	}
	if chance(t, 60, "owned") {
		yes := true
		kind := pick(t, []metav1.OwnerReference{{Kind: "ReplicaSet", APIVersion: "apps/v1"}, {Kind: "StatefulSet", APIVersion: "apps/v1"}, {Kind: "ReplicationController", APIVersion: "v1"},
			{Kind: "ReplicationController", APIVersion: "/v1"}, {Kind: "ReplicaSet", APIVersion: "apps/v2"}, {Kind: "ReplicaSet", APIVersion: "a/b/c"}, {Kind: "Job", APIVersion: "batch/v1"}, {Kind: "ReplicationController", APIVersion: ""}}, "kind")
		kind.Name, kind.Controller = pick(t, []string{"o1", "o2"}, "owner"), &yes
		p.OwnerReferences = []metav1.OwnerReference{kind}
	}
	return p
}

// drawObjects draws services and owners.
func drawObjects(t *rapid.T, add func(cluster.Object)) {
	sm := func() map[string]string {
		m := map[string]string{}
		for _, k := range []string{"app", "version"} {
			if chance(t, 50, "has") {
				m[k] = pick(t, []string{"a", "b", "1", "2"}, "v")
			}
		}
		return m
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "services") {
		s := &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("s", i), Namespace: pick(t, []string{"ns", "other"}, "sns")}}
		if chance(t, 80, "sel") {
			s.Spec.Selector = sm()
		}
		add(s)
	}
	for _, name := range []string{"o1", "o2"} {
		m := metav1.ObjectMeta{Name: name, Namespace: "ns"}
		if chance(t, 60, "rs") {
			add(&appsv1.ReplicaSet{ObjectMeta: m, Spec: appsv1.ReplicaSetSpec{Selector: drawSelector(t)}})
		}
		if chance(t, 60, "ss") {
			add(&appsv1.StatefulSet{ObjectMeta: m, Spec: appsv1.StatefulSetSpec{Selector: drawSelector(t)}})
		}
		if chance(t, 60, "rc") {
			add(&v1.ReplicationController{ObjectMeta: m, Spec: v1.ReplicationControllerSpec{Selector: sm()}})
		}
	}
}
