// SPDX-License-Identifier: Apache-2.0

//go:build ecosystem

// These tests build controllers of other projects, which takes minutes: 'make ecosystem' runs them. The name of a test
// begins with Test and the name of its component.

package ecosystem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// stepTime bounds how long a step of a scenario may take.
const stepTime = 90 * time.Second

// suite is a cluster with kumiki as its scheduler, beside which components run.
type suite struct {
	*testing.T
	*Client
	cluster   *testcluster.Cluster
	root      string
	scheduler *Process
}

// allGangs is a configuration that reads the declarations of all controllers.
const allGangs = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: Kumiki
    args:
      gangs: {annotation: "On", sigs: "On", volcano: "On"}
`

// newCluster starts a cluster. Nodes are 8 cores large unless options say otherwise.
func newCluster(t *testing.T, options testcluster.Options) *suite {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("make", "-C", root, "kumiki").CombinedOutput(); err != nil {
		t.Fatalf("build kumiki: %v\n%s", err, out)
	}
	s := &suite{T: t, root: root, cluster: testcluster.Start(t, options)}
	if s.Client, err = NewClient(s.cluster.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	return s
}

// schedule starts kumiki, as a process of its own with the rights of kube-scheduler and of testcluster.GangRoles.
func (s *suite) schedule(configuration string) {
	s.Helper()
	s.apply(string(testcluster.GangRoles))
	file := filepath.Join(s.TempDir(), "scheduler.yaml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		s.Fatal(err)
	}
	cmd := exec.Command(s.kumiki(), "scheduler", "--config", file, "--kubeconfig", s.cluster.SchedulerKubeconfig,
		"--bind-address", "127.0.0.1")
	p, err := Spawn(cmd, io.Discard)
	if err != nil {
		s.Fatal(err)
	}
	s.scheduler = p
	s.Cleanup(func() {
		if err := p.alive(); err != nil {
			s.Errorf("%v", err)
		}
		p.Stop()
		if s.Failed() {
			s.Logf("the end of the output of kumiki:\n%s", p.tail())
		}
	})
}

// start starts components one after the other, and returns the process of the last.
func (s *suite) start(components ...Component) *Process {
	s.Helper()
	var last *Process
	for _, c := range components {
		last = Start(s, c, s.cluster.Kubeconfig, s.TempDir())
	}
	return last
}

func (s *suite) kumiki() string { return filepath.Join(s.root, "bin", "kumiki") }

// eventually waits until f returns nil.
func (s *suite) eventually(what string, f func(context.Context) error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), stepTime)
	defer cancel()
	if err := Until(ctx, f); err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

// apply applies manifests. It repeats what is rejected, because a webhook may not have seen an earlier object yet.
func (s *suite) apply(text string) {
	s.Helper()
	for _, o := range s.read(text) {
		s.eventually("apply", func(ctx context.Context) error { return s.Apply(ctx, o) })
	}
}

// remove deletes the objects of manifests.
func (s *suite) remove(text string) {
	s.Helper()
	options := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}
	for _, o := range s.read(text) {
		resource, err := s.Resource(o)
		if err == nil {
			err = resource.Delete(s.Context(), o.GetName(), options)
		}
		if err != nil {
			s.Fatal(err)
		}
	}
}

func (s *suite) read(text string) []*unstructured.Unstructured {
	s.Helper()
	objects, err := Objects([]byte(text))
	if err != nil || len(objects) == 0 {
		s.Fatalf("reading manifests: %d objects, %v", len(objects), err)
	}
	return objects
}

// addNodes creates nodes with 8 cores.
func (s *suite) addNodes(names ...string) {
	s.Helper()
	size := v1.ResourceList{v1.ResourceCPU: resource.MustParse("8"), v1.ResourceMemory: resource.MustParse("32Gi"),
		v1.ResourcePods: resource.MustParse("110")}
	for _, name := range names {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}},
			Status: v1.NodeStatus{Capacity: size, Allocatable: size}}
		if _, err := s.Kube.CoreV1().Nodes().Create(s.Context(), node, metav1.CreateOptions{}); err != nil {
			s.Fatal(err)
		}
	}
}

// pods lists the pods of a namespace whose names begin with prefix and that are neither terminal nor being deleted.
func (s *suite) pods(ctx context.Context, namespace, prefix string) ([]v1.Pod, error) {
	list, err := s.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var live []v1.Pod
	for _, p := range list.Items {
		terminal := p.Status.Phase == v1.PodFailed || p.Status.Phase == v1.PodSucceeded
		if strings.HasPrefix(p.Name, prefix) && p.DeletionTimestamp == nil && !terminal {
			live = append(live, p)
		}
	}
	return live, nil
}

// bound counts the pods that have a node.
func bound(pods []v1.Pod) int {
	n := 0
	for _, p := range pods {
		if p.Spec.NodeName != "" {
			n++
		}
	}
	return n
}

// runs waits until exactly n pods with the prefix live, and all run. It returns their UIDs.
func (s *suite) runs(namespace, prefix string, n int) map[types.UID]bool {
	s.Helper()
	uids := map[types.UID]bool{}
	s.eventually(fmt.Sprintf("%d pods %s run", n, prefix), func(ctx context.Context) error {
		pods, err := s.pods(ctx, namespace, prefix)
		if err != nil {
			return err
		}
		clear(uids)
		running := 0
		for _, p := range pods {
			uids[p.UID] = true
			if p.Status.Phase == v1.PodRunning {
				running++
			}
		}
		if running != n || len(pods) != n {
			return fmt.Errorf("%d of %d pods run, want %d of %d", running, len(pods), n, n)
		}
		return nil
	})
	return uids
}

// restarted waits until n pods run of which none ran before.
func (s *suite) restarted(namespace, prefix string, n int, before map[types.UID]bool) {
	s.Helper()
	s.eventually(fmt.Sprintf("%d new pods %s run", n, prefix), func(ctx context.Context) error {
		pods, err := s.pods(ctx, namespace, prefix)
		if err != nil {
			return err
		}
		fresh := 0
		for _, p := range pods {
			if p.Status.Phase == v1.PodRunning && !before[p.UID] {
				fresh++
			}
		}
		if fresh != n || len(pods) != n {
			return fmt.Errorf("%d of %d pods are new and run, want %d", fresh, len(pods), n)
		}
		return nil
	})
}

// waits waits until kumiki explains a gang with all of the given texts, and checks that no pod of it is bound.
func (s *suite) waits(namespace, prefix, gang string, texts ...string) {
	s.Helper()
	s.explains(namespace, gang, texts...)
	pods, err := s.pods(s.Context(), namespace, prefix)
	if err != nil {
		s.Fatal(err)
	}
	if n := bound(pods); n != 0 {
		s.Fatalf("gang %s waits with %d bound pods\n%s", gang, n, s.why(s.Context(), namespace, gang))
	}
}

// explains waits until `kumiki why` says all of the given texts of a gang.
func (s *suite) explains(namespace, gang string, texts ...string) {
	s.Helper()
	s.eventually("kumiki why gang/"+gang, func(ctx context.Context) error {
		answer := s.why(ctx, namespace, gang)
		for _, text := range texts {
			if !strings.Contains(answer, text) {
				return fmt.Errorf("%q is not in\n%s", text, answer)
			}
		}
		return nil
	})
}

// why returns what `kumiki why` says of a gang.
func (s *suite) why(ctx context.Context, namespace, gang string) string {
	args := []string{"why", "gang/" + gang, "-n", namespace, "--kubeconfig", s.cluster.Kubeconfig}
	out, err := exec.CommandContext(ctx, s.kumiki(), args...).CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%v: %s", err, out)
	}
	return string(out)
}

// fail ends one running pod as if its container had failed: the local cluster runs no containers.
func (s *suite) fail(namespace, prefix string) {
	s.Helper()
	pods, err := s.pods(s.Context(), namespace, prefix)
	if err == nil && len(pods) == 0 {
		err = errors.New("there is none")
	}
	if err != nil {
		s.Fatalf("a pod %s to fail: %v", prefix, err)
	}
	_, err = s.Kube.CoreV1().Pods(namespace).Patch(s.Context(), pods[len(pods)-1].Name, types.MergePatchType,
		[]byte(`{"status":{"phase":"Failed"}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		s.Fatal(err)
	}
}

// oneOfTwo waits until all n pods of one gang run while the other gang, which kumiki has tried, has no bound pod.
// Gangs: prefix of the names of pods -> gang, in namespace default.
func (s *suite) oneOfTwo(gangs map[string]string, n int) {
	s.Helper()
	s.eventually("one gang of two runs", func(ctx context.Context) error {
		running := 0
		for prefix, gang := range gangs {
			pods, err := s.pods(ctx, "default", prefix)
			if err != nil {
				return err
			}
			answer := s.why(ctx, "default", gang)
			switch b := bound(pods); {
			case len(pods) == n && b == n && strings.Contains(answer, ": running"):
				running++
			case len(pods) != n || b > 0 || !strings.Contains(answer, "waits for capacity"):
				return fmt.Errorf("%d of %d pods %s are bound\n%s", b, len(pods), prefix, answer)
			}
		}
		if running != 1 {
			return fmt.Errorf("%d gangs run", running)
		}
		return nil
	})
}
