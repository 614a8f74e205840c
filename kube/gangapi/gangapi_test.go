// SPDX-License-Identifier: Apache-2.0

package gangapi

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// TestNativePodGroups: what the scheduler reads of them, and what it refuses. Mutants: a basic group is a gang;
// minCount 0 is taken; a mode that is not known is Pod; a false condition counts as true.
func TestNativePodGroups(t *testing.T) {
	for _, c := range []struct {
		text string
		want func(*cluster.Gang)
		bad  string
	}{
		{text: kubetest.PodGroupYAML("{gang: {minCount: 3}}"), want: func(g *cluster.Gang) { g.MinCount = 3 }},
		{text: kubetest.PodGroupYAML("{basic: {}}"), want: func(g *cluster.Gang) { g.Basic, g.MinCount = true, 1 }},
		{text: kubetest.PodGroupYAML("{gang: {minCount: 0}}"), bad: "spec.schedulingPolicy.gang.minCount must be above 0, it is 0"},
		{text: kubetest.PodGroupYAML("{gang: {minCount: -1}}"), bad: "must be above 0, it is -1"},
		{text: kubetest.PodGroupYAML("{gang: {minCount: 2147483647}}"), bad: "must be at most 150000, it is 2147483647"},
		{text: kubetest.PodGroupYAML("{}"), bad: "spec.schedulingPolicy is none that is known here"},
		{text: kubetest.PodGroupYAML("{basic: {}, gang: {minCount: 1}}"), bad: "both basic and gang"},
		{text: "{spec: {schedulingPolicy: {gang: {minCount: 2}}, priority: -5, disruptionMode: PodGroup}}",
			want: func(g *cluster.Gang) { p := int32(-5); g.MinCount, g.Priority, g.EvictWhole = 2, &p, true }},
		{text: "{spec: {schedulingPolicy: {gang: {minCount: 2}}, disruptionMode: Pod}}", want: func(g *cluster.Gang) { g.MinCount = 2 }},
		{text: "{spec: {schedulingPolicy: {gang: {minCount: 2}}, disruptionMode: Rack}}", bad: `spec.disruptionMode "Rack" is not known here`},
		{text: "{spec: {schedulingPolicy: {gang: {minCount: 2}}, schedulingConstraints: {topology: [{key: zone}, {key: rack}]}}}",
			want: func(g *cluster.Gang) {
				g.MinCount, g.Topology = 2, []cluster.GangTopology{{Key: "zone", Required: true}, {Key: "rack", Required: true}}
			}},
		{text: "{spec: {schedulingPolicy: {gang: {minCount: 2}}, schedulingConstraints: {topology: [{key: ''}]}}}", bad: "names no label of nodes"},
		{text: "{spec: {schedulingPolicy: {gang: {minCount: 2}}, schedulingConstraints: {topology: [" + strings.Repeat("{key: a},", 9) + "]}}}", bad: "has 9 levels"},
		{text: "{spec: {schedulingPolicy: {gang: {minCount: 2}}, resourceClaims: [{name: a, resourceClaimName: b}]}}", bad: "spec.resourceClaims are not supported"},
		{text: "{spec: {schedulingPolicy: {gang: {minCount: 2}}}, status: {conditions: [{type: PodGroupScheduled, status: 'True', reason: Scheduled, observedGeneration: 4}]}}",
			want: func(g *cluster.Gang) {
				g.MinCount, g.Condition = 2, cluster.GangCondition{Scheduled: true, Reason: "Scheduled", Generation: 4}
			}},
		{text: "{spec: {schedulingPolicy: {gang: {minCount: 2}}}, status: {conditions: [{type: DisruptionTarget, status: 'True'}, {type: PodGroupScheduled, status: 'False', reason: Unschedulable, message: m}]}}",
			want: func(g *cluster.Gang) {
				g.MinCount, g.Condition = 2, cluster.GangCondition{Reason: "Unschedulable", Message: "m"}
			}},
	} {
		o := kubetest.PodGroup(t, "g", c.text)
		got := PodGroup(o)
		want := Meta(cluster.GangOfGroup, o)
		if want.Key != (cluster.GangKey{Source: cluster.GangOfGroup, Namespace: "ns", Name: "g"}) || want.Name != "podgroup/g" || want.Generation != 4 {
			t.Fatalf("called %+v", want)
		}
		if c.bad != "" {
			if !strings.Contains(got.Bad, c.bad) {
				t.Errorf("%s: bad is %q, want %q", c.text, got.Bad, c.bad)
			}
			continue
		}
		if c.want(want); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", c.text, got, want)
		}
	}
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
