// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// TestClusterWithAPlugin runs NewSchedulerCommand with Turns on a local cluster. A pod that Turns rejects, and that no
// event wakes, is bound after the pod that it follows.
func TestClusterWithAPlugin(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.Options{Nodes: 2})
	file := filepath.Join(t.TempDir(), "config.yaml")
	further := fmt.Sprintf("clientConnection: {kubeconfig: %s}\nleaderElection: {leaderElect: false}",
		cluster.SchedulerKubeconfig)
	if err := os.WriteFile(file, fmt.Appendf(nil, turnsConfig, further), 0o600); err != nil {
		t.Fatal(err)
	}
	command := NewSchedulerCommand(WithPlugin(turnsName, newTurns))
	command.SetArgs([]string{"--config", file, "--secure-port=0", "--v=0"})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- command.ExecuteContext(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the scheduler ended with %v", err)
		}
	}()

	cfg, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	pods := kubernetes.NewForConfigOrDie(cfg).CoreV1().Pods("default")
	create(t, pods.Create, "second", map[string]string{"follows": "first"})
	await(t, "second is rejected", func() (bool, error) {
		p, err := pods.Get(t.Context(), "second", metav1.GetOptions{})
		return err == nil && len(p.Status.Conditions) > 0 && p.Status.Conditions[0].Message ==
			"0/2 nodes are available: waits for first in profile default-scheduler. preemption: 0/2 nodes are "+
				"available: 2 Preemption is not helpful for scheduling.", err
	})
	create(t, pods.Create, "first", nil)
	await(t, "both pods are bound", func() (bool, error) {
		list, err := pods.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName!="})
		return err == nil && len(list.Items) == 2, err
	})
}

func create(t *testing.T, in func(context.Context, *v1.Pod, metav1.CreateOptions) (*v1.Pod, error), name string,
	labels map[string]string) {
	t.Helper()
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	p.Spec.Containers = []v1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10"}}
	await(t, "pod "+name+" is created", func() (bool, error) {
		_, err := in(t.Context(), p, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) {
			return false, nil // the service account of the namespace does not exist yet
		}
		return err == nil, err
	})
}

// await waits until a condition holds, for at most a minute.
func await(t *testing.T, what string, holds func() (bool, error)) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { return holds() })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
