// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/question"
)

// promised waits until a pod shows where it is about to go, and its claim c which node was chosen for its volume.
func promised(pod, node string) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		return until(ctx, func() string {
			p, err := s.client.CoreV1().Pods(s.scenario).Get(ctx, pod, metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			c, err := s.client.CoreV1().PersistentVolumeClaims(s.scenario).Get(ctx, "c", metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			on, chosen := s.short(p.Status.NominatedNodeName), s.short(c.Annotations["volume.kubernetes.io/selected-node"])
			if on == "" || chosen != on || node != "*" && on != node {
				return fmt.Sprintf("pod %s is promised %q and bound to %q, its volume %q, want %s", pod, on, p.Spec.NodeName, chosen, node)
			}
			return ""
		})
	}
}

// takenBack waits until a pod shows an error of its scheduler, and no node any more.
func takenBack(pod string) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		return until(ctx, func() string {
			p, err := s.client.CoreV1().Pods(s.scenario).Get(ctx, pod, metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			for _, c := range p.Status.Conditions {
				if c.Type == v1.PodScheduled && c.Reason == v1.PodReasonSchedulerError && p.Status.NominatedNodeName == "" && c.ObservedGeneration == p.Generation {
					return ""
				}
			}
			return fmt.Sprintf("pod %s of generation %d is promised %q, conditions %+v", pod, p.Generation, p.Status.NominatedNodeName, p.Status.Conditions)
		})
	}
}

// both does one thing after the other.
func both(first, second func(context.Context, *stage) error) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		if err := first(ctx, s); err != nil {
			return err
		}
		return second(ctx, s)
	}
}

// replace deletes a pod and creates another one under its name, with nothing in between.
func replace(pod, text string) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		now := int64(0)
		if err := s.client.CoreV1().Pods(s.scenario).Delete(ctx, pod, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			return err
		}
		return s.apply(ctx, text)
	}
}

// attempts is how often a pod was tried, as its scheduler knows.
func (s *stage) attempts(ctx context.Context, pod string) (n int, err error) {
	for _, scheduler := range s.schedulers {
		if err := scheduler.Ask(ctx, func(e *engine.Engine) {
			if report, known := question.New(e.View()).ExplainPod(s.scenario, pod); known {
				n += report.Attempts
			}
		}); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// patched is how often schedulers patched a pod's status.
func (s *stage) patched(pod string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.patches["/api/v1/namespaces/"+s.scenario+"/pods/"+pod+"/status"]
}

// triedAgain does something, waits until a pod that was refused is refused once more, and fails if the pod was
// patched for that, as it was before, although nothing changed.
func triedAgain(pod string, do func(context.Context, *stage) error) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		before, err := s.attempts(ctx, pod)
		if err != nil {
			return err
		}
		was := s.patched(pod)
		if was == 0 {
			return fmt.Errorf("pod %s was rejected, and its status was not patched", pod)
		}
		if err := do(ctx, s); err != nil {
			return err
		}
		if err := until(ctx, func() string {
			if now, err := s.attempts(ctx, pod); err != nil || now <= before {
				return fmt.Sprintf("pod %s was tried %d times, before it %d: %v", pod, now, before, err)
			}
			return ""
		}); err != nil {
			return err
		}
		waitABit(ctx) // a patch would be on its way
		if is := s.patched(pod); is != was {
			return fmt.Errorf("pod %s was patched %d times instead of %d although it was refused as before", pod, is, was)
		}
		return nil
	}
}

// goneScenarios are about pods that go away between their decision and their bind, and about what a status says
// meanwhile. Each names what it catches.
func goneScenarios() []scenario {
	const silent = "silent.example.com" // makes no volume: the pod waits before its bind
	midway := func(more string) string {
		return "- {kind: Pod, name: p, cpu: '1', spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]" + more + "}}\n"
	}
	return []scenario{
		// Catches capacity that a pod keeps although it was deleted while its volume was made; an outcome that is
		// applied to a new pod of the same name; a pod that is bound to another node than its volume.
		{"gone-midway", [][2]string{{"a", "{count: 2, capacity: {cpu: '1'}}"}}, []step{
			{apply: storageClass(silent, late, "") + wantsVolume("c", "SCENARIO", 1, "") + midway(onHost("a-0001")), do: promised("p", "a-1")},
			{remove: []string{"Pod/p"}},
			{apply: "[{kind: Pod, name: others, cpu: '1', spec: {nodeSelector: {kubernetes.io/hostname: SCENARIO-a-0001}}}]", want: map[string]string{"others": "a-1"}},
			{remove: []string{"Pod/others"}},
			{apply: midway(""), do: promised("p", "a-1")},
			{do: both(replace("p", midway("")), promised("p", "a-1"))},
			{apply: "- {kind: PersistentVolume, name: SCENARIO-v, spec: {storageClassName: SCENARIO, accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, " +
				"claimRef: {namespace: SCENARIO, name: c}, csi: {driver: " + silent + ", volumeHandle: h}}}\n",
				want: map[string]string{"p": "a-1"}},
			{apply: "[{kind: Pod, name: late, cpu: '1'}]", want: map[string]string{"late": "a-0"}},
		}},
		// Catches a node that stays promised to a pod whose volume could not be had.
		{"promise-taken-back", [][2]string{{"a", "{}"}}, []step{
			{apply: storageClass(silent, late, "") + wantsVolume("c", "SCENARIO", 1, "") + mounts("p", "c", ", schedulerName: hurried"),
				do: both(promised("p", "*"), takenBack("p"))},
		}},
		// Catches a patch for each attempt: the pod is woken by an event that it waits for, on a node without
		// capacity, and gets the same condition. It tolerates every taint, because the nodes of other scenarios are
		// in its message too and must stay there for the same reason.
		{"reported-once", [][2]string{{"a", "{}"}, {"b", "{}"}}, []step{
			{apply: "[{kind: Pod, name: filler, cpu: '4', spec: {nodeSelector: {kubernetes.io/hostname: SCENARIO-a-0000}}}]", want: map[string]string{"filler": "a-0"}},
			{apply: "[{kind: Pod, name: p, cpu: '1', spec: {tolerations: [{operator: Exists}], affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: " +
				"[{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: x}}}]}}}}]",
				want: map[string]string{"p": "!1 Insufficient cpu&1 node(s) didn't match pod affinity rules"}},
			{do: triedAgain("p", func(ctx context.Context, s *stage) error {
				return s.apply(ctx, "[{kind: Pod, name: x, labels: {app: x}, spec: {nodeSelector: {kubernetes.io/hostname: SCENARIO-a-0000}}}]")
			}), want: map[string]string{"x": "a-0", "p": "!1 Insufficient cpu&1 node(s) didn't match pod affinity rules"}},
			{remove: []string{"Pod/filler"}, want: map[string]string{"p": "a-0"}},
		}},
	}
}
