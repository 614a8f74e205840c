// SPDX-License-Identifier: Apache-2.0

//go:build previous

// These tests start a control plane of the release before, whose build takes minutes: 'make e2e-previous' runs them.

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kumiki-scheduler/kumiki/internal/e2e/checker"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
	"github.com/kumiki-scheduler/kumiki/kube/gangapi"
)

// upgrade is a cluster whose control plane is replaced by the next release while pods are created.
type upgrade struct {
	*testing.T
	spec    testcluster.Options
	before  *testcluster.Cluster
	client  *kubernetes.Clientset
	dynamic dynamic.Interface
	// created counts the pods that exist, but for those of groups.
	created atomic.Int64
}

// gangSize is the number of pods of each group here, all of which it needs.
const gangSize = 4

// TestTheClusterIsUpgradedUnderLoad upgrades a cluster from Kubernetes 1.36 to 1.37 while pods are created, with
// native groups that run, that wait for capacity, and that wait for members. The steps are those of the upgrade:
// the groups of v1alpha2 are deleted, since 1.37 cannot read them; the control plane is replaced; the groups are
// created in v1beta1; then the scheduler is replaced. Catches pods of a group without an object that are placed one
// by one, a scheduler that keeps reading the version that is gone, and a new scheduler that counts wrongly what
// the old one had bound.
func TestTheClusterIsUpgradedUnderLoad(t *testing.T) {
	u := startPrevious(t)
	history := checker.Follow(t.Context(), u.client)
	scheduler := startProcess(t, u.before.SchedulerKubeconfig)

	endLoad := u.load()
	// 8 cpus: 4 for the group that runs and 3 for a pod that keeps the group that waits from starting.
	u.group(testcluster.Previous, "running")
	u.members("running", 0, gangSize)
	u.standsAt("running", gangSize)
	filler := onGangNode(pod("filler", "3"))
	create(t, u.client, filler)
	u.isBound("filler")
	u.group(testcluster.Previous, "waiting")
	u.members("waiting", 0, gangSize)
	u.group(testcluster.Previous, "incomplete")
	u.members("incomplete", 0, gangSize-1)
	u.shows("waiting", testcluster.Previous, v1.ConditionFalse)

	groups := []string{"running", "waiting", "incomplete"}
	for _, name := range groups {
		u.deleteGroup(testcluster.Previous, name)
	}
	u.deletePod("filler") // capacity for the group whose object is gone
	u.moreLoad()
	u.stands("waiting", 0)

	u.replaceControlPlane()
	u.moreLoad()
	u.stands("waiting", 0)

	for _, name := range groups {
		u.group(testcluster.Matched, name)
	}
	u.standsAt("waiting", gangSize)
	u.shows("waiting", testcluster.Matched, v1.ConditionTrue)
	u.stands("incomplete", 0)

	starts := scheduler.started()
	scheduler.terminate()
	eventually(t, "the scheduler is replaced", func() (bool, string) { return scheduler.started() > starts, "" })
	u.moreLoad()
	u.stands("running", gangSize)
	u.deleteMembers("running") // capacity for the last group
	u.members("incomplete", gangSize-1, 1)
	u.standsAt("incomplete", gangSize)
	u.stands("waiting", gangSize)

	endLoad()
	total := int(u.created.Load()) + 2*gangSize
	allBound(t, u.client, total)
	judge(t, u.client, history)
	t.Logf("%d pods beside the groups", u.created.Load())
}

// TestAPodGroupOfAnOldVersionIsLeftBehind upgrades a cluster with a group of v1alpha2, which 1.37 cannot decode: no group
// can be listed then. Pods of groups wait and get an event that says so; other pods are placed, even by a scheduler
// that starts then. Catches a scheduler that waits for the list of groups, or that places pods of groups one by one.
func TestAPodGroupOfAnOldVersionIsLeftBehind(t *testing.T) {
	u := startPrevious(t)
	history := checker.Follow(t.Context(), u.client)
	scheduler := startProcess(t, u.before.SchedulerKubeconfig)
	u.group(testcluster.Previous, "old")
	u.members("old", 0, gangSize-1)
	u.shows("old", testcluster.Previous, v1.ConditionFalse)

	u.replaceControlPlane()
	create(t, u.client, pod("ordinary", "50m"))
	u.isBound("ordinary")
	eventually(t, "a pod of the group has the event", func() (bool, string) {
		events, err := u.client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, e := range events.Items {
			if e.Reason == "PodGroupNotReadable" && strings.HasPrefix(e.InvolvedObject.Name, "old-") {
				t.Log(e.Message)
				return true, ""
			}
		}
		return false, fmt.Sprintf("%d events", len(events.Items))
	})
	starts := scheduler.started()
	scheduler.terminate()
	eventually(t, "the scheduler is started again", func() (bool, string) { return scheduler.started() > starts, "" })
	create(t, u.client, pod("after-a-restart", "50m"))
	u.isBound("after-a-restart")
	u.stands("old", 0)
	judge(t, u.client, history)
}

// startPrevious starts a cluster of the release before the matched one, with a node for groups that holds eight pods of
// them.
func startPrevious(t *testing.T) *upgrade {
	t.Helper()
	u := &upgrade{T: t, spec: testcluster.Options{Kubernetes: testcluster.Previous, DataDir: t.TempDir(), Gangs: true, NodeSpec: `
shapes:
- {name: general, count: 4, capacity: {cpu: "32", memory: 64Gi, pods: "500"}}
- {name: gangs, count: 1, labels: {for: gangs}, taints: [{key: gangs, effect: NoSchedule}], capacity: {cpu: "8", memory: 64Gi}}
`}}
	u.before = testcluster.Start(t, u.spec)
	cfg, err := clientcmd.BuildConfigFromFlags("", u.before.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	u.client, u.dynamic = adminClient(t, u.before), dynamic.NewForConfigOrDie(cfg)
	return u
}

// replaceControlPlane replaces etcd, API server and controllers by those of the matched release, on the same data and
// the same port.
func (u *upgrade) replaceControlPlane() {
	u.Helper()
	if err := u.before.Close(); err != nil {
		u.Fatal(err)
	}
	u.spec.Kubernetes = testcluster.Matched
	after, err := testcluster.Launch(context.WithoutCancel(u.Context()), u.spec)
	if err != nil {
		u.Fatal(err)
	}
	u.Cleanup(func() { after.Close() })
	if after.Server != u.before.Server {
		u.Fatalf("the API server moved from %s to %s", u.before.Server, after.Server)
	}
}

// load creates ten pods a second until the returned function is called. A pod that the API server cannot take now is
// created again.
func (u *upgrade) load() (end func()) {
	ctx, stop := context.WithCancel(u.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			p := pod(fmt.Sprintf("load-%d", u.created.Load()), "50m")
			_, err := u.client.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{})
			if err == nil || apierrors.IsAlreadyExists(err) {
				u.created.Add(1)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	return func() { stop(); <-ended }
}

// moreLoad waits until thirty more pods of the load are created, and bound.
func (u *upgrade) moreLoad() {
	u.Helper()
	want := int(u.created.Load()) + 30
	eventually(u.T, "pods are created and bound", func() (bool, string) {
		bound := u.bound("load-")
		return bound >= want, fmt.Sprintf("%d of %d are bound", bound, want)
	})
}

// onGangNode restricts a pod to the node of the groups.
func onGangNode(p *v1.Pod) *v1.Pod {
	p.Spec.NodeSelector = map[string]string{"for": "gangs"}
	p.Spec.Tolerations = []v1.Toleration{{Key: "gangs", Operator: v1.TolerationOpExists}}
	return p
}

// members creates n pods of a group, from number first on.
func (u *upgrade) members(group string, first, n int) {
	u.Helper()
	for i := range n {
		p := onGangNode(pod(fmt.Sprintf("%s-%d", group, first+i), "1"))
		p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &group}
		create(u.T, u.client, p)
	}
}

func (u *upgrade) groups(r testcluster.Release) dynamic.ResourceInterface {
	gvr := schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: r.GangVersion(), Resource: "podgroups"}
	return u.dynamic.Resource(gvr).Namespace("default")
}

// group creates a group that needs all its pods.
func (u *upgrade) group(r testcluster.Release, name string) {
	u.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.k8s.io/" + r.GangVersion(), "kind": "PodGroup",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(gangSize)}}},
	}}
	if _, err := u.groups(r).Create(u.Context(), object, metav1.CreateOptions{}); err != nil {
		u.Fatal(err)
	}
}

// deleteGroup deletes a group and waits until its object is gone. Its finalizer, with which a controller keeps a group
// as long as there are pods of it, is removed as an administrator has to.
func (u *upgrade) deleteGroup(r testcluster.Release, name string) {
	u.Helper()
	if err := u.groups(r).Delete(u.Context(), name, metav1.DeleteOptions{}); err != nil {
		u.Fatal(err)
	}
	none := []byte(`{"metadata":{"finalizers":null}}`)
	_, err := u.groups(r).Patch(u.Context(), name, types.MergePatchType, none, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		u.Fatal(err)
	}
	eventually(u.T, "the group "+name+" is gone", func() (bool, string) {
		object, err := u.groups(r).Get(u.Context(), name, metav1.GetOptions{})
		if err == nil {
			return false, fmt.Sprint("finalizers: ", object.GetFinalizers())
		}
		return true, ""
	})
}

func (u *upgrade) deletePod(name string) {
	u.Helper()
	now := int64(0)
	if err := u.client.CoreV1().Pods("default").Delete(u.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		u.Fatal(err)
	}
}

func (u *upgrade) deleteMembers(group string) {
	u.Helper()
	for i := range gangSize {
		u.deletePod(fmt.Sprintf("%s-%d", group, i))
	}
}

// bound counts the pods with a node whose names begin with a prefix.
func (u *upgrade) bound(prefix string) (n int) {
	u.Helper()
	for _, p := range listPods(u.T, u.client) {
		if strings.HasPrefix(p.Name, prefix) && p.Spec.NodeName != "" {
			n++
		}
	}
	return n
}

func (u *upgrade) isBound(name string) {
	u.Helper()
	eventually(u.T, name+" is bound", func() (bool, string) { return u.bound(name) == 1, "" })
}

// stands requires that a group has so many bound pods now.
func (u *upgrade) stands(group string, want int) {
	u.Helper()
	if got := u.bound(group + "-"); got != want {
		u.Errorf("%d pods of the group %s are bound, want %d", got, group, want)
	}
}

// standsAt waits until a group has so many bound pods.
func (u *upgrade) standsAt(group string, want int) {
	u.Helper()
	eventually(u.T, fmt.Sprintf("%d pods of %s are bound", want, group), func() (bool, string) {
		got := u.bound(group + "-")
		return got == want, fmt.Sprintf("%d are", got)
	})
}

// shows waits until the status of a group has the condition of its scheduling.
func (u *upgrade) shows(name string, r testcluster.Release, want v1.ConditionStatus) {
	u.Helper()
	kind := gangapi.ScheduledCondition(r.GangVersion())
	eventually(u.T, fmt.Sprintf("%s has the condition %s %s", name, kind, want), func() (bool, string) {
		object, err := u.groups(r).Get(u.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		for _, c := range conditions {
			if c, isMap := c.(map[string]any); isMap && c["type"] == kind {
				return c["status"] == string(want), fmt.Sprint(c)
			}
		}
		return false, fmt.Sprint(conditions)
	})
}
