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
		api.PrependReactor("list", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
			return !allowed.Load(), nil, apierrors.NewForbidden(schema.GroupResource{Resource: "podgroups"}, "", nil)
		})
		synctest.Test(t, func(t *testing.T) {
			in, _, _ := newTestInbox(t)
			in.ReadGangs(convert.GangRules{Group: true, GroupIfRead: !always})
			informers := NewInformers(api, in)
			defer informers.Stop()
			informers.Start(t.Context())
			synctest.Wait() // nothing waits for what is not served
			events, _ := in.Take(nil, 100)
			if want := map[bool]string{true: "a:podgroup/g solo:-", false: "a:- solo:-"}[always]; marks(events) != want {
				t.Errorf("always %v: took %q, want %q", always, marks(events), want)
			}
			api.Discovery().(*fake.FakeDiscovery).Resources = []*metav1.APIResourceList{{GroupVersion: "scheduling.k8s.io/v1alpha2",
				APIResources: []metav1.APIResource{{Name: "workloads"}, {Name: "podgroups"}}}}
			time.Sleep(2 * longestAbsence)
			synctest.Wait()
			expectTaken(t, in, "")
			if err := api.Tracker().Add(kubetest.PodGroup(t, "g", kubetest.PodGroupYAML("{gang: {minCount: 1}}"))); err != nil {
				t.Fatal(err)
			}
			allowed.Store(true)
			time.Sleep(2 * longestAbsence)
			synctest.Wait()
			events, _ = in.Take(nil, 100)
			set, is := events[0].(engine.ObjectSet)
			if want := map[bool]string{true: "", false: "a:podgroup/g"}[always]; marks(events) != want || !is || set.Object.GetName() != "podgroup/g" {
				t.Errorf("always %v: then took %v, want the group and %q", always, events, want)
			}
			if g := in.Gang(cluster.GangKey{Source: cluster.GangOfGroup, Namespace: "ns", Name: "g"}); g == nil || g.MinCount != 1 {
				t.Errorf("known of the group is %+v", g)
			}
		})
	}
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
		in, _, _ := newTestInbox(t)
		in.ReadGangs(convert.GangRules{Group: true, GroupIfRead: true})
		informers := NewInformers(api, in)
		defer informers.Stop()
		informers.Start(t.Context())
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
	kinds := map[schema.GroupVersionResource]string{}
	for _, a := range gangapi.APIs[1:] {
		kinds[a.Resource] = "PodGroupList"
		resources.Resources = append(resources.Resources, &metav1.APIResourceList{GroupVersion: a.Resource.GroupVersion().String(),
			APIResources: []metav1.APIResource{{Name: "podgroups"}}})
	}
	objects := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, sigs, volcano)
	synctest.Test(t, func(t *testing.T) {
		in, _, _ := newTestInbox(t)
		in.ReadGangs(convert.GangRules{Sigs: true, Volcano: true})
		informers := NewInformers(api, in)
		informers.Dynamic = objects
		defer informers.Stop()
		informers.Start(t.Context())
		synctest.Wait()
		expectTaken(t, in, "+Gang:sigs/g +Gang:volcano/g synced")
		if err := objects.Resource(gangapi.APIs[1].Resource).Namespace("ns").Delete(t.Context(), "g", metav1.DeleteOptions{}); err != nil {
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
