// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakediscovery "k8s.io/client-go/discovery/fake"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

// groupsOf is the resource of pod groups in a version.
func groupsOf(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: groupKind.Group, Version: version, Resource: "podgroups"}
}

// fakeEnv is a cluster without an API server, which serves pod groups in these versions, the preferred one first.
func fakeEnv(versions ...string) Env {
	client := fake.NewClientset()
	lists := map[schema.GroupVersionResource]string{} // resource -> kind of its list
	for _, version := range versions {
		lists[groupsOf(version)] = "PodGroupList"
		discovery := client.Discovery().(*fakediscovery.FakeDiscovery)
		discovery.Resources = append(discovery.Resources, &metav1.APIResourceList{
			GroupVersion: groupKind.Group + "/" + version,
			APIResources: []metav1.APIResource{{Name: "podgroups", Kind: groupKind.Kind, Namespaced: true}},
		})
	}
	return Env{Client: client, Dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists),
		Watch: NewWatch(nil), Patience: 10 * time.Second}
}

// Catches: a batch that is one pod too long, a label that replaces those of the template, and a label on pods that ask
// for none.
func TestPodsOfABatchHaveOneSignature(t *testing.T) {
	env := fakeEnv()
	template := manifest("metadata: {generateName: a-, labels: {app: x}}\nspec: {containers: [{name: pause, image: pause}]}")
	out, err := Run(t.Context(), env, plan(
		&workload.CreatePods{Count: 5, Namespace: "signed", Template: template, SignatureBatch: 2, SkipWait: true},
		&workload.CreatePods{Count: 1, Namespace: "equal", Template: template, SkipWait: true},
		&workload.CreatePods{Count: 1, Namespace: "plain", SignatureBatch: 1, SkipWait: true},
	))
	if err != nil || len(out.Steps) != 3 {
		t.Fatalf("%d steps, error %v", len(out.Steps), err)
	}
	got := map[string][]string{} // namespace -> values of the label
	for _, namespace := range []string{"signed", "equal", "plain"} {
		list, err := env.Client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			got[namespace] = append(got[namespace], list.Items[i].Labels["signature"])
			if namespace != "plain" && list.Items[i].Labels["app"] != "x" {
				t.Errorf("a pod in %s has the labels %v", namespace, list.Items[i].Labels)
			}
		}
		slices.Sort(got[namespace])
	}
	want := []string{"signature-label-0", "signature-label-0", "signature-label-1", "signature-label-1", "signature-label-2"}
	if !slices.Equal(got["signed"], want) || !slices.Equal(got["equal"], []string{""}) || !slices.Equal(got["plain"], []string{""}) {
		t.Errorf("signatures %v", got)
	}
}

// Catches: a template of a version that the API server does not have, which upstream creates in the version of its own
// client; a version that is served and replaced all the same; another kind taken for a group.
func TestPodGroupsAreCreatedInAServedVersion(t *testing.T) {
	for _, c := range []struct {
		name, template string
		served         []string
		want           string
	}{
		{"its own", "v1alpha3", []string{"v1beta1", "v1alpha3"}, "v1alpha3"},
		{"the preferred one", "v1alpha3", []string{"v1beta1", "v1alpha2"}, "v1beta1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := fakeEnv(c.served...)
			text := strings.Replace(group, "v1beta1", c.template, 1)
			if _, err := Run(t.Context(), env, plan(&workload.CreatePodGroups{Count: 3, Namespace: "groups", Template: *manifest(text)})); err != nil {
				t.Fatal(err)
			}
			list, err := env.Dynamic.Resource(groupsOf(c.want)).Namespace("groups").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(list.Items) != 3 || list.Items[0].GetAPIVersion() != groupKind.Group+"/"+c.want {
				t.Errorf("%d groups in %s: %v", len(list.Items), c.want, list.Items)
			}
		})
	}
	other := strings.Replace(group, "kind: PodGroup", "kind: Workload", 1)
	_, err := Run(t.Context(), fakeEnv("v1beta1"), plan(&workload.CreatePodGroups{Count: 1, Namespace: "groups", Template: *manifest(other)}))
	if err == nil || !strings.Contains(err.Error(), "createPodGroups creates no Workload") {
		t.Errorf("a template of another kind: %v", err)
	}
}

// Catches: a profile that begins or ends with another operation, or that is lost when its end fails; an operation that
// fails where no profile is requested.
func TestAProfileLastsFromOneOperationToTheOther(t *testing.T) {
	ops := []workload.Op{&workload.StartCollectingProfile{Path: "cpu.pprof"}, &workload.Sleep{Duration: 0}, &workload.StopCollectingProfile{}}
	var said []string
	failure := error(nil)
	env := fakeEnv()
	env.Progress = func(at Progress) { said = append(said, at.Opcode) }
	env.Profile = func(_ context.Context, path string) (func(context.Context) error, error) {
		said = append(said, "begin "+path)
		return func(context.Context) error { said = append(said, "end"); return failure }, nil
	}
	if _, err := Run(t.Context(), env, plan(ops...)); err != nil {
		t.Fatal(err)
	}
	want := []string{"startCollectingProfile", "begin cpu.pprof", "sleep", "stopCollectingProfile", "end"}
	if !slices.Equal(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
	failure = errors.New("disk full")
	env.Watch = NewWatch(nil)
	if _, err := Run(t.Context(), env, plan(ops...)); err == nil || !strings.Contains(err.Error(), "op 2 (stopCollectingProfile): stop collecting the profile: disk full") {
		t.Errorf("a profile that cannot be written: %v", err)
	}
	for _, wrong := range [][]workload.Op{{ops[0], ops[0]}, {ops[2]}, {ops[0]}} {
		if _, err := Run(t.Context(), fakeEnv(), plan(wrong...)); err == nil || !strings.Contains(err.Error(), "profile") {
			t.Errorf("%d operations in the wrong order: %v", len(wrong), err)
		}
	}
	if _, err := Run(t.Context(), fakeEnv(), plan(ops...)); err != nil {
		t.Errorf("without a place for profiles: %v", err)
	}
}
