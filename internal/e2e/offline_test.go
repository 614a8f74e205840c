// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/question"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// TestOffline explains pods of a cluster in which no kumiki runs, as a user who may only list and watch, and may not
// read resource claims: the pod of another scheduler is explained all the same, and nothing hangs. Faults: a snapshot
// that needs a right to write; one that waits for a kind that may not be read.
func TestOffline(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.Options{Nodes: 3, NoHeartbeats: true})
	cfg, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	admin := kubernetes.NewForConfigOrDie(cfg)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	allowReading(ctx, t, admin, "onlooker")

	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "stranger"}, Spec: v1.PodSpec{SchedulerName: "somebody-else", Containers: []v1.Container{{
		Name: "c", Image: "img", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("4000")}}}}}}
	if _, err := admin.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	reader := rest.CopyConfig(cfg)
	reader.Impersonate.UserName = "onlooker"
	events, err := app.Plugins{}.Snapshot(ctx, kubernetes.NewForConfigOrDie(reader), dynamic.NewForConfigOrDie(reader),
		config.Default())
	if err != nil {
		t.Fatal(err)
	}
	e, others, err := app.Plugins{}.Offline(config.Default(), events, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if len(others) != 1 || others[0] != "somebody-else" {
		t.Errorf("foreign schedulers %q", others)
	}
	report, ok := question.New(e.View()).ExplainPod("default", "stranger")
	if !ok || report.Fit == nil || report.Fit.Nodes != 3 || report.Fit.Feasible != 0 {
		t.Fatalf("known %v, report %+v", ok, report)
	}
	if r := report.Fit.Reasons; len(r) != 1 || r[0].Plugin != "NodeResourcesFit" || r[0].Nodes != 3 {
		t.Errorf("reasons %+v", r)
	}

	nobody := rest.CopyConfig(cfg)
	nobody.Impersonate.UserName = "nobody"
	if _, err := (app.Plugins{}).Snapshot(ctx, kubernetes.NewForConfigOrDie(nobody), nil, config.Default()); err == nil {
		t.Error("a user without rights got a snapshot")
	}
}

// allowReading lets a user list and watch what scheduling reads, but for resource claims.
func allowReading(ctx context.Context, t *testing.T, admin kubernetes.Interface, user string) {
	t.Helper()
	read := []string{"list", "watch"}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Verbs: read, Resources: []string{"nodes", "pods", "namespaces", "services", "replicationcontrollers", "persistentvolumes", "persistentvolumeclaims"}},
		{APIGroups: []string{"apps"}, Verbs: read, Resources: []string{"replicasets", "statefulsets"}},
		{APIGroups: []string{"storage.k8s.io"}, Verbs: read, Resources: []string{"*"}},
	}}
	if _, err := admin.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}}
	if _, err := admin.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
