// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestEveryPluginOnARealAPIServer plays at least one scenario for each plugin and argument.
func TestEveryPluginOnARealAPIServer(t *testing.T) {
	var scenarios []scenario
	for _, more := range [][]scenario{nodeScenarios(), resourceScenarios(), spreadScenarios(), affinityScenarios(), volumeScenarios(), deviceScenarios(),
		searchScenarios(), goneScenarios()} {
		scenarios = append(scenarios, more...)
	}
	playAll(t, []string{configuration(profiles), configuration(profilesApart)}, scenarios)
}

// patch changes an object by a merge patch.
func patch(kind, name, body string, subresources ...string) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		api, err := s.api(kind)
		if err != nil {
			return err
		}
		_, err = api.Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, subresources...)
		if err != nil {
			return fmt.Errorf("patching %s %s: %w", kind, name, err)
		}
		return nil
	}
}

// configuration is that of a scheduler that plays alone, with short backoffs.
func configuration(profiles string) string {
	return `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 2
profiles:` + profiles
}

// profilesApart are those of a second scheduler, beside the first and without extenders: the resources that extenders
// manage take the place of ignoredResources.
const profilesApart = `
- schedulerName: ignoring
  pluginConfig:
  - name: NodeResourcesFit
    args: {ignoredResources: [example.com/ignored], ignoredResourceGroups: [ignored.example.com]}
`

// profiles are the profiles of the suite's scheduler: one for each set of arguments that a scenario needs.
const profiles = `
- schedulerName: default-scheduler
- schedulerName: added-affinity
  pluginConfig:
  - name: NodeAffinity
    args: {addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: tier, operator: In, values: [good]}]}]}}}
- schedulerName: most-allocated
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
- schedulerName: ratio
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: RequestedToCapacityRatio, resources: [{name: example.com/slot, weight: 5}],
      requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}}}
- schedulerName: balanced
  plugins: {score: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesBalancedAllocation}]}}
  pluginConfig:
  - name: NodeResourcesBalancedAllocation
    args: {resources: [{name: cpu, weight: 1}, {name: example.com/slot, weight: 1}]}
- schedulerName: real-scores
  plugins: {score: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesFit}]}}
  pluginConfig:
  - {name: Kumiki, args: {fitScoresReal: true}}
- schedulerName: untainted
  plugins: {multiPoint: {disabled: [{name: TaintToleration}]}}
- schedulerName: weighted
  plugins: {multiPoint: {enabled: [{name: NodeAffinity, weight: 100}]}}
- schedulerName: spread-list
  pluginConfig:
  - name: PodTopologySpread
    args: {defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}]}
- schedulerName: affinity-hard
  plugins: {score: {disabled: [{name: "*"}], enabled: [{name: InterPodAffinity}]}}
  pluginConfig:
  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 0}}
- schedulerName: affinity-only
  plugins: {score: {disabled: [{name: "*"}], enabled: [{name: InterPodAffinity}]}}
- schedulerName: affinity-ignoring
  plugins: {score: {disabled: [{name: "*"}], enabled: [{name: InterPodAffinity}, {name: NodeResourcesFit}]}}
  pluginConfig:
  - {name: InterPodAffinity, args: {ignorePreferredTermsOfExistingPods: true}}
- schedulerName: hurried
  pluginConfig:
  - {name: VolumeBinding, args: {bindTimeoutSeconds: 2}}
  - {name: DynamicResources, args: {filterTimeout: 5s, bindingTimeout: 2s}}
- schedulerName: impatient
  pluginConfig:
  - {name: DynamicResources, args: {filterTimeout: 1ns}}
- schedulerName: window
  percentageOfNodesToScore: 10
- schedulerName: subset
  pluginConfig:
  - {name: Kumiki, args: {strategy: randomSubset, subset: 2}}
- schedulerName: two-choices
  pluginConfig:
  - {name: Kumiki, args: {strategy: powerOfTwo}}
`

// nodeScenarios are about what nodes say of themselves, and about pods that name them.
func nodeScenarios() []scenario {
	two := [][2]string{{"a", "{count: 2}"}}
	return []scenario{
		{"gates", two, []step{
			{apply: `[{kind: Pod, name: gated, spec: {schedulingGates: [{name: example.com/wait}]}}, {kind: Pod, name: free}]`,
				want: map[string]string{"gated": "!SchedulingGated", "free": "*"}},
			{do: patch("Pod", "gated", `{"spec":{"schedulingGates":[]}}`), want: map[string]string{"gated": "*"}},
		}},
		// Both pods wait for a claim, and one event lets both be tried at once: a pod that was tried before would wait out a
		// backoff, which ends in steps of a second, earlier for one than for the other if other scenarios wake them.
		{"priority", [][2]string{{"a", "{claimable: [{driver: " + gpu + ", count: 1}]}"}}, []step{
			{apply: deviceClass("") + `
- {kind: PriorityClass, name: high-SCENARIO, value: 1000, preemptionPolicy: Never}
- {kind: Pod, name: low, cpu: "3", spec: {resourceClaims: [{name: c, resourceClaimName: later}]}}
- {kind: Pod, name: high, cpu: "3", spec: {priorityClassName: high-SCENARIO, resourceClaims: [{name: c, resourceClaimName: later}]}}
- {kind: Pod, name: observed-last}`,
				want: map[string]string{"observed-last": "a-0"}},
			{apply: claimed("ResourceClaim", "later", oneDevice), want: map[string]string{"high": "a-0", "low": "!Insufficient cpu"}},
		}},
		{"cordon", [][2]string{{"a", "{unschedulable: true}"}, {"b", "{}"}}, []step{
			{apply: `[{kind: Pod, name: p}, {kind: Pod, name: bears, spec: {tolerations: [{key: node.kubernetes.io/unschedulable, operator: Exists}], nodeSelector: {node.kubernetes.io/instance-type: cordon-a}}}]`,
				want: map[string]string{"p": "b-0", "bears": "a-0"}},
			{do: patch("Node", "cordon-b-0000", `{"spec":{"unschedulable":true}}`)},
			{apply: `[{kind: Pod, name: late}]`, want: map[string]string{"late": "!2 node(s) were unschedulable"}},
		}},
		{"taints", [][2]string{{"a", "{taints: [{key: k, value: v, effect: NoSchedule}]}"}, {"b", "{taints: [{key: soft, effect: PreferNoSchedule}]}"}, {"c", "{}"}}, []step{
			{apply: `
- {kind: Pod, name: plain}
- {kind: Pod, name: bears, spec: {tolerations: [{key: k, operator: Equal, value: v}], nodeSelector: {node.kubernetes.io/instance-type: taints-a}}}
- {kind: Pod, name: cannot, spec: {nodeSelector: {node.kubernetes.io/instance-type: taints-a}}}
- {kind: Pod, name: anyway, spec: {schedulerName: untainted, nodeSelector: {node.kubernetes.io/instance-type: taints-a}}}`,
				want: map[string]string{"plain": "c-0", "bears": "a-0", "cannot": "!had untolerated taint(s)", "anyway": "a-0"}},
			{do: patch("Node", "taints-a-0000", `{"spec":{"taints":null}}`), want: map[string]string{"cannot": "a-0"}},
		}},
		{"node-affinity", [][2]string{{"a", "{labels: {size: '1', tier: bad}}"}, {"b", "{labels: {size: '5', tier: good}}"}, {"c", "{labels: {size: '9', tier: bad}}"}}, []step{
			{apply: `
- {kind: Pod, name: required, spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: size, operator: Gt, values: ['5']}]}]}}}}}
- {kind: Pod, name: by-name, spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [SCENARIO-a-0000]}]}]}}}}}
- {kind: Pod, name: preferred, cpu: "1", spec: {affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: {matchExpressions: [{key: size, operator: In, values: ['1']}]}}]}}}}
- {kind: Pod, name: weighted, cpu: "1", spec: {schedulerName: weighted, affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: size, operator: In, values: ['1']}]}}]}}}}
- {kind: Pod, name: nowhere, spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: size, operator: Lt, values: ['1']}]}]}}}}}
- {kind: Pod, name: added, spec: {schedulerName: added-affinity}}`,
				want: map[string]string{"required": "c-0", "by-name": "a-0", "preferred": "a-0", "weighted": "a-0",
					"nowhere": "!didn't match Pod's node affinity/selector", "added": "b-0"}},
			{do: patch("Node", "node-affinity-b-0000", `{"metadata":{"labels":{"size":"0"}}}`), want: map[string]string{"nowhere": "b-0"}},
			{do: patch("Node", "node-affinity-b-0000", `{"metadata":{"labels":{"tier":"bad"}}}`)},
			{apply: `[{kind: Pod, name: added-late, spec: {schedulerName: added-affinity}}]`, want: map[string]string{"added-late": "!didn't match scheduler-enforced node affinity"}},
		}},
		{"ports", two, []step{
			{apply: `
- {kind: Pod, name: p1, spec: {containers: [{ports: [{containerPort: 80, hostPort: 8080}]}]}}
- {kind: Pod, name: p2, spec: {containers: [{ports: [{containerPort: 80, hostPort: 8080}]}]}}`,
				want:  map[string]string{"p1": "*", "p2": "*"},
				check: apart("p1", "p2")},
			{apply: `
- {kind: Pod, name: p3, spec: {containers: [{ports: [{containerPort: 80, hostPort: 8080}]}]}}
- {kind: Pod, name: other-protocol, spec: {containers: [{ports: [{containerPort: 80, hostPort: 8080, protocol: UDP}]}]}}`,
				want: map[string]string{"p3": "!2 node(s) didn't have free ports for the requested pod ports", "other-protocol": "*"}},
			{remove: []string{"Pod/p1"}, want: map[string]string{"p3": "*"}},
		}},
		{"images", [][2]string{{"a", "{count: 3}"}, {"b", "{images: [{names: ['registry.example/big:1'], sizeBytes: 100000000000000}]}"}}, []step{
			{apply: `[{kind: Pod, name: p, image: 'registry.example/big:1'}]`, want: map[string]string{"p": "b-0"}},
		}},
		{"declared-features", [][2]string{{"a", "{}"}, {"b", "{declaredFeatures: [RestartAllContainersOnContainerExits]}"}}, []step{
			{apply: `
- kind: Pod
  name: restarts
  spec: {containers: [{restartPolicy: Never, restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [3]}}]}]}
- kind: Pod
  name: cannot
  spec:
    nodeSelector: {node.kubernetes.io/instance-type: declared-features-a}
    containers: [{restartPolicy: Never, restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [3]}}]}]`,
				want: map[string]string{"restarts": "b-0", "cannot": "!feature"}},
		}},
	}
}

// apart wants two pods on different nodes.
func apart(a, b string) func(map[string]string) string {
	return func(on map[string]string) string {
		if on[a] == on[b] {
			return fmt.Sprintf("pods %s and %s are both on %q", a, b, on[a])
		}
		return ""
	}
}

// resourceScenarios are about how much a pod asks for.
func resourceScenarios() []scenario {
	return []scenario{
		{"resources", [][2]string{{"a", "{count: 2, capacity: {pods: '3'}, devices: {example.com/slot: 1}}"}}, []step{
			{apply: `
- {kind: Pod, name: big, cpu: "3"}
- {kind: Pod, name: slotted, requests: {example.com/slot: "1"}}`, want: map[string]string{"big": "*", "slotted": "*"}, check: apart("big", "slotted")},
			{apply: `
- {kind: Pod, name: bigger, cpu: "5"}
- {kind: Pod, name: two-slots, requests: {example.com/slot: "2"}}
- {kind: Pod, name: emptier, cpu: "1"}`,
				want: map[string]string{"bigger": "!2 Insufficient cpu", "two-slots": "!2 Insufficient example.com/slot", "emptier": "*"}, check: apart("emptier", "big")},
			{apply: `[{kind: Pod, name: f1}, {kind: Pod, name: f2}, {kind: Pod, name: f3}]`, want: map[string]string{"f1": "*", "f2": "*", "f3": "*"}},
			{apply: `[{kind: Pod, name: one-too-many}]`, want: map[string]string{"one-too-many": "!2 Too many pods"}},
			{remove: []string{"Pod/f1"}, want: map[string]string{"one-too-many": "*"}},
		}},
		{"strategies", [][2]string{{"a", "{count: 2, devices: {example.com/slot: 4}}"}}, []step{
			{apply: `[{kind: Pod, name: first, cpu: "2", requests: {example.com/slot: "2"}, spec: {nodeSelector: {kubernetes.io/hostname: SCENARIO-a-0001}}}]`,
				want: map[string]string{"first": "a-1"}},
			{apply: `[{kind: Pod, name: least, cpu: 100m}]`, want: map[string]string{"least": "a-0"}},
			{apply: `[{kind: Pod, name: most, cpu: 100m, spec: {schedulerName: most-allocated}}]`, want: map[string]string{"most": "a-1"}},
			{apply: `[{kind: Pod, name: ratio, requests: {example.com/slot: "1"}, spec: {schedulerName: ratio}}]`, want: map[string]string{"ratio": "a-1"}},
		}},
		{"ignored", [][2]string{{"a", "{}"}}, []step{
			{apply: `
- {kind: Pod, name: by-name, requests: {example.com/ignored: "1"}, spec: {schedulerName: ignoring}}
- {kind: Pod, name: by-group, requests: {ignored.example.com/x: "1"}, spec: {schedulerName: ignoring}}
- {kind: Pod, name: looked-at, requests: {example.com/other: "1"}, spec: {schedulerName: ignoring}}`,
				want: map[string]string{"by-name": "a-0", "by-group": "a-0", "looked-at": "!Insufficient example.com/other"}},
		}},
		{"balance", [][2]string{{"a", "{devices: {example.com/slot: 2}}"}, {"b", "{devices: {example.com/slot: 100}}"}}, []step{
			{apply: `[{kind: Pod, name: p, cpu: "2", requests: {example.com/slot: "1"}, spec: {schedulerName: balanced}}]`, want: map[string]string{"p": "a-0"}},
		}},
		// What silent pods are supposed to use fills a-0 with upstream's formula; by real requests it is the
		// emptier one.
		{"real-requests", [][2]string{{"a", "{}"}, {"b", "{}"}}, []step{
			{apply: `
- {kind: Pod, name: s1, spec: {nodeSelector: {kubernetes.io/hostname: SCENARIO-a-0000}}}
- {kind: Pod, name: s2, spec: {nodeSelector: {kubernetes.io/hostname: SCENARIO-a-0000}}}
- {kind: Pod, name: s3, spec: {nodeSelector: {kubernetes.io/hostname: SCENARIO-a-0000}}}
- {kind: Pod, name: s4, spec: {nodeSelector: {kubernetes.io/hostname: SCENARIO-a-0000}}}
- {kind: Pod, name: s5, spec: {nodeSelector: {kubernetes.io/hostname: SCENARIO-a-0000}}}
- {kind: Pod, name: loud, cpu: 200m, requests: {memory: 300Mi}, spec: {nodeSelector: {kubernetes.io/hostname: SCENARIO-b-0000}}}`,
				want: map[string]string{"s1": "a-0", "s2": "a-0", "s3": "a-0", "s4": "a-0", "s5": "a-0", "loud": "b-0"}},
			{apply: `[{kind: Pod, name: real, cpu: 100m, requests: {memory: 100Mi}, spec: {schedulerName: real-scores}}]`, want: map[string]string{"real": "a-0"}},
			{apply: `[{kind: Pod, name: upstream, cpu: 100m, requests: {memory: 100Mi}}]`, want: map[string]string{"upstream": "b-0"}},
		}},
	}
}
