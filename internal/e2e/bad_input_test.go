// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// badInputScenarios: invalid input that the API server accepts. The pod waits with a clear reason, and other pods are
// scheduled. Claims that are never allocated and expressions that fail have their scenarios among devices and
// volumes.
func badInputScenarios(x *extenders) []scenario {
	spread := func(name, when string, n int, more string) string {
		var out strings.Builder
		fmt.Fprintf(&out, "- {kind: Pod, name: %s, labels: {app: x}, spec: {topologySpreadConstraints: [", name)
		for i := range n {
			fmt.Fprintf(&out, "{maxSkew: 1, topologyKey: key%d, whenUnsatisfiable: %s, labelSelector: {matchLabels: {app: x}}}, ", i, when)
		}
		return out.String() + more + "]}}\n"
	}
	const wrong = "!1 node(s) didn't match PersistentVolume's node affinity"
	var labels []string
	for i := range 100 {
		labels = append(labels, fmt.Sprintf("key%d: v", i))
	}
	return []scenario{
		{"bad-extenders", extended(2, "hangs", "unknown-nodes", "unknown-whole-nodes", "garbage", "complains", "boasts", "rank-fails"), []step{
			{apply: via("hangs", "hangs", "") + via("unknown", "unknown-nodes", "") + via("whole", "unknown-whole-nodes", "") +
				via("garbage", "garbage", "") + via("complains", "complains", "") +
				via("boasts", "boasts", "") + via("rank-fails", "rank-fails", "") + "- {kind: Pod, name: others}",
				want: map[string]string{
					"hangs":     "!SchedulerError&Client.Timeout exceeded",
					"unknown":   `!SchedulerError&claims a filtered node "no-such-node" which is not found in the input node list`,
					"whole":     `!SchedulerError&claims a filtered node "no-such-node" which is not found in the input node list`,
					"garbage":   "!SchedulerError&invalid character",
					"complains": "!SchedulerError&the disk is on fire",
					// Ranks are wishes: what is wrong with them keeps no pod from its node.
					"boasts": "a-1", "rank-fails": "*", "others": "*",
				}},
			{do: func(ctx context.Context, s *stage) error {
				return until(ctx, func() string {
					list, err := s.client.EventsV1().Events(s.scenario).List(ctx, metav1.ListOptions{FieldSelector: "reason=FailedScheduling"})
					if err != nil {
						return err.Error()
					}
					for _, e := range list.Items {
						if e.Regarding.Name == "complains" && strings.Contains(e.Note, "the disk is on fire") {
							return ""
						}
					}
					return fmt.Sprintf("none of %d events says what an extender has against the pod", len(list.Items))
				})
			}},
			{apply: "- {kind: Pod, name: late}", want: map[string]string{"late": "*"}},
		}},
		// An extender binds to another node than requested, and another time it does not answer. The state of the API
		// server counts: capacity of the node in the API is taken, and that of the requested node is free.
		{"bad-binder", extended(2, "binder"), []step{
			{do: x.bindsWith},
			{apply: via("unanswered", "binder", ""), want: map[string]string{"unanswered": "!SchedulerError&Client.Timeout exceeded"}},
			{apply: via("astray", "binder", `, cpu: "3"`), want: map[string]string{"astray": "*"}, check: func(on map[string]string) string {
				if asked := x.about("/binder/bind", "bad-binder/astray"); len(asked) != 1 || strings.HasSuffix(asked[0].Node, strings.TrimPrefix(on["astray"], "a-")) {
					return fmt.Sprintf("astray is on %s, asked for was %v", on["astray"], asked)
				}
				return ""
			}},
			{apply: `[{kind: Pod, name: second, cpu: "3"}]`, want: map[string]string{"second": "*"}, check: apart("astray", "second")},
			{apply: `[{kind: Pod, name: third, cpu: "3"}]`, want: map[string]string{"third": "!2 Insufficient cpu"}},
			{remove: []string{"Pod/astray"}, want: map[string]string{"third": "*"}, check: apart("second", "third")},
			{do: x.relent("unanswered"), want: map[string]string{"unanswered": "*"}},
		}},
		{"bad-many-constraints", [][2]string{{"a", "{}"}, {"b", "{labels: {" + strings.Join(labels, ", ") + "}}"}}, []step{
			{apply: spread("hard", "DoNotSchedule", 100, "") + spread("soft", "ScheduleAnyway", 100, ""), want: map[string]string{"hard": "b-0", "soft": "*"}},
			{apply: spread("too-hard", "DoNotSchedule", 100, "{maxSkew: 1, topologyKey: key100, whenUnsatisfiable: DoNotSchedule}") + "- {kind: Pod, name: others}",
				want: map[string]string{"too-hard": "!2 node(s) didn't match pod topology spread constraints (missing required label)", "others": "*"}},
			{do: patch("Node", "bad-many-constraints-b-0000", `{"metadata":{"labels":{"key100":"v"}}}`), want: map[string]string{"too-hard": "b-0"}},
		}},
		{"bad-key", [][2]string{{"a", "{}"}}, []step{
			{apply: `
- {kind: Pod, name: spread, spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: nobody.has/this, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}]}}
- {kind: Pod, name: near, labels: {app: x}, spec: {affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: nobody.has/this, labelSelector: {matchLabels: {app: x}}}]}}}}
- {kind: Pod, name: away, spec: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: nobody.has/this, labelSelector: {matchLabels: {app: x}}}]}}}}
- {kind: Pod, name: wishes, spec: {affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: nobody.has/this, labelSelector: {}}}]}}, topologySpreadConstraints: [{maxSkew: 1, topologyKey: nobody.has/that, whenUnsatisfiable: ScheduleAnyway, labelSelector: {}}]}}`,
				want: map[string]string{"spread": "!didn't match pod topology spread constraints (missing required label)",
					"near": "!didn't match pod affinity rules", "away": "a-0", "wishes": "a-0"}},
			{do: patch("Node", "bad-key-a-0000", `{"metadata":{"labels":{"nobody.has/this":"after-all"}}}`), want: map[string]string{"spread": "a-0", "near": "!anti-affinity"}},
			{remove: []string{"Pod/away"}, want: map[string]string{"near": "a-0"}},
		}},
		{"bad-numbers", [][2]string{{"a", "{labels: {size: big}}"}, {"b", "{labels: {size: '5'}}"}}, []step{
			{apply: `
- {kind: Pod, name: required, spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: size, operator: Gt, values: [big]}]}]}}}}}
- {kind: Pod, name: preferred, spec: {affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: size, operator: Gt, values: [big]}]}}]}}}}
- {kind: Pod, name: huge, spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: size, operator: Lt, values: ['99999999999999999999']}]}]}}}}}
- {kind: Pod, name: or, spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: size, operator: Gt, values: [big]}]}, {matchExpressions: [{key: size, operator: Gt, values: ['1']}]}]}}}}}
- {kind: Pod, name: others}`,
				want: map[string]string{"required": "!Unschedulable&didn't match Pod's node affinity/selector", "huge": "!Unschedulable&didn't match Pod's node affinity/selector",
					"preferred": `!SchedulerError&[0].matchExpressions[0].values[0]: Invalid value: "big"&must be an integer`, "or": "b-0", "others": "*"}},
		}},
		// A value that no label can have. The API server takes it among preferences alone, for pods that fit one node.
		{"bad-selector", [][2]string{{"a", "{count: 2}"}}, []step{
			{apply: prefersNonsense("everywhere", "") + prefersNonsense("one-node", onHost("a-0001")) + "- {kind: Pod, name: others}",
				want: map[string]string{"everywhere": `!SchedulerError&[0].matchExpressions[0].values[0][size]: Invalid value: "not a label!"`, "one-node": "a-1", "others": "*"}},
		}},
		{"bad-claims", [][2]string{{"a", "{}"}}, []step{
			{apply: storageClass(noProvisioner, late, "") + wantsVolume("never", "SCENARIO", 1, "") + wantsVolume("no-class", "nobody-SCENARIO", 1, "") +
				mounts("p", "never", "") + mounts("q", "no-class", "") + mounts("gone", "nobody", "") + "- {kind: Pod, name: others}",
				want: map[string]string{"p": "!didn't find available persistent volumes to bind", "q": "!pod has unbound immediate PersistentVolumeClaims",
					"gone": `!persistentvolumeclaim "nobody" not found`, "others": "a-0"}},
			{apply: deviceClass("") + claimed("ResourceClaim", "impossible", `{name: r, exactly: {deviceClassName: SCENARIO, count: 1000000}}`) +
				claimed("ResourceClaim", "no-class", `{name: r, exactly: {deviceClassName: nobody-SCENARIO}}`) +
				claimed("ResourceClaim", "too-many", `{name: r, exactly: {deviceClassName: SCENARIO, count: 2}}`) +
				uses("d", byName, "impossible", "") + uses("e", byName, "no-class", "") + uses("f", byName, "too-many", "") + "- {kind: Pod, name: late}",
				want: map[string]string{"d": "!SchedulerError&claim bad-claims/impossible, request r: adding 1000000 devices exceeds the claim limit of 32",
					"e": "!Unschedulable&request r: device class nobody-bad-claims does not exist", "f": "!Unschedulable&cannot allocate all claims", "late": "a-0"}},
		}},
		// Volumes that no node can reach, each for another reason that the API server does not see.
		{"bad-volume-affinity", [][2]string{{"a", "{labels: {size: big}}"}}, []step{
			{apply: storageClass(noProvisioner, "Immediate", "") +
				affineVolume("numbers", "{key: size, operator: Gt, values: [seven]}") +
				affineVolume("contradicts", "{key: size, operator: Gt, values: ['7']}, {key: size, operator: DoesNotExist}") +
				affineVolume("nowhere", "{key: kubernetes.io/hostname, operator: In, values: [nobody]}"), do: allBoundTo("numbers", "contradicts", "nowhere")},
			{apply: mounts("p", "numbers", "") + mounts("q", "contradicts", "") + mounts("r", "nowhere", "") + "- {kind: Pod, name: others}",
				want: map[string]string{"p": wrong, "q": wrong, "r": wrong, "others": "a-0"}},
		}},
	}
}

func prefersNonsense(pod, more string) string {
	return "- {kind: Pod, name: " + pod + ", spec: {affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: " +
		"[{weight: 1, preference: {matchExpressions: [{key: size, operator: In, values: ['not a label!']}]}}]}}" + more + "}}\n"
}

// affineVolume is a volume and a claim that is meant for it.
func affineVolume(name, expressions string) string {
	return "- {kind: PersistentVolume, name: SCENARIO-" + name + ", spec: {storageClassName: SCENARIO, accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, local: {path: /x}, " +
		"nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [" + expressions + "]}]}}}}\n" +
		wantsVolume(name, "SCENARIO", 1, ", volumeName: SCENARIO-"+name)
}

func allBoundTo(claims ...string) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		for _, c := range claims {
			if _, err := s.phase(ctx, c, v1.ClaimBound); err != nil {
				return err
			}
		}
		return nil
	}
}
