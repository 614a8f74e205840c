// SPDX-License-Identifier: Apache-2.0

//go:build ecosystem

package ecosystem

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// rayGangs is allGangs with profiles of the names that KubeRay writes into its pods.
const rayGangs = allGangs + `
- schedulerName: volcano
- schedulerName: scheduler-plugins-scheduler
`

// rayGang is the label of RayClusters that are gangs with KubeRay's batch scheduler scheduler-plugins. With volcano,
// all are.
const rayGang = `ray.io/gang-scheduling-enabled: "true"`

// raySpec is the spec of a RayCluster whose head and workers fill a node each.
const raySpec = `
  enableInTreeAutoscaling: AUTOSCALING
  headGroupSpec:
    rayStartParams: {}
    template:
      spec:
        containers: [{name: head, image: registry.example/ray:1, resources: {requests: {cpu: "6"}}}]
  workerGroupSpecs:
  - groupName: w
    replicas: REPLICAS
    minReplicas: 1
    maxReplicas: 10
    rayStartParams: {}
    template:
      spec:
        containers: [{name: worker, image: registry.example/ray:1, resources: {requests: {cpu: "6"}}}]
`

// rayClusterOf returns a manifest. An autoscaler does not run: a test changes the number of workers in its stead.
func rayClusterOf(name, label string, autoscaling bool, workers int) string {
	return fmt.Sprintf("apiVersion: ray.io/v1\nkind: RayCluster\n"+
		"metadata: {name: %s, namespace: default, labels: {%s}}\nspec:", name, label) +
		strings.NewReplacer("AUTOSCALING", fmt.Sprint(autoscaling), "REPLICAS", fmt.Sprint(workers)).Replace(raySpec)
}

// rayJobOf returns the manifest of a job that has a RayCluster of its own with a head and two workers.
func rayJobOf(name string) string {
	cluster := strings.NewReplacer("AUTOSCALING", "false", "REPLICAS", "2", "\n", "\n  ").Replace(raySpec)
	return fmt.Sprintf("apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: %s, namespace: default, labels: {%s}}\n"+
		"spec:\n  entrypoint: python train.py\n  rayClusterSpec:%s", name, rayGang, cluster)
}

// newRay starts a cluster with nodes, kumiki and KubeRay.
func newRay(t *testing.T, batchScheduler string, nodes ...string) (*suite, *Process) {
	t.Helper()
	s := newCluster(t, testcluster.Options{Nodes: -1, NoHeartbeats: true})
	s.apply(string(testcluster.GangDefinitions))
	s.addNodes(nodes...)
	s.schedule(rayGangs)
	return s, s.start(kubeRay(batchScheduler))
}

// scheduledBy checks the schedulerName of pods.
func (s *suite) scheduledBy(prefix, scheduler string) {
	s.Helper()
	pods, err := s.pods(s.Context(), "default", prefix)
	if err != nil {
		s.Fatal(err)
	}
	for _, p := range pods {
		if p.Spec.SchedulerName != scheduler {
			s.Errorf("schedulerName of pod %s is %q, want %q", p.Name, p.Spec.SchedulerName, scheduler)
		}
	}
}

// rayReady waits until KubeRay sees all pods of a RayCluster running.
func (s *suite) rayReady(name string) {
	s.Helper()
	clusters := s.dynamic.Resource(schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayclusters"})
	s.eventually("RayCluster "+name+" is ready", func(ctx context.Context) error {
		o, err := clusters.Namespace("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if state, _, _ := unstructured.NestedString(o.Object, "status", "state"); state != "ready" {
			return fmt.Errorf("its state is %q", state)
		}
		return nil
	})
}

// cordon makes nodes unschedulable, or schedulable again.
func (s *suite) cordon(unschedulable bool, nodes ...string) {
	s.Helper()
	for _, node := range nodes {
		_, err := s.Kube.CoreV1().Nodes().Patch(s.Context(), node, types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, unschedulable), metav1.PatchOptions{})
		if err != nil {
			s.Fatal(err)
		}
	}
}

// prints waits until a process has printed a text.
func (s *suite) prints(p *Process, text string) {
	s.Helper()
	s.eventually("the output "+text, func(context.Context) error {
		if !strings.Contains(p.Output(), text) {
			return errors.New("not there")
		}
		return nil
	})
}

// TestRay: the head and the workers of a RayCluster are one gang by the PodGroup of Volcano that KubeRay creates. The
// gang starts whole. Pods that fail are replaced. Without Ray's autoscaler, KubeRay raises the minimum with the number
// of workers, so new workers start together.
func TestRay(t *testing.T) {
	s, _ := newRay(t, "volcano", "a", "b")
	s.apply(rayClusterOf("tune", "", false, 2))
	s.waits("default", "tune-", "ray-tune-pg", "(volcano): waits for capacity", "Needs:      3 pods",
		"3 waiting", "Insufficient cpu")
	s.scheduledBy("tune-", "volcano")
	s.addNodes("c")
	s.runs("default", "tune-", 3)
	s.explains("default", "ray-tune-pg", "running", "3 bound")
	s.rayReady("tune")

	for _, prefix := range []string{"tune-w-worker-", "tune-head-"} {
		s.fail("default", prefix)
		s.runs("default", "tune-", 3)
	}

	s.apply(rayClusterOf("tune", "", false, 4))
	s.explains("default", "ray-tune-pg", "Needs:      5 pods", "3 bound", "2 waiting")
	s.addNodes("d")
	s.explains("default", "ray-tune-pg", "3 bound", "2 waiting", "the best try places 1")
	s.addNodes("e")
	s.runs("default", "tune-", 5)

	s.apply(rayClusterOf("next", "", false, 2))
	s.waits("default", "next-", "ray-next-pg", "waits for capacity", "3 waiting")
	s.remove(rayClusterOf("tune", "", false, 4))
	s.runs("default", "next-", 3)

	// A RayCluster that starts again with fewer workers is a smaller gang.
	s.apply(rayClusterOf("next", "", false, 1) + "  suspend: true\n")
	s.runs("default", "next-", 0)
	s.apply(rayClusterOf("next", "", false, 1) + "  suspend: false\n")
	s.runs("default", "next-", 2)
	s.explains("default", "ray-next-pg", "running", "Needs:      2 pods")
}

// TestRayAutoscaler: with Ray's autoscaler, the head and the minimum number of workers are the gang. Workers that the
// autoscaler adds are surplus members and start one by one.
func TestRayAutoscaler(t *testing.T) {
	s, _ := newRay(t, "volcano", "a")
	s.apply(rayClusterOf("tune", "", true, 1))
	s.waits("default", "tune-", "ray-tune-pg", "waits for capacity", "Needs:      2 pods", "2 waiting")
	s.addNodes("b")
	s.runs("default", "tune-", 2)

	s.apply(rayClusterOf("tune", "", true, 3))
	s.explains("default", "ray-tune-pg", "Needs:      2 pods", "2 bound", "2 waiting")
	s.addNodes("c")
	s.explains("default", "ray-tune-pg", "3 bound", "1 waiting")
	s.addNodes("d")
	s.runs("default", "tune-", 4)
}

// TestRayHead: the gang does not tell a head from a worker. A head of higher priority that failed gets the next free
// place, before workers that have waited longer.
func TestRayHead(t *testing.T) {
	s, _ := newRay(t, "volcano", "a", "b")
	s.apply("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: ray-head}, value: 1000}")
	manifest := func(workers int) string {
		return strings.Replace(rayClusterOf("tune", "", true, workers), "containers:",
			"priorityClassName: ray-head\n        containers:", 1)
	}
	s.apply(manifest(1))
	s.runs("default", "tune-", 2)
	s.apply(manifest(3))
	s.explains("default", "ray-tune-pg", "2 bound", "2 waiting")

	s.cordon(true, "a", "b")
	s.fail("default", "tune-head-")
	s.explains("default", "ray-tune-pg", "1 bound", "3 waiting")
	s.cordon(false, "a", "b")
	s.runs("default", "tune-head-", 1)
	s.explains("default", "ray-tune-pg", "2 bound", "2 waiting")
}

// TestRaySimultaneousClusters: of two RayClusters that are created at once, with capacity for one, one runs whole and
// the other has no node.
func TestRaySimultaneousClusters(t *testing.T) {
	s, _ := newRay(t, "volcano", "a", "b", "c", "d", "e")
	s.apply(rayClusterOf("one", "", false, 2) + "\n---\n" + rayClusterOf("two", "", false, 2))
	s.oneOfTwo(map[string]string{"one-": "ray-one-pg", "two-": "ray-two-pg"}, 3)
}

// TestRayJob: the RayCluster of a RayJob is one gang. The pod that submits the job to it is a surplus member, which
// KubeRay creates when the cluster is ready. The job itself does not run, because no Ray answers. KubeRay rejects a job
// for an existing RayCluster.
func TestRayJob(t *testing.T) {
	s, operator := newRay(t, "volcano", "a", "b")
	s.apply(rayJobOf("train"))
	s.waits("default", "train-", "ray-train-pg", "waits for capacity", "Needs:      3 pods", "3 waiting")
	s.addNodes("c")
	s.eventually("the submitter has run", func(ctx context.Context) error {
		pods, err := s.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "job-name=train"})
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 || pods.Items[0].Status.Phase != v1.PodSucceeded {
			return fmt.Errorf("not among %d pods", len(pods.Items))
		}
		if group := pods.Items[0].Annotations["scheduling.k8s.io/group-name"]; group != "ray-train-pg" {
			return fmt.Errorf("its group is %q", group)
		}
		return nil
	})
	s.runs("default", "train-", 3)

	s.apply("{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: more, namespace: default}, " +
		"spec: {entrypoint: python more.py, clusterSelector: {ray.io/cluster: any}}}")
	s.prints(operator, "gang scheduling does not support RayJob default/more")
}

// TestRaySchedulerPlugins: with KubeRay's other batch scheduler, RayClusters with a label are gangs. The minimum is the
// number of pods at the start, so workers that are added later are surplus members.
func TestRaySchedulerPlugins(t *testing.T) {
	s, _ := newRay(t, "scheduler-plugins", "a", "b")
	s.apply(rayClusterOf("tune", rayGang, false, 2))
	s.waits("default", "tune-", "tune", "(sigs): waits for capacity", "Needs:      3 pods", "3 waiting")
	s.scheduledBy("tune-", "scheduler-plugins-scheduler")
	s.addNodes("c")
	s.runs("default", "tune-", 3)

	s.apply(rayClusterOf("tune", rayGang, false, 4))
	s.explains("default", "tune", "Needs:      3 pods", "3 bound", "2 waiting")
	s.addNodes("d")
	s.explains("default", "tune", "4 bound", "1 waiting")
	s.addNodes("e")
	s.runs("default", "tune-", 5)
	s.remove(rayClusterOf("tune", rayGang, false, 4))
	s.runs("default", "tune-", 0)

	// Without the label, the pods start one by one. The scheduler is the same.
	s.apply(rayClusterOf("loose", "", false, 6))
	s.eventually("5 of 7 pods are bound", func(ctx context.Context) error {
		pods, err := s.pods(ctx, "default", "loose-")
		if n := bound(pods); err == nil && (n != 5 || len(pods) != 7) {
			err = fmt.Errorf("%d of %d", n, len(pods))
		}
		return err
	})
	s.scheduledBy("loose-", "scheduler-plugins-scheduler")
}

// TestRaySchedulerPluginsLimits: with that batch scheduler, KubeRay looks for the label and not at its value. It never
// changes a PodGroup, so a RayCluster that starts again with fewer workers waits until that is done by hand. A RayJob
// gets no RayCluster.
func TestRaySchedulerPluginsLimits(t *testing.T) {
	s, operator := newRay(t, "scheduler-plugins", "a", "b", "c", "d")
	const label = `ray.io/gang-scheduling-enabled: "false"`
	s.apply(rayClusterOf("tune", label, false, 3))
	s.runs("default", "tune-", 4)
	s.apply(rayClusterOf("tune", label, false, 2) + "  suspend: true\n")
	s.runs("default", "tune-", 0)
	s.apply(rayClusterOf("tune", label, false, 2) + "  suspend: false\n")
	s.waits("default", "tune-", "tune", "Needs:      4 pods", "3 waiting")
	groups := schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
	_, err := s.dynamic.Resource(groups).Namespace("default").Patch(t.Context(), "tune", types.MergePatchType,
		[]byte(`{"spec":{"minMember":3}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.runs("default", "tune-", 3)

	s.apply(rayJobOf("train"))
	s.prints(operator, "currently only RayCluster is supported, got *v1.RayJob")
	if pods, err := s.pods(t.Context(), "default", "train-"); err != nil || len(pods) > 0 {
		t.Fatalf("%d pods, %v", len(pods), err)
	}
}

// TestRayWithoutPodGroups: while the cluster does not have the PodGroups of the batch scheduler, KubeRay creates no
// pods. When their resource definition is installed, the RayCluster starts, with KubeRay and kumiki as they run.
func TestRayWithoutPodGroups(t *testing.T) {
	for batchScheduler, gang := range map[string]string{"volcano": "ray-tune-pg", "scheduler-plugins": "tune"} {
		t.Run(batchScheduler, func(t *testing.T) {
			s := newCluster(t, testcluster.Options{Nodes: -1, NoHeartbeats: true})
			s.addNodes("a", "b", "c")
			s.schedule(rayGangs)
			operator := s.start(kubeRay(batchScheduler))
			s.apply(rayClusterOf("tune", rayGang, false, 2))
			s.prints(operator, "no matches for kind")
			if pods, err := s.pods(t.Context(), "default", "tune-"); err != nil || len(pods) > 0 {
				t.Fatalf("%d pods, %v", len(pods), err)
			}
			s.apply(string(testcluster.GangDefinitions))
			s.runs("default", "tune-", 3)
			s.explains("default", gang, "running", "3 bound")
		})
	}
}
