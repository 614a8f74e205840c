// SPDX-License-Identifier: Apache-2.0

package gangapi

import (
	"reflect"
	"strings"
	"testing"

	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// TestNativePodGroups: what is read of them in each version, and what is rejected. Mutants: a basic group is a gang;
// minCount 0 is taken; a mode that is not known is Pod; a false condition counts as true; the condition of another
// version counts.
func TestNativePodGroups(t *testing.T) {
	all := []string{v1beta1, v1alpha3, v1alpha2}
	now, old := all[:2], all[2:]
	for _, c := range []struct {
		versions []string
		text     string
		want     func(*cluster.Gang)
		bad      string
	}{
		{all, kubetest.PodGroupYAML("{gang: {minCount: 3}}"), func(g *cluster.Gang) { g.MinCount = 3 }, ""},
		{all, kubetest.PodGroupYAML("{basic: {}}"), func(g *cluster.Gang) { g.Basic, g.MinCount = true, 1 }, ""},
		{all, kubetest.PodGroupYAML("{gang: {minCount: 0}}"), nil, "spec.schedulingPolicy.gang.minCount must be above 0, it is 0"},
		{all, kubetest.PodGroupYAML("{gang: {minCount: -1}}"), nil, "must be above 0, it is -1"},
		{all, kubetest.PodGroupYAML("{gang: {minCount: 2147483647}}"), nil, "must be at most 150000, it is 2147483647"},
		{all, kubetest.PodGroupYAML("{gang: {minCount: three}}"), nil, "a field has a wrong type"},
		{all, kubetest.PodGroupYAML("{}"), nil, "spec.schedulingPolicy is none that is known here"},
		{all, kubetest.PodGroupYAML("{basic: {}, gang: {minCount: 1}}"), nil, "both basic and gang"},
		{old, "{spec: {schedulingPolicy: {gang: {minCount: 2}}, priority: -5, disruptionMode: PodGroup}}",
			func(g *cluster.Gang) { p := int32(-5); g.MinCount, g.Priority, g.EvictWhole = 2, &p, true }, ""},
		{now, "{spec: {schedulingPolicy: {gang: {minCount: 2}}, priority: -5, disruptionMode: {all: {}}}}",
			func(g *cluster.Gang) { p := int32(-5); g.MinCount, g.Priority, g.EvictWhole = 2, &p, true }, ""},
		{now, "{spec: {schedulingPolicy: {gang: {minCount: 2}}, preemptionPolicy: Never}}",
			func(g *cluster.Gang) { g.MinCount, g.NeverPreempts = 2, true }, ""},
		{now, "{spec: {schedulingPolicy: {gang: {minCount: 2}}, preemptionPolicy: PreemptLowerPriority}}",
			func(g *cluster.Gang) { g.MinCount = 2 }, ""},
		{now, "{spec: {schedulingPolicy: {gang: {minCount: 2}}, preemptionPolicy: Sometimes}}", nil,
			`spec.preemptionPolicy "Sometimes" is not known here`},
		{old, "{spec: {schedulingPolicy: {gang: {minCount: 2}}, disruptionMode: Pod}}", func(g *cluster.Gang) { g.MinCount = 2 }, ""},
		{now, "{spec: {schedulingPolicy: {gang: {minCount: 2}}, disruptionMode: {single: {}}}}", func(g *cluster.Gang) { g.MinCount = 2 }, ""},
		{old, "{spec: {schedulingPolicy: {gang: {minCount: 2}}, disruptionMode: Rack}}", nil, `spec.disruptionMode "Rack" is not known here`},
		{now, "{spec: {schedulingPolicy: {gang: {minCount: 2}}, disruptionMode: {rack: {}}}}", nil, "spec.disruptionMode must be either single or all"},
		{now, "{spec: {schedulingPolicy: {gang: {minCount: 2}}, disruptionMode: {single: {}, all: {}}}}", nil, "must be either single or all"},
		{now, "{spec: {schedulingPolicy: {gang: {minCount: 2}}, disruptionMode: PodGroup}}", nil, "a field has a wrong type"},
		{all, "{spec: {schedulingPolicy: {gang: {minCount: 2}}, schedulingConstraints: {topology: [{key: zone}, {key: rack}]}}}",
			func(g *cluster.Gang) {
				g.MinCount, g.Topology = 2, []cluster.GangTopology{{Key: "zone", Required: true}, {Key: "rack", Required: true}}
			}, ""},
		{all, "{spec: {schedulingPolicy: {gang: {minCount: 2}}, schedulingConstraints: {topology: [{key: ''}]}}}", nil, "names no label of nodes"},
		{all, "{spec: {schedulingPolicy: {gang: {minCount: 2}}, schedulingConstraints: {topology: [" + strings.Repeat("{key: a},", 9) + "]}}}", nil, "has 9 levels"},
		{all, "{spec: {schedulingPolicy: {gang: {minCount: 2}}, resourceClaims: [{name: a, resourceClaimName: b}]}}", nil, "spec.resourceClaims are not supported"},
		{now, "{spec: {schedulingPolicy: {gang: {minCount: 2}}, parentCompositePodGroupName: tree}}", nil,
			`spec.parentCompositePodGroupName is "tree": groups of pod groups are not supported`},
		{now, "{spec: {schedulingPolicy: {gang: {minCount: 2}}, workloadRef: {workloadName: w, templateName: t}}}", func(g *cluster.Gang) { g.MinCount = 2 }, ""},
		{old, "{spec: {schedulingPolicy: {gang: {minCount: 2}}, podGroupTemplateRef: {workload: {workloadName: w}}}}", func(g *cluster.Gang) { g.MinCount = 2 }, ""},
		{old, "{spec: {schedulingPolicy: {gang: {minCount: 2}}}, status: {conditions: [{type: PodGroupScheduled, status: 'True', reason: Scheduled, observedGeneration: 4}]}}",
			func(g *cluster.Gang) {
				g.MinCount, g.Condition = 2, cluster.GangCondition{Scheduled: true, Reason: "Scheduled", Generation: 4}
			}, ""},
		{now, "{spec: {schedulingPolicy: {gang: {minCount: 2}}}, status: {conditions: [{type: PodGroupInitiallyScheduled, status: 'True', reason: Scheduled, observedGeneration: 4}]}}",
			func(g *cluster.Gang) {
				g.MinCount, g.Condition = 2, cluster.GangCondition{Scheduled: true, Reason: "Scheduled", Generation: 4}
			}, ""},
		{now, "{spec: {schedulingPolicy: {gang: {minCount: 2}}}, status: {conditions: [{type: PodGroupScheduled, status: 'True'}, {type: PodGroupInitiallyScheduled, status: 'False', reason: Unschedulable, message: m}]}}",
			func(g *cluster.Gang) {
				g.MinCount, g.Condition = 2, cluster.GangCondition{Reason: "Unschedulable", Message: "m"}
			}, ""},
		{old, "{spec: {schedulingPolicy: {gang: {minCount: 2}}}, status: {conditions: [{type: DisruptionTarget, status: 'True'}, {type: PodGroupScheduled, status: 'False', reason: Unschedulable, message: m}]}}",
			func(g *cluster.Gang) {
				g.MinCount, g.Condition = 2, cluster.GangCondition{Reason: "Unschedulable", Message: "m"}
			}, ""},
		{[]string{"v1"}, kubetest.PodGroupYAML("{gang: {minCount: 3}}"), nil, `version "v1" is not supported`},
	} {
		for _, version := range c.versions {
			o := kubetest.PodGroup(t, version, "g", c.text)
			got := PodGroup(o)
			want := Meta(cluster.GangOfGroup, o)
			if want.Key != (cluster.GangKey{Source: cluster.GangOfGroup, Namespace: "ns", Name: "g"}) || want.Name != "podgroup/g" || want.Generation != 4 {
				t.Fatalf("called %+v", want)
			}
			if c.bad != "" {
				if !strings.Contains(got.Bad, c.bad) {
					t.Errorf("%s %s: bad is %q, want %q", version, c.text, got.Bad, c.bad)
				}
				continue
			}
			if c.want(want); !reflect.DeepEqual(got, want) {
				t.Errorf("%s %s: got %+v, want %+v", version, c.text, got, want)
			}
		}
	}
}

// TestTwoVersionsHaveTheSameFields: v1alpha3 is read by the types of v1beta1.
func TestTwoVersionsHaveTheSameFields(t *testing.T) {
	beta, alpha := fields(reflect.TypeFor[schedulingv1beta1.PodGroup]()), fields(reflect.TypeFor[schedulingv1alpha3.PodGroup]())
	if beta != alpha {
		t.Errorf("v1beta1 has %s\nv1alpha3 has %s", beta, alpha)
	}
}

// fields describes the JSON form of a type.
func fields(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return fields(t.Elem())
	case t.Kind() == reflect.Slice:
		return "[" + fields(t.Elem()) + "]"
	case t.Kind() != reflect.Struct || !strings.HasPrefix(t.PkgPath(), "k8s.io/api/"):
		return t.Kind().String()
	}
	text := "{"
	for f := range t.Fields() {
		text += f.Tag.Get("json") + ": " + fields(f.Type) + " "
	}
	return text + "}"
}

// TestGangsOfResourceDefinitions: no schema checked the types of the fields. Mutants: a field of a wrong type is
// passed over; a demand on the network that is not kept is taken.
func TestGangsOfResourceDefinitions(t *testing.T) {
	const sigs, volcano = "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, ", "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, "
	for _, c := range []struct {
		text    string
		read    func(*unstructured.Unstructured) *cluster.Gang
		count   int
		timeout record.Time
		phase   string
		bad     string
	}{
		{sigs + "spec: {minMember: 3}}", sigsGang, 3, 0, "", ""},
		{sigs + "spec: {minMember: 3, scheduleTimeoutSeconds: 10}, status: {phase: Pending}}", sigsGang, 3, 10 * record.Second, "Pending", ""},
		{sigs + "spec: {}}", sigsGang, 0, 0, "", "spec.minMember must be above 0, it is 0"},
		{sigs + "kind2: x}", sigsGang, 0, 0, "", "spec.minMember must be above 0"},
		{sigs + "spec: {minMember: three}}", sigsGang, 0, 0, "", "spec.minMember is not a whole number"},
		{sigs + "spec: {minMember: 3.5}}", sigsGang, 0, 0, "", "spec.minMember is not a whole number"},
		{sigs + "spec: [1]}", sigsGang, 0, 0, "", "spec.minMember must be above 0"},
		{sigs + "spec: {minMember: 3000000}}", sigsGang, 0, 0, "", "at most 150000"},
		{sigs + "spec: {minMember: 3, scheduleTimeoutSeconds: -1}}", sigsGang, 3, 0, "", "spec.scheduleTimeoutSeconds must be from 1 to 86400, it is -1"},
		{sigs + "spec: {minMember: 3}, status: {phase: 7}}", sigsGang, 3, 0, "", ""},
		{sigs + "spec: {minMember: 3}, status: {phase: " + strings.Repeat("x", 65) + "}}", sigsGang, 3, 0, "", ""},
		{volcano + "spec: {minMember: 2, queue: q}, status: {phase: Inqueue}}", volcanoGang, 2, 0, "Inqueue", ""},
		{volcano + "spec: {minMember: -2}}", volcanoGang, 0, 0, "", "spec.minMember must be above 0, it is -2"},
		{volcano + "spec: {minMember: 2, networkTopology: {mode: soft}}}", volcanoGang, 2, 0, "", ""},
		{volcano + "spec: {minMember: 2, networkTopology: {highestTierAllowed: 1}}}", volcanoGang, 2, 0, "", "spec.networkTopology is hard"},
		{volcano + "spec: {minMember: 2, networkTopology: 3}}", volcanoGang, 2, 0, "", "spec.networkTopology is not an object"},
		{volcano + "spec: {minMember: 2, subGroupPolicy: [{name: a}]}}", volcanoGang, 2, 0, "", "spec.subGroupPolicy is not supported"},
	} {
		got := c.read(kubetest.GangObject(t, c.text))
		if got.MinCount != c.count || got.Timeout != c.timeout || got.Phase != c.phase || (got.Bad == "") != (c.bad == "") || !strings.Contains(got.Bad, c.bad) {
			t.Errorf("%s: got %+v, want bad %q", c.text, got, c.bad)
		}
	}
}
