// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/fake"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// group is a native pod group in YAML, all but its name.
func group(t testing.TB, name, text string) *schedulingv1alpha2.PodGroup {
	t.Helper()
	g := &schedulingv1alpha2.PodGroup{}
	if err := yaml.UnmarshalStrict([]byte(text), g); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	g.Namespace, g.Name, g.UID, g.ResourceVersion, g.Generation = "ns", name, types.UID("uid-of-"+name), "1", 4
	return g
}

func spec(policy string) string { return "{spec: {schedulingPolicy: " + policy + "}}" }

// TestNativePodGroups: what the scheduler reads of them, and what it refuses. Mutants: a basic group is a gang; minCount 0
// is taken; a mode that is not known is Pod; a false condition counts as true.
func TestNativePodGroups(t *testing.T) {
	for _, c := range []struct {
		text string
		want func(*cluster.Gang)
		bad  string
	}{
		{text: spec("{gang: {minCount: 3}}"), want: func(g *cluster.Gang) { g.MinCount = 3 }},
		{text: spec("{basic: {}}"), want: func(g *cluster.Gang) { g.Basic, g.MinCount = true, 1 }},
		{text: spec("{gang: {minCount: 0}}"), bad: "spec.schedulingPolicy.gang.minCount must be above 0, it is 0"},
		{text: spec("{gang: {minCount: -1}}"), bad: "must be above 0, it is -1"},
		{text: spec("{gang: {minCount: 2147483647}}"), bad: "must be at most 150000, it is 2147483647"},
		{text: spec("{}"), bad: "spec.schedulingPolicy is none that is known here"},
		{text: spec("{basic: {}, gang: {minCount: 1}}"), bad: "both basic and gang"},
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
		o := group(t, "g", c.text)
		got := groupGang(o)
		want := gangMeta(cluster.GangOfGroup, o)
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

// crd is an object of a resource definition in YAML.
func crd(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	o.SetNamespace("ns")
	o.SetName("g")
	o.SetUID("uid-of-g")
	return o
}

// TestGangsOfResourceDefinitions: nobody checked the types of what stands there. Mutants: a field of a wrong type is
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
		got := c.read(crd(t, c.text))
		if got.MinCount != c.count || got.Timeout != c.timeout || got.Phase != c.phase || (got.Bad == "") != (c.bad == "") || !strings.Contains(got.Bad, c.bad) {
			t.Errorf("%s: got %+v, want bad %q", c.text, got, c.bad)
		}
	}
}

// member is a pending pod of a native group.
func member(name, of string) *v1.Pod {
	p := kubetest.PendingPod(name, types.UID("uid-"+name))
	p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &of}
	return p
}

// marks are the gangs of the pods in events, as pod:source/name, with a dash for none.
func marks(events []engine.Event) string {
	var words []string
	for _, ev := range events {
		set, is := ev.(engine.PodSet)
		if !is {
			continue
		}
		word := set.Pod.Name + ":-"
		if m := set.Pod.Gang; m != nil {
			word = set.Pod.Name + ":" + m.Key.Object().Name
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// TestPodGroupsCountOnceTheyCanBeRead: a drop-in for a scheduler without gangs schedules members one by one, as that one
// does, and takes the groups in when they can be read; pods that wait are told anew. With the switch On they wait for their
// group from the start. Mutants: members count before; nobody is told anew; the start waits for a right that nobody gives.
func TestPodGroupsCountOnceTheyCanBeRead(t *testing.T) {
	for _, always := range []bool{false, true} {
		var allowed atomic.Bool
		api := kubetest.NewAPIServer(member("a", "g"), kubetest.PendingPod("solo", "u"))
		api.PrependReactor("list", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
			return !allowed.Load(), nil, apierrors.NewForbidden(schema.GroupResource{Resource: "podgroups"}, "", nil)
		})
		synctest.Test(t, func(t *testing.T) {
			in, _, _ := newTestInbox(t)
			in.ReadGangs(cluster.GangRules{Group: true, GroupIfRead: !always})
			informers := NewInformers(api, in)
			defer informers.Stop()
			informers.Start(t.Context())
			synctest.Wait() // nobody waits for what is not served
			events, _ := in.Take(nil, 100)
			if want := map[bool]string{true: "a:podgroup/g solo:-", false: "a:- solo:-"}[always]; marks(events) != want {
				t.Errorf("always %v: told %q, want %q", always, marks(events), want)
			}
			api.Discovery().(*fake.FakeDiscovery).Resources = []*metav1.APIResourceList{{GroupVersion: "scheduling.k8s.io/v1alpha2",
				APIResources: []metav1.APIResource{{Name: "workloads"}, {Name: "podgroups"}}}}
			time.Sleep(2 * longestAbsence)
			synctest.Wait()
			expectTold(t, in, "")
			if err := api.Tracker().Add(group(t, "g", spec("{gang: {minCount: 1}}"))); err != nil {
				t.Fatal(err)
			}
			allowed.Store(true)
			time.Sleep(2 * longestAbsence)
			synctest.Wait()
			events, _ = in.Take(nil, 100)
			set, is := events[0].(engine.ObjectSet)
			if want := map[bool]string{true: "", false: "a:podgroup/g"}[always]; marks(events) != want || !is || set.Object.GetName() != "podgroup/g" {
				t.Errorf("always %v: then told %v, want the group and %q", always, events, want)
			}
			if g := in.Gang(cluster.GangKey{Source: cluster.GangOfGroup, Namespace: "ns", Name: "g"}); g == nil || g.MinCount != 1 {
				t.Errorf("known of the group is %+v", g)
			}
		})
	}
}

// TestPodsThatHaveEndedAreGone: a pod that succeeded or failed is no member of its gang and takes no room (answer A10): it
// is not listed, and one that ends is told as gone.
func TestPodsThatHaveEndedAreGone(t *testing.T) {
	ended := func(name string, phase v1.PodPhase) *v1.Pod {
		p := member(name, "g")
		p.Spec.NodeName, p.Status.Phase = "n1", phase
		return p
	}
	api := kubetest.NewAPIServer(ended("a", v1.PodSucceeded), ended("b", v1.PodFailed), ended("c", v1.PodRunning), ended("d", v1.PodRunning))
	synctest.Test(t, func(t *testing.T) {
		in, _, _ := newTestInbox(t)
		in.ReadGangs(cluster.GangRules{Group: true, GroupIfRead: true})
		informers := NewInformers(api, in)
		defer informers.Stop()
		informers.Start(t.Context())
		synctest.Wait()
		events, _ := in.Take(nil, 100)
		if told := marks(events); told != "c:- d:-" {
			t.Errorf("told at the start of %q, want those that run", told)
		}
		for name, phase := range map[string]v1.PodPhase{"c": v1.PodSucceeded, "d": v1.PodFailed} {
			api.Put(ended(name, phase))
			synctest.Wait()
			events, _ = in.Take(nil, 100)
			told := ""
			for _, ev := range events {
				if gone, is := ev.(engine.PodGone); is {
					told += gone.Pod.Name
				}
			}
			if len(events) != 1 || told != name {
				t.Errorf("when %s ended told %+v", name, events)
			}
		}
	})
}

// TestSeveralAPIsDeclareGangs: a name in two APIs is two gangs, and each goes by itself. Mutants: one API's end of an object
// takes the other's; the objects of resource definitions are not watched.
func TestSeveralAPIsDeclareGangs(t *testing.T) {
	api := kubetest.NewAPIServer()
	sigs := crd(t, "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, spec: {minMember: 2}}")
	volcano := crd(t, "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, spec: {minMember: 3}}")
	resources := api.Discovery().(*fake.FakeDiscovery)
	kinds := map[schema.GroupVersionResource]string{}
	for _, a := range gangAPIs[1:] {
		kinds[a.resource] = "PodGroupList"
		resources.Resources = append(resources.Resources, &metav1.APIResourceList{GroupVersion: a.resource.GroupVersion().String(),
			APIResources: []metav1.APIResource{{Name: "podgroups"}}})
	}
	objects := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, sigs, volcano)
	synctest.Test(t, func(t *testing.T) {
		in, _, _ := newTestInbox(t)
		in.ReadGangs(cluster.GangRules{Sigs: true, Volcano: true})
		informers := NewInformers(api, in)
		informers.Dynamic = objects
		defer informers.Stop()
		informers.Start(t.Context())
		synctest.Wait()
		expectTold(t, in, "+Gang:sigs/g +Gang:volcano/g synced")
		if err := objects.Resource(gangAPIs[1].resource).Namespace("ns").Delete(t.Context(), "g", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		expectTold(t, in, "-Gang:sigs/g")
		sigsKey, volcanoKey := cluster.GangKey{Source: cluster.GangOfSigs, Namespace: "ns", Name: "g"}, cluster.GangKey{Source: cluster.GangOfVolcano, Namespace: "ns", Name: "g"}
		if in.Gang(sigsKey) != nil || in.Gang(volcanoKey).MinCount != 3 {
			t.Error("the end of one gang is another's")
		}
	})
}
