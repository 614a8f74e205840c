// SPDX-License-Identifier: Apache-2.0

package e2e

// autoscalerScenarios are about what cluster-autoscaler and Karpenter read from a pod: the reason and the message of
// its condition PodScheduled, and its nominated node. They create nodes for pods whose reason is Unschedulable, ignore
// those with another reason, and count the capacity of a nominated node as used.
func autoscalerScenarios() []scenario {
	member := func(name, scheduler string) string {
		return "- {kind: Pod, name: " + name + ", cpu: 3, annotations: {pod_group: train, pod_group_size: '2'}, " +
			"spec: {schedulerName: " + scheduler + "}}\n"
	}
	both := map[string]string{"m1": "*", "m2": "*"}
	return []scenario{
		{"scale-up-pods", [][2]string{{"a", "{}"}}, []step{
			{apply: classes + clings("low", "low", "3", "a-0000"), check: left("low")},
			{apply: asks("large", "low", "5") + asks("gated", "low", "1", "schedulingGates: [{name: example.com/wait}]"),
				want: map[string]string{"large": "!Unschedulable: 0/&nodes are available: &Insufficient cpu",
					"gated": "!SchedulingGated: "}},
			// The pod waits for its victim: it has the reason and a nominated node.
			{apply: asks("high", "high", "3"), do: nominated("high", "a-0", "low")},
			{do: nominated("high", "a-0", "low"), want: map[string]string{"high": "!Unschedulable: 0/&Insufficient cpu"}},
			{remove: []string{"Pod/low"}, want: map[string]string{"high": "a-0"}},
		}},
		// More nodes do not help a gang of which pods are missing. Each pod of a complete gang that does not fit has the
		// reason, also the one for which there is capacity: an autoscaler counts the nodes for all.
		{"scale-up-gangs", [][2]string{{"a", "{}"}, {"b", "{unschedulable: true}"}}, []step{
			{apply: member("m1", "default-scheduler"),
				want: map[string]string{"m1": "!SchedulingGated: gang scale-up-gangs/train needs 2 pods, 1 are there"}},
			{apply: member("m2", "default-scheduler"), want: map[string]string{
				"m1": "!Unschedulable: gang scale-up-gangs/train cannot fit even on an empty cluster",
				"m2": "!Unschedulable: gang scale-up-gangs/train cannot fit even on an empty cluster"}},
			{do: patch("Node", "scale-up-gangs-b-0000", `{"spec":{"unschedulable":null}}`), want: both},
		}},
		// With gangs.scaleUp, the gang requests nodes for a time only. It starts when there is capacity.
		{"scale-up-ends", [][2]string{{"a", "{}"}, {"b", "{unschedulable: true}"}}, []step{
			{apply: member("m1", "scales-up-shortly") + member("m2", "scales-up-shortly"), want: map[string]string{
				"m1": "!SchedulingGated: gang scale-up-ends/train cannot fit even on an empty cluster&no nodes are requested",
				"m2": "!SchedulingGated: gang scale-up-ends/train cannot fit even on an empty cluster&no nodes are requested"}},
			{do: patch("Node", "scale-up-ends-b-0000", `{"spec":{"unschedulable":null}}`), want: both},
		}},
	}
}
