// SPDX-License-Identifier: Apache-2.0

//go:build ecosystem

package ecosystem

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// nodePool creates nodes of 8 cores, CORES together at most. Empty nodes are removed at once, all together; Karpenter's
// default is a tenth of the nodes at a time.
const nodePool = `
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  limits: {cpu: "CORES"}
  disruption: {consolidateAfter: 0s, budgets: [{nodes: "100%"}]}
  template:
    spec:
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [c-8x-amd64-linux]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
`

// consolidation is longer than Karpenter takes to remove a node that it may remove: it looks every ten seconds, and
// waits fifteen before it acts.
const consolidation = 45 * time.Second

// poolOf is nodePool with a number of nodes.
func poolOf(nodes int) string { return strings.ReplaceAll(nodePool, "CORES", fmt.Sprint(8*nodes)) }

// trainingJob is a gang of pods of which each fills a node.
func trainingJob(name string, pods int, cpu, annotations string) string {
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %[1]s, namespace: default}
spec:
  parallelism: %[2]d
  completions: %[2]d
  completionMode: Indexed
  template:
    metadata:
      annotations: {pod_group: %[1]s, pod_group_size: "%[2]d", kumiki.dev/run-for: 1h%[4]s}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: registry.example/train:1, resources: {requests: {cpu: "%[3]s"}}}]
`, name, pods, cpu, annotations)
}

// singlePod is a pod that belongs to no gang.
func singlePod(name, cpu string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: default}
spec:
  containers: [{name: main, image: registry.example/web:1, resources: {requests: {cpu: "%s"}}}]
`, name, cpu)
}

// kumikiWith is a configuration of kumiki that reads annotations, with more settings of gangs and of evictions.
func kumikiWith(gangs, preemption string) string {
	return `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: Kumiki
    args: {gangs: {annotation: "On"` + gangs + "}, preemption: {" + preemption + "}}\n"
}

// karpenterCluster is a cluster without nodes, with Karpenter and a pool of some nodes.
func karpenterCluster(t *testing.T, nodes int, configuration string) *suite {
	s := newCluster(t, testcluster.Options{Nodes: -1, NoHeartbeats: true})
	s.schedule(configuration)
	s.start(Karpenter)
	s.apply(poolOf(nodes))
	return s
}

// has waits until there are n nodes and all are ready.
func (s *suite) has(n int) {
	s.Helper()
	s.eventually(fmt.Sprintf("%d nodes", n), func(ctx context.Context) error {
		nodes, err := s.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		ready := 0
		for _, node := range nodes.Items {
			for _, c := range node.Status.Conditions {
				if c.Type == v1.NodeReady && c.Status == v1.ConditionTrue && len(node.Spec.Taints) == 0 {
					ready++
				}
			}
		}
		if ready != n || len(nodes.Items) != n {
			return fmt.Errorf("%d of %d nodes are ready, want %d", ready, len(nodes.Items), n)
		}
		return nil
	})
}

// reasons waits until all pods with a prefix wait, with a reason in their condition PodScheduled.
func (s *suite) reasons(prefix string, n int, reason string) {
	s.Helper()
	s.eventually(prefix+" waits: "+reason, func(ctx context.Context) error {
		pods, err := s.pods(ctx, "default", prefix)
		if err != nil {
			return err
		}
		have := 0
		for _, p := range pods {
			for _, c := range p.Status.Conditions {
				if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse && c.Reason == reason {
					have++
				}
			}
		}
		if have != n || len(pods) != n {
			return fmt.Errorf("%d of %d pods have the reason, want %d", have, len(pods), n)
		}
		return nil
	})
}

// events waits until an object of Karpenter or a node has an event with a reason and a part of its message.
func (s *suite) events(reason, part string) {
	s.Helper()
	s.eventually("event "+reason, func(ctx context.Context) error {
		list, err := s.Kube.CoreV1().Events("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Reason == reason && strings.Contains(e.Message, part) {
				return nil
			}
		}
		return fmt.Errorf("no event %s with %q", reason, part)
	})
}

// TestKarpenterCreatesNodes: Karpenter creates nodes for a pod and for all pods of a gang, kumiki places them, and
// nodes that become empty are removed. A gang of which a pod is missing requests no nodes.
func TestKarpenterCreatesNodes(t *testing.T) {
	s := karpenterCluster(t, 8, kumikiWith("", ""))
	s.apply(singlePod("web", "7"))
	s.runs("default", "web", 1)
	s.has(1)
	s.remove(singlePod("web", "7"))
	s.has(0)

	incomplete := strings.Replace(trainingJob("train", 8, "7", ""), `pod_group_size: "8"`, `pod_group_size: "9"`, 1)
	s.apply(incomplete)
	s.reasons("train-", 8, "SchedulingGated")
	s.has(0)
	s.remove(incomplete)
	s.runs("default", "train-", 0)

	s.apply(trainingJob("train", 8, "7", ""))
	s.runs("default", "train-", 8)
	s.has(8)
	s.remove(trainingJob("train", 8, "7", ""))
	s.has(0)
}

// TestKarpenterAtItsLimit: a gang needs 8 nodes, and the pool may have 7. Karpenter creates 7 and the gang does not
// start. With gangs.scaleUp, the pods cease to request nodes, and Karpenter removes the 7. Without it, they would stay:
// Karpenter plans to use them for 7 of the pods.
func TestKarpenterAtItsLimit(t *testing.T) {
	s := karpenterCluster(t, 7, kumikiWith(", scaleUp: {for: 45s, pause: 1h}", ""))
	train := trainingJob("train", 8, "7", "")
	s.apply(train)
	s.has(7)
	s.waits("default", "train-", "train", "8 waiting", "the best try places 7, 8 are needed")
	s.reasons("train-", 8, "Unschedulable")

	s.reasons("train-", 8, "SchedulingGated")
	s.has(0)
	s.waits("default", "train-", "train", "8 waiting")
	s.remove(train)
	s.runs("default", "train-", 0)

	// With a limit that is high enough, the same gang starts whole.
	s.apply(poolOf(8))
	s.apply(train)
	s.runs("default", "train-", 8)
}

// TestKarpenterAndReservedCapacity: at the limit of the pool, a gang waits for a running pod, and kumiki reserves the
// capacity of two nodes for it. A pod for which Karpenter may create no node starts when the reservation ends.
func TestKarpenterAndReservedCapacity(t *testing.T) {
	s := karpenterCluster(t, 3, kumikiWith(", hold: {after: 0s, for: 40s}", ""))
	s.apply(singlePod("filler", "7"))
	s.runs("default", "filler", 1)
	s.apply(trainingJob("train", 3, "7", ""))
	s.has(3)
	s.events("HoldingRoom", "of 3 pods")
	s.apply(singlePod("late", "4"))
	s.runs("default", "late", 1)
	s.events("RoomReleased", "its time is over")
	s.waits("default", "train-", "train", "3 waiting")
	s.has(3)
}

// TestKarpenterInsteadOfEvictions: with preemption.after, a pod of higher priority waits for a node of Karpenter, and
// nothing is evicted. If the pool may have no more nodes, the pod evicts when its time is over.
func TestKarpenterInsteadOfEvictions(t *testing.T) {
	s := karpenterCluster(t, 2, kumikiWith("", "after: 30s"))
	s.apply("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: urgent}\nvalue: 1000\n")
	urgent := func(name string) string {
		return strings.Replace(singlePod(name, "7"), "spec:", "spec:\n  priorityClassName: urgent", 1)
	}
	s.apply(singlePod("low", "7"))
	low := s.runs("default", "low", 1)
	s.apply(urgent("first"))
	first := s.runs("default", "first", 1)
	s.has(2)
	if left := s.runs("default", "low", 1); !maps.Equal(left, low) {
		t.Error("the pod of lower priority was evicted, although there is a new node")
	}
	s.apply(urgent("second"))
	s.runs("default", "second", 1)
	s.runs("default", "low", 0)
	if left := s.runs("default", "first", 1); !maps.Equal(left, first) {
		t.Error("a pod of the same priority was evicted")
	}
	s.has(2)
}

// TestKarpenterConsolidates: Karpenter moves the pods of a running gang to fewer nodes one by one, unless the pods have
// its annotation.
func TestKarpenterConsolidates(t *testing.T) {
	s := karpenterCluster(t, 2, kumikiWith("", ""))
	s.apply(singlePod("filler-0", "4"))
	s.apply(singlePod("filler-1", "4"))
	s.runs("default", "filler-", 2) // on a node each; the gang's pods on one node would leave no place for the second
	s.apply(trainingJob("train", 2, "3", `, karpenter.sh/do-not-disrupt: "true"`))
	before := s.runs("default", "train-", 2)
	s.has(2)
	s.remove(singlePod("filler-0", "4"))
	s.remove(singlePod("filler-1", "4"))
	// Karpenter repeats an event of a node only after two minutes, so none is waited for here.
	time.Sleep(consolidation)
	s.has(2)
	for uid := range s.runs("default", "train-", 2) {
		if !before[uid] {
			t.Errorf("a pod of the protected gang was replaced")
		}
	}

	pods, err := s.pods(t.Context(), "default", "train-")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods {
		patch := []byte(`{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":null}}}`)
		_, err := s.Kube.CoreV1().Pods("default").Patch(t.Context(), p.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	s.has(1)
	after := s.runs("default", "train-", 2)
	kept := 0
	for uid := range after {
		if before[uid] {
			kept++
		}
	}
	if kept != 1 {
		t.Errorf("%d pods of the gang were kept, want 1 that stays and 1 that is replaced", kept)
	}
}
