// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery/fake"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/gangapi"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
)

// member is a pending pod of a native group.
func member(name, of string) *v1.Pod {
	p := kubetest.PendingPod(name, types.UID("uid-"+name))
	p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &of}
	return p
}

var groupKey = cluster.GangKey{Source: cluster.GangOfGroup, Namespace: "ns", Name: "g"}

// gangObjects is a client of objects that declare gangs, in every version of each API.
func gangObjects(objects ...runtime.Object) *dynamicfake.FakeDynamicClient {
	kinds := map[schema.GroupVersionResource]string{}
	for _, a := range gangapi.APIs {
		for _, version := range a.Versions {
			kinds[a.Resource.WithVersion(version)] = "PodGroupList"
		}
	}
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...)
}

// serveGroups makes discovery name the native API in the given versions only.
func serveGroups(api *kubetest.APIServer, versions ...string) {
	var served []*metav1.APIResourceList
	for _, version := range versions {
		served = append(served, &metav1.APIResourceList{GroupVersion: "scheduling.k8s.io/" + version,
			APIResources: []metav1.APIResource{{Name: "workloads"}, {Name: "podgroups"}}})
	}
	api.Discovery().(*fake.FakeDiscovery).Resources = served
}

// addGroup creates a native pod group with a scheduling policy.
func addGroup(t *testing.T, objects *dynamicfake.FakeDynamicClient, version, name, policy string) {
	t.Helper()
	resource := gangapi.APIs[0].Resource.WithVersion(version)
	if err := objects.Tracker().Create(resource, kubetest.PodGroup(t, version, name, kubetest.PodGroupYAML(policy)), "ns"); err != nil {
		t.Fatal(err)
	}
}

// startGangs reads an API server with the given rules of gangs until the test ends. It must be called within a
// synctest bubble.
func startGangs(t *testing.T, api *kubetest.APIServer, objects *dynamicfake.FakeDynamicClient, rules convert.GangRules) *Inbox {
	t.Helper()
	in, _, _ := newTestInbox(t)
	in.ReadGangs(rules)
	informers := NewInformers(api, in)
	informers.Dynamic = objects
	t.Cleanup(informers.Stop)
	informers.Start(t.Context())
	return in
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

// TestPodGroupsCountOnceTheyCanBeRead: a drop-in for a scheduler without gangs schedules members one by one, as
// that one does, and takes the groups in when they can be read; pods that wait become events anew. With the switch
// On they wait for their group from the start. Mutants: members count before; no pod becomes an event anew; the
// start waits for a right that no role grants.
func TestPodGroupsCountOnceTheyCanBeRead(t *testing.T) {
	for _, always := range []bool{false, true} {
		var allowed atomic.Bool
		api := kubetest.NewAPIServer(member("a", "g"), kubetest.PendingPod("solo", "u"))
		objects := gangObjects()
		objects.PrependReactor("list", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
			return !allowed.Load(), nil, apierrors.NewForbidden(schema.GroupResource{Resource: "podgroups"}, "", nil)
		})
		synctest.Test(t, func(t *testing.T) {
			in := startGangs(t, api, objects, convert.GangRules{Group: true, GroupIfRead: !always})
			synctest.Wait() // nothing waits for what is not served
			events, _ := in.Take(nil, 100)
			if want := map[bool]string{true: "a:podgroup/g solo:-", false: "a:- solo:-"}[always]; marks(events) != want {
				t.Errorf("always %v: took %q, want %q", always, marks(events), want)
			}
			if pods, waits := in.TakeUngrouped(); len(pods) != 1 || pods[0].Name != "a" || waits != always {
				t.Errorf("always %v: reported %v (waits: %v), want a", always, pods, waits)
			}
			serveGroups(api, "v1beta1")
			time.Sleep(2 * longestAbsence)
			synctest.Wait()
			expectTaken(t, in, "")
			addGroup(t, objects, "v1beta1", "g", "{gang: {minCount: 1}}")
			allowed.Store(true)
			time.Sleep(2 * longestAbsence)
			synctest.Wait()
			events, _ = in.Take(nil, 100)
			set, is := events[0].(engine.ObjectSet)
			if want := map[bool]string{true: "", false: "a:podgroup/g"}[always]; marks(events) != want || !is || set.Object.GetName() != "podgroup/g" {
				t.Errorf("always %v: then took %v, want the group and %q", always, events, want)
			}
			if g := in.Gang(groupKey); g == nil || g.MinCount != 1 {
				t.Errorf("known of the group is %+v", g)
			}
		})
	}
}

// TestPodsWhoseGroupCannotBeReadAreReported: the owner of a pod that is scheduled without its group learns of it, once,
// and only while that is so. Faults: a standby collects pods that are gone; each update of a pod reports it again; pods
// of readable groups are reported.
func TestPodsWhoseGroupCannotBeReadAreReported(t *testing.T) {
	running := member("running", "g")
	running.Spec.NodeName = "n1"
	api := kubetest.NewAPIServer(member("a", "g"), member("gone", "g"), running, kubetest.PendingPod("solo", "u"))
	objects := gangObjects()
	synctest.Test(t, func(t *testing.T) {
		in := startGangs(t, api, objects, convert.GangRules{Group: true, GroupIfRead: true})
		synctest.Wait()
		reported := func() (names string) {
			in.Take(nil, 100)
			pods, waits := in.TakeUngrouped()
			if waits {
				t.Error("pods without an API of groups are reported as waiting")
			}
			for _, p := range pods {
				names += p.Name + " "
			}
			return names
		}
		expect := func(want string) {
			t.Helper()
			if got := reported(); got != want {
				t.Errorf("reported %q, want %q", got, want)
			}
		}
		in.Take(nil, 100)
		api.Remove("ns/gone")
		synctest.Wait()
		expect("a ")
		changed := member("a", "g")
		changed.Labels = map[string]string{"x": "y"}
		api.Put(changed)
		synctest.Wait()
		expect("")
		api.Put(member("b", "g"))
		synctest.Wait()
		in.Take(nil, 100)
		serveGroups(api, "v1beta1")
		time.Sleep(2 * longestAbsence)
		synctest.Wait()
		api.Put(member("c", "g"))
		synctest.Wait()
		expect("")
	})
}

// TestGroupsThatCannotBeListed: an API server that serves pod groups and cannot list them, since one object is damaged,
// keeps no other pod from being scheduled. The pods of groups wait and are reported, each once; when the list
// works, the group counts. Faults: scheduling waits for the list; the pods are scheduled without their group; nothing is
// reported.
func TestGroupsThatCannotBeListed(t *testing.T) {
	// The second handler limits the rate of errors by the real time, which synctest does not have.
	defer func(all []utilruntime.ErrorHandler) { utilruntime.ErrorHandlers = all }(utilruntime.ErrorHandlers)
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	for _, always := range []bool{false, true} {
		api := kubetest.NewAPIServer(member("a", "g"), member("b", "g"), kubetest.PendingPod("solo", "u"))
		serveGroups(api, "v1beta1")
		objects := gangObjects()
		var damaged atomic.Bool
		damaged.Store(true)
		corrupt := apierrors.NewTooManyRequests("storage is (re)initializing: object not decodable", 1)
		objects.PrependReactor("list", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
			return damaged.Load(), nil, corrupt
		})
		synctest.Test(t, func(t *testing.T) {
			in := startGangs(t, api, objects, convert.GangRules{Group: true, GroupIfRead: !always})
			expect := func(when, wantMarks, wantReported string) {
				t.Helper()
				synctest.Wait()
				events, _ := in.Take(nil, 100)
				pods, waits := in.TakeUngrouped()
				reported := ""
				for _, p := range pods {
					reported += p.Name + " "
				}
				if marks(events) != wantMarks || reported != wantReported || waits != (reported != "") {
					t.Errorf("always %v, %s: took %q, reported %q (waits: %v), want %q and %q", always, when, marks(events),
						reported, waits, wantMarks, wantReported)
				}
			}
			expect("at the start", "", "")
			time.Sleep(failingGrace + longestAbsence)
			expect("after the grace", "a:podgroup/g b:podgroup/g solo:-", "a b ")
			time.Sleep(2 * longestAbsence)
			expect("still failing", "", "")
			api.Put(member("c", "g"))
			expect("a new pod", "c:podgroup/g", "c ")
			damaged.Store(false)
			addGroup(t, objects, "v1beta1", "g", "{gang: {minCount: 1}}")
			time.Sleep(2 * longestAbsence)
			expect("listed", "", "")
			if g := in.Gang(groupKey); g == nil || g.MinCount != 1 {
				t.Errorf("known of the group is %+v", g)
			}
			api.Put(member("d", "g"))
			expect("readable", "d:podgroup/g", "")
		})
	}
}

// TestGroupsWithoutAnAnswer: the client repeats a list by itself as long as the API server is busy, so no answer may come
// for minutes. Fault: scheduling waits for it.
func TestGroupsWithoutAnAnswer(t *testing.T) {
	api := kubetest.NewAPIServer(member("a", "g"), kubetest.PendingPod("solo", "u"))
	serveGroups(api, "v1beta1")
	objects := gangObjects()
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		objects.PrependReactor("list", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
			<-answer
			return false, nil, nil
		})
		in := startGangs(t, api, objects, convert.GangRules{Group: true, GroupIfRead: true})
		time.Sleep(answerGrace - time.Second)
		synctest.Wait()
		if events, _ := in.Take(nil, 100); len(events) > 0 {
			t.Errorf("before the grace ended, took %q", marks(events))
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		events, _ := in.Take(nil, 100)
		if pods, waits := in.TakeUngrouped(); marks(events) != "a:podgroup/g solo:-" || len(pods) != 1 || !waits {
			t.Errorf("took %q, and %d pods are reported (waits: %v)", marks(events), len(pods), waits)
		}
		close(answer)
		synctest.Wait()
		api.Put(member("b", "g"))
		synctest.Wait()
		in.Take(nil, 100)
		if pods, _ := in.TakeUngrouped(); len(pods) > 0 {
			t.Errorf("%d pods are reported after the list", len(pods))
		}
	})
}

// TestPodsThatHaveEndedAreGone: a pod that succeeded or failed is no member of its gang and takes no capacity
// (answer A10): it is not listed, and one that ends is reported as gone.
func TestPodsThatHaveEndedAreGone(t *testing.T) {
	ended := func(name string, phase v1.PodPhase) *v1.Pod {
		p := member(name, "g")
		p.Spec.NodeName, p.Status.Phase = "n1", phase
		return p
	}
	api := kubetest.NewAPIServer(ended("a", v1.PodSucceeded), ended("b", v1.PodFailed), ended("c", v1.PodRunning), ended("d", v1.PodRunning))
	synctest.Test(t, func(t *testing.T) {
		in := startGangs(t, api, gangObjects(), convert.GangRules{Group: true, GroupIfRead: true})
		synctest.Wait()
		events, _ := in.Take(nil, 100)
		if got := marks(events); got != "c:- d:-" {
			t.Errorf("took %q at the start, want those that run", got)
		}
		for name, phase := range map[string]v1.PodPhase{"c": v1.PodSucceeded, "d": v1.PodFailed} {
			api.Put(ended(name, phase))
			synctest.Wait()
			events, _ = in.Take(nil, 100)
			got := ""
			for _, ev := range events {
				if gone, is := ev.(engine.PodGone); is {
					got += gone.Pod.Name
				}
			}
			if len(events) != 1 || got != name {
				t.Errorf("when %s ended took %+v", name, events)
			}
		}
	})
}

// TestSeveralAPIsDeclareGangs: a name in two APIs is two gangs, and each goes by itself. Mutants: one API's end of an
// object takes the other's; the objects of resource definitions are not watched.
func TestSeveralAPIsDeclareGangs(t *testing.T) {
	api := kubetest.NewAPIServer()
	sigs := kubetest.GangObject(t, "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, spec: {minMember: 2}}")
	volcano := kubetest.GangObject(t, "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, spec: {minMember: 3}}")
	resources := api.Discovery().(*fake.FakeDiscovery)
	for _, a := range gangapi.APIs[1:] {
		resources.Resources = append(resources.Resources, &metav1.APIResourceList{GroupVersion: schema.GroupVersion{Group: a.Resource.Group, Version: a.Versions[0]}.String(),
			APIResources: []metav1.APIResource{{Name: "podgroups"}}})
	}
	objects := gangObjects(sigs, volcano)
	synctest.Test(t, func(t *testing.T) {
		in := startGangs(t, api, objects, convert.GangRules{Sigs: true, Volcano: true})
		synctest.Wait()
		expectTaken(t, in, "+Gang:sigs/g +Gang:volcano/g synced")
		if err := objects.Resource(gangapi.APIs[1].Resource.WithVersion("v1alpha1")).Namespace("ns").Delete(t.Context(), "g", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		expectTaken(t, in, "-Gang:sigs/g")
		sigsKey, volcanoKey := cluster.GangKey{Source: cluster.GangOfSigs, Namespace: "ns", Name: "g"}, cluster.GangKey{Source: cluster.GangOfVolcano, Namespace: "ns", Name: "g"}
		if in.Gang(sigsKey) != nil || in.Gang(volcanoKey).MinCount != 3 {
			t.Error("the end of one gang is another's")
		}
	})
}

// TestPreemptionPolicyOfGroupsCountsWithItsGate: without the gate the policies of the pods count, as upstream has it.
// Faults: policyAlways.
func TestPreemptionPolicyOfGroupsCountsWithItsGate(t *testing.T) {
	for _, gate := range []bool{false, true} {
		objects := gangObjects()
		group := kubetest.PodGroup(t, "v1beta1", "g",
			"{spec: {schedulingPolicy: {gang: {minCount: 2}}, preemptionPolicy: Never}}")
		if err := objects.Tracker().Create(gangapi.APIs[0].Resource.WithVersion("v1beta1"), group, "ns"); err != nil {
			t.Fatal(err)
		}
		api := kubetest.NewAPIServer()
		serveGroups(api, "v1beta1")
		synctest.Test(t, func(t *testing.T) {
			in := startGangs(t, api, objects, convert.GangRules{Group: true, GroupPolicy: gate})
			synctest.Wait()
			if g := in.Gang(groupKey); g == nil || g.NeverPreempts != gate {
				t.Errorf("gate %v: the group is %+v", gate, g)
			}
		})
	}
}

// TestGroupsAreReadInTheVersionThatIsServed: the best of several; and after an upgrade of the API server under a running
// scheduler, which ends the old version, in the new one, with those that were created again there. Mutants: the version of the start stays for good; groups of a
// version that is gone stay known; the last version is preferred.
func TestGroupsAreReadInTheVersionThatIsServed(t *testing.T) {
	api := kubetest.NewAPIServer()
	objects := gangObjects()
	addGroup(t, objects, "v1alpha2", "old", "{gang: {minCount: 2}}")
	addGroup(t, objects, "v1alpha2", "g", "{gang: {minCount: 2}}")
	addGroup(t, objects, "v1alpha2", "made-again", "{gang: {minCount: 2}}")
	again := kubetest.PodGroup(t, "v1beta1", "made-again", kubetest.PodGroupYAML("{gang: {minCount: 5}}"))
	again.SetUID("another")
	again.SetResourceVersion("9")
	if err := objects.Tracker().Create(gangapi.APIs[0].Resource.WithVersion("v1beta1"), again, "ns"); err != nil {
		t.Fatal(err)
	}
	addGroup(t, objects, "v1alpha3", "between", "{gang: {minCount: 2}}")
	addGroup(t, objects, "v1beta1", "g", "{gang: {minCount: 2}}")
	addGroup(t, objects, "v1beta1", "new", "{gang: {minCount: 2}}")
	serveGroups(api, "v1alpha2")
	var watches []*watch.RaceFreeFakeWatcher
	objects.PrependWatchReactor("podgroups", func(clienttesting.Action) (bool, watch.Interface, error) {
		watches = append(watches, watch.NewRaceFreeFake())
		return true, watches[len(watches)-1], nil
	})
	synctest.Test(t, func(t *testing.T) {
		in := startGangs(t, api, objects, convert.GangRules{Group: true})
		synctest.Wait()
		expectTaken(t, in, "+Gang:podgroup/g +Gang:podgroup/made-again +Gang:podgroup/old synced")
		if v, g := in.GangVersion(cluster.GangOfGroup), in.Gang(groupKey); v != "v1alpha2" || g.MinCount != 2 {
			t.Errorf("read in %s: %+v", v, g)
		}
		serveGroups(api, "v1alpha3", "v1beta1")
		watches[0].Stop()
		time.Sleep(2 * longestAbsence)
		synctest.Wait()
		expectTaken(t, in, "-Gang:podgroup/old -Gang:podgroup/made-again +Gang:podgroup/made-again "+
			"+Gang:podgroup/new")
		if v := in.GangVersion(cluster.GangOfGroup); v != "v1beta1" {
			t.Errorf("then read in %s", v)
		}
		key := cluster.GangKey{Source: cluster.GangOfGroup, Namespace: "ns", Name: "made-again"}
		if g := in.Gang(key); g == nil || g.MinCount != 5 {
			t.Errorf("a group that was deleted and created in the new version: %+v", g)
		}
	})
}
