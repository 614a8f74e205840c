// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// classes are priorities; more of them do not preempt.
const classes = `- {kind: PriorityClass, name: SCENARIO-low, value: 10}
- {kind: PriorityClass, name: SCENARIO-mid, value: 500}
- {kind: PriorityClass, name: SCENARIO-high, value: 1000}
- {kind: PriorityClass, name: SCENARIO-polite, value: 1000, preemptionPolicy: Never}
`

// runs is a pod that is on a node from the start; more are fields of the short form.
func runs(name, class, cpu, node string, more ...string) string {
	return fmt.Sprintf("- {kind: Pod, name: %s, cpu: %s, spec: {priorityClassName: SCENARIO-%s, nodeName: SCENARIO-%s}%s}\n", name, cpu, class, node,
		strings.Join(append([]string{""}, more...), ", "))
}

// asks is a pod that waits for a node; more are fields of its spec.
func asks(name, class, cpu string, more ...string) string {
	return fmt.Sprintf("- {kind: Pod, name: %s, cpu: %s, spec: {priorityClassName: SCENARIO-%s%s}}\n", name, cpu, class,
		strings.Join(append([]string{""}, more...), ", "))
}

// left says which pods must be there and have a node, and that there are no others with one.
func left(want ...string) func(map[string]string) string {
	slices.Sort(want)
	return func(on map[string]string) string {
		var have []string
		for name, node := range on { // order: sorted below
			if node != "" {
				have = append(have, name)
			}
		}
		slices.Sort(have)
		if !slices.Equal(have, want) {
			return fmt.Sprintf("on nodes are %v, want %v", have, want)
		}
		return ""
	}
}

// clings is runs for a pod that takes an hour to die, unless it is removed.
func clings(name, class, cpu, node string) string {
	return strings.Replace(runs(name, class, cpu, node), "nodeName:", "terminationGracePeriodSeconds: 3600, nodeName:", 1)
}

// nominated waits until a pod is nominated to a node and a victim is going for it.
func nominated(pod, node, victim string) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		for waitABit(ctx) {
			s.mu.Lock()
			p, v := s.pods[s.scenario][pod], s.pods[s.scenario][victim]
			s.mu.Unlock()
			if v.DeletionTimestamp == nil || s.short(p.Status.NominatedNodeName) != node {
				continue
			}
			i := slices.IndexFunc(v.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.DisruptionTarget })
			if i < 0 || v.Status.Conditions[i].Reason != v1.PodReasonPreemptionByScheduler ||
				v.Status.Conditions[i].Message != "default-scheduler: preempting to accommodate a higher priority pod" {
				return fmt.Errorf("conditions of the victim: %+v", v.Status.Conditions)
			}
			return nil
		}
		return fmt.Errorf("pod %s is not nominated to %s, or pod %s is not going: %w", pod, node, victim, ctx.Err())
	}
}

// TestPreemptionOnARealAPIServer plays the preemption of single pods: which pods are evicted, and which keep their
// capacity. Each scenario fails with a scheduler that evicts one pod more than it must. It also plays what
// autoscalers read from pods.
func TestPreemptionOnARealAPIServer(t *testing.T) {
	playStaged(t, "realistic", []string{configuration(`
- schedulerName: default-scheduler
  pluginConfig: [{name: Kumiki, args: {gangs: {annotation: "On"}}}]
`), configuration(`
- schedulerName: scales-up-shortly
  pluginConfig: [{name: Kumiki, args: {gangs: {annotation: "On", scaleUp: {for: 1s, pause: 1h}}}}]
- schedulerName: spares-all
  plugins: {multiPoint: {disabled: [{name: DefaultPreemption}]}}
- schedulerName: limited
  pluginConfig: [{name: DefaultPreemption, args: {minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 1}}]
- schedulerName: in-step
  pluginConfig: [{name: Kumiki, args: {syncPreemption: true}}]
`)}, slices.Concat(preemptionScenarios(), autoscalerScenarios()))
}

func preemptionScenarios() []scenario {
	abc := [][2]string{{"a", "{}"}, {"b", "{}"}, {"c", "{}"}}
	return []scenario{
		// On a, two pods would go; on b one of middling priority; on c one of low priority.
		{"evict-fewest", abc, []step{
			{apply: classes + runs("a1", "low", "1", "a-0000") + runs("a2", "low", "1", "a-0000") + runs("a3", "mid", "2", "a-0000") +
				runs("b1", "mid", "2", "b-0000") + runs("b2", "mid", "2", "b-0000") +
				runs("c1", "low", "2", "c-0000") + runs("c2", "mid", "2", "c-0000"), check: left("a1", "a2", "a3", "b1", "b2", "c1", "c2")},
			{apply: asks("high", "high", "2"), want: map[string]string{"high": "c-0"}, check: left("high", "a1", "a2", "a3", "b1", "b2", "c2")},
			{do: eventOfVictim("c1", "high", "c-0000")},
		}},
		{"evict-many", [][2]string{{"a", "{}"}}, []step{
			{apply: classes + runs("v1", "low", "500m", "a-0000") + runs("v2", "low", "500m", "a-0000") + runs("v3", "mid", "1", "a-0000") +
				runs("v4", "low", "500m", "a-0000") + runs("v5", "low", "500m", "a-0000") + runs("v6", "low", "1", "a-0000")},
			{apply: asks("high", "high", "4"), want: map[string]string{"high": "a-0"}, check: left("high")},
		}},
		{"evict-budget", [][2]string{{"a", "{}"}, {"b", "{}"}}, []step{
			{apply: classes + `- {kind: PodDisruptionBudget, name: kept, spec: {minAvailable: 1, selector: {matchLabels: {app: kept}}}}
` + runs("kept", "low", "4", "a-0000", "labels: {app: kept}") + runs("b1", "low", "2", "b-0000") + runs("b2", "low", "2", "b-0000"),
				check: left("kept", "b1", "b2")},
			{apply: asks("high", "high", "4"), want: map[string]string{"high": "b-0"}, check: left("high", "kept")},
			// A budget is heeded as long as there is a choice.
			{apply: asks("second", "high", "4"), want: map[string]string{"second": "a-0"}, check: left("high", "second")},
		}},
		// The victim terminates slowly. Meanwhile no event makes the preemptor evict another pod, and no pod of lower
		// priority takes the rest of the node, or the capacity of the victim.
		{"evict-slowly", [][2]string{{"a", "{}"}, {"b", "{}"}}, []step{
			{apply: classes + clings("low", "low", "3", "a-0000") + runs("mid", "mid", "3", "b-0000"), check: left("low", "mid")},
			{apply: asks("high", "high", "3500m"), do: nominated("high", "a-0", "low")},
			{apply: asks("thief", "mid", "1", "nodeSelector: {kubernetes.io/hostname: SCENARIO-a-0000}"), want: map[string]string{"thief": "!Insufficient cpu"}},
			{apply: runs("passing", "low", "500m", "b-0000"), do: patch("Node", "evict-slowly-b-0000", `{"metadata":{"labels":{"any":"change"}}}`)},
			{remove: []string{"Pod/passing"}, do: nominated("high", "a-0", "low"), check: left("low", "mid")},
			{remove: []string{"Pod/low"}, want: map[string]string{"high": "a-0", "thief": "!Insufficient cpu"}, check: left("high", "mid")},
		}},
		// A pod of higher priority takes the capacity that another waits for; the other is placed when another node
		// has capacity.
		{"evict-overtaken", [][2]string{{"a", "{}"}, {"b", "{unschedulable: true}"}}, []step{
			{apply: classes + clings("low", "low", "3", "a-0000"), check: left("low")},
			{apply: asks("mid", "mid", "3"), do: nominated("mid", "a-0", "low")},
			{apply: asks("high", "high", "3")},
			{remove: []string{"Pod/low"}, want: map[string]string{"high": "a-0", "mid": "!Insufficient cpu"}, check: left("high")},
			{do: patch("Node", "evict-overtaken-b-0000", `{"spec":{"unschedulable":null}}`), want: map[string]string{"mid": "b-0"}, check: left("high", "mid")},
		}},
		{"evict-nobody", [][2]string{{"a", "{}"}}, []step{
			{apply: classes + runs("low", "low", "3", "a-0000"), check: left("low")},
			{apply: asks("polite", "polite", "3") + asks("spares", "high", "3", "schedulerName: spares-all") + asks("equal", "low", "3") +
				asks("huge", "high", "5"),
				want: map[string]string{"polite": "!preemptionPolicy=Never", "spares": "!Insufficient cpu", "equal": "!No preemption victims found",
					"huge": "!Insufficient cpu"}, check: left("low")},
		}},
		{"evict-limited", abc, []step{
			{apply: classes + runs("a1", "low", "3", "a-0000") + runs("b1", "low", "3", "b-0000") + runs("c1", "low", "3", "c-0000")},
			{apply: asks("high", "high", "3", "schedulerName: limited"), want: map[string]string{"high": "*"}, check: count(3)},
		}},
		{"evict-in-step", abc, []step{
			{apply: classes + runs("a1", "low", "3", "a-0000") + runs("b1", "mid", "3", "b-0000") + runs("c1", "mid", "3", "c-0000")},
			{apply: asks("high", "high", "3", "schedulerName: in-step"), want: map[string]string{"high": "a-0"}, check: left("high", "b1", "c1")},
		}},
	}
}

// count says how many pods must have a node.
func count(want int) func(map[string]string) string {
	return func(on map[string]string) string {
		have := 0
		for _, node := range on { // order: a sum
			if node != "" {
				have++
			}
		}
		if have != want {
			return fmt.Sprintf("%d pods have a node, want %d", have, want)
		}
		return ""
	}
}

// eventOfVictim waits for the event about a victim.
func eventOfVictim(victim, preemptor, node string) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		by, err := s.client.CoreV1().Pods(s.scenario).Get(ctx, preemptor, metav1.GetOptions{})
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		for waitABit(ctx) {
			list, err := s.client.EventsV1().Events(s.scenario).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for _, e := range list.Items {
				if e.Reason != "Preempted" || e.Regarding.Name != victim {
					continue
				}
				want := fmt.Sprintf("Preempted by pod %s on node %s-%s", by.UID, s.scenario, node)
				if e.Note != want || e.Action != "Preempting" || e.Type != "Normal" || e.ReportingController != "default-scheduler" || e.Related.UID != by.UID {
					return fmt.Errorf("the event about %s: %+v", victim, e)
				}
				return nil
			}
		}
		return fmt.Errorf("no event tells of pod %s: %w", victim, ctx.Err())
	}
}

// victimScenarios are about extenders that take part in the choice of victims.
func victimScenarios(x *extenders) []scenario {
	nodes := extended(3, "victims", "whole-victims", "victims-fail", "victims-fail-ignorable")
	full := classes + runs("v0", "low", "3", "a-0000") + runs("v1", "mid", "3", "a-0001") + runs("v2", "mid", "3", "a-0002")
	high := func(extender string) string {
		return via("high", extender, ", cpu: 3, spec: {priorityClassName: SCENARIO-high}")
	}
	asked := func(path string, whole bool) func(context.Context, *stage) error {
		return func(_ context.Context, s *stage) error {
			heard := x.about(path, s.scenario+"/high")
			if len(heard) == 0 {
				return fmt.Errorf("the extender was not asked")
			}
			if p := heard[0].preemption; whole != (len(p.NodeNameToVictims) == 3) || whole == (len(p.NodeNameToMetaVictims) == 3) {
				return fmt.Errorf("the extender was asked about %d whole victims and %d names", len(p.NodeNameToVictims), len(p.NodeNameToMetaVictims))
			}
			return nil
		}
	}
	return []scenario{
		{"extender-victims", nodes, []step{{apply: full, check: left("v0", "v1", "v2")},
			{apply: high("victims"), want: map[string]string{"high": "a-1"}, check: left("high", "v0", "v2")},
			{do: asked("/victims/preempt", false)}}},
		{"extender-whole-victims", nodes, []step{{apply: full, check: left("v0", "v1", "v2")},
			{apply: high("whole-victims"), want: map[string]string{"high": "a-2"}, check: left("high", "v0", "v1")},
			{do: asked("/whole-victims/preempt", true)}}},
		{"extender-victims-fail", nodes, []step{{apply: full, check: left("v0", "v1", "v2")},
			{apply: high("victims-fail"), want: map[string]string{"high": "!Insufficient cpu"}, check: left("v0", "v1", "v2")},
			{do: x.relent("high")},
			{do: patch("Node", "extender-victims-fail-a-0000", `{"metadata":{"labels":{"any":"change"}}}`), want: map[string]string{"high": "a-0"},
				check: left("high", "v1", "v2")}}},
		{"extender-victims-ignored", nodes, []step{{apply: full, check: left("v0", "v1", "v2")},
			{apply: high("victims-fail-ignorable"), want: map[string]string{"high": "a-0"}, check: left("high", "v1", "v2")}}},
	}
}
