// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// repeated is a list of n pods with the same text, in which %d is the number.
func repeated(n int, text string) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintln(&out, "- "+strings.ReplaceAll(text, "%d", fmt.Sprint(i)))
	}
	return out.String()
}

// counts wants so many pods on each node, in the order of the nodes' names; pods whose names begin otherwise do not
// count.
func counts(prefix string, want ...int) func(map[string]string) string {
	return func(on map[string]string) string {
		pods := map[string]int{} // node -> pods
		for name, node := range on {
			if strings.HasPrefix(name, prefix) {
				pods[node]++
			}
		}
		var got []int
		for _, node := range slices.Sorted(maps.Keys(pods)) {
			got = append(got, pods[node])
		}
		if !slices.Equal(got, want) {
			return fmt.Sprintf("pods by node %v, want %v", pods, want)
		}
		return ""
	}
}

// zoned are two zones: a-0 and a-2 in z0, a-1 in z1.
var zoned = [][2]string{{"a", "{count: 3, zones: [z0, z1]}"}}

func spreadScenarios() []scenario {
	const byZone = `topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: x}}`
	const byHost = `topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: x}}`
	return []scenario{
		{"spread-hard", zoned, []step{
			{apply: `[{kind: Pod, name: p0, labels: {app: x}, spec: {nodeSelector: {kubernetes.io/hostname: SCENARIO-a-0001}}}]`, want: map[string]string{"p0": "a-1"}},
			{apply: `
- {kind: Pod, name: p1, labels: {app: x}, spec: {topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: DoNotSchedule, ` + byZone + `}]}}`,
				want: map[string]string{"p1": "a-0|a-2"}},
			{apply: `
- {kind: Pod, name: p3, labels: {app: x}, spec: {nodeSelector: {topology.kubernetes.io/zone: z1}, topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: DoNotSchedule, nodeAffinityPolicy: Ignore, ` + byZone + `}]}}
- {kind: Pod, name: p4, labels: {app: x}, spec: {nodeSelector: {topology.kubernetes.io/zone: z1}, topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: DoNotSchedule, nodeAffinityPolicy: Honor, ` + byZone + `}]}}`,
				want: map[string]string{"p3": "!didn't match pod topology spread constraints", "p4": "a-1"}},
			{remove: []string{"Pod/p0", "Pod/p4"}, want: map[string]string{"p3": "a-1"}},
		}},
		{"spread-domains", zoned, []step{
			// Two zones where three are wanted count as one with no pods at all.
			{apply: repeated(2, `{kind: Pod, name: p%d, labels: {app: x}, spec: {topologySpreadConstraints: [{maxSkew: 1, minDomains: 3, whenUnsatisfiable: DoNotSchedule, `+byZone+`}]}}`),
				want: map[string]string{"p0": "*", "p1": "*"}},
			{apply: `[{kind: Pod, name: third, labels: {app: x}, spec: {topologySpreadConstraints: [{maxSkew: 1, minDomains: 3, whenUnsatisfiable: DoNotSchedule, ` + byZone + `}]}}]`,
				want: map[string]string{"third": "!didn't match pod topology spread constraints"}},
		}},
		{"spread-taints", [][2]string{{"a", "{count: 2, zones: [z0, z1]}"}, {"b", "{zones: [z2], taints: [{key: k, effect: NoSchedule}]}"}}, []step{
			{apply: repeated(2, `{kind: Pod, name: p%d, labels: {app: x}, spec: {topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: DoNotSchedule, `+byZone+`}]}}`),
				want: map[string]string{"p0": "*", "p1": "*"}, check: counts("p", 1, 1)},
			{apply: `
- {kind: Pod, name: honors, labels: {app: x}, spec: {topologySpreadConstraints: [{maxSkew: 1, nodeTaintsPolicy: Honor, whenUnsatisfiable: DoNotSchedule, ` + byZone + `}]}}
- {kind: Pod, name: ignores, labels: {app: x}, spec: {topologySpreadConstraints: [{maxSkew: 1, nodeTaintsPolicy: Ignore, whenUnsatisfiable: DoNotSchedule, ` + byZone + `}]}}`,
				want: map[string]string{"honors": "*", "ignores": "!didn't match pod topology spread constraints"}},
		}},
		{"spread-soft", zoned, []step{
			{apply: `[{kind: Pod, name: p, labels: {app: x}, spec: {nodeSelector: {kubernetes.io/hostname: SCENARIO-a-0001}}}]`, want: map[string]string{"p": "a-1"}},
			{apply: `[{kind: Pod, name: q, labels: {app: x}, spec: {topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, ` + byZone + `}]}}]`,
				want: map[string]string{"q": "a-0|a-2"}},
		}},
		{"spread-label-keys", [][2]string{{"a", "{count: 2}"}}, []step{
			{apply: repeated(2, `{kind: Pod, name: old%d, labels: {app: x, version: "1"}, spec: {nodeSelector: {kubernetes.io/hostname: SCENARIO-a-0000}}}`),
				want: map[string]string{"old0": "a-0", "old1": "a-0"}},
			{apply: repeated(2, `{kind: Pod, name: new%d, labels: {app: x, version: "2"}, spec: {topologySpreadConstraints: [{maxSkew: 1, matchLabelKeys: [version], whenUnsatisfiable: DoNotSchedule, `+byHost+`}]}}`),
				want: map[string]string{"new0": "*", "new1": "*"}, check: counts("new", 1, 1)},
		}},
		{"spread-by-list", zoned, []step{
			{apply: `[{kind: Service, name: s, spec: {selector: {app: x}, ports: [{port: 80}]}}]`},
			{apply: repeated(4, `{kind: Pod, name: p%d, labels: {app: x}, spec: {schedulerName: spread-list}}`),
				want: map[string]string{"p0": "*", "p1": "*", "p2": "*", "p3": "*"},
				check: func(on map[string]string) string {
					if got := strings.Count(strings.Join(slices.Collect(maps.Values(on)), " "), "a-1"); got != 2 {
						return fmt.Sprintf("%d of 4 pods in zone z1, want 2: %v", got, on)
					}
					return ""
				}},
		}},
		// The pods of each owner are spread although they have no constraints: nodes without them rank higher.
		{"spread-by-system", [][2]string{{"a", "{count: 3}"}}, []step{
			{apply: `[{kind: ReplicaSet, name: r, spec: {replicas: 3, selector: {matchLabels: {app: r}}, template: ` + template("r") + `}}]`,
				check: counts("r-", 1, 1, 1)},
			{apply: `[{kind: StatefulSet, name: t, spec: {replicas: 3, podManagementPolicy: Parallel, serviceName: t, selector: {matchLabels: {app: t}}, template: ` + template("t") + `}}]`,
				check: counts("t-", 1, 1, 1)},
			{apply: `[{kind: ReplicationController, name: c, spec: {replicas: 3, selector: {app: c}, template: ` + template("c") + `}}]`,
				check: counts("c-", 1, 1, 1)},
		}},
	}
}

// template is a pod template for owners.
func template(app string) string {
	return `{metadata: {labels: {app: ` + app + `}}, spec: {nodeSelector: {scenario: SCENARIO}, automountServiceAccountToken: false, terminationGracePeriodSeconds: 0, containers: [{name: c, image: "registry.example/app:1"}]}}`
}

func affinityScenarios() []scenario {
	const host, zone = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
	term := func(key, app, more string) string {
		return `{topologyKey: ` + key + `, labelSelector: {matchLabels: {app: ` + app + `}}` + more + `}`
	}
	required := func(kind, term string) string {
		return kind + `: {requiredDuringSchedulingIgnoredDuringExecution: [` + term + `]}`
	}
	preferred := func(kind, term string) string {
		return kind + `: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, podAffinityTerm: ` + term + `}]}`
	}
	with := func(name, app, affinity string) string {
		return `- {kind: Pod, name: ` + name + `, labels: {app: ` + app + `}, spec: {affinity: {` + affinity + `}}}` + "\n"
	}
	by := func(name, scheduler, app, affinity string) string {
		return `- {kind: Pod, name: ` + name + `, labels: {app: ` + app + `}, spec: {schedulerName: ` + scheduler + `, affinity: {` + affinity + `}}}` + "\n"
	}
	at := func(name, node, app, affinity string) string {
		return `- {kind: Pod, name: ` + name + `, labels: {app: ` + app + `}, spec: {nodeSelector: {kubernetes.io/hostname: SCENARIO-` + node + `}, affinity: {` + affinity + `}}}` + "\n"
	}
	return []scenario{
		{"affinity", zoned, []step{
			{apply: at("db", "a-0001", "db", ""), want: map[string]string{"db": "a-1"}},
			{apply: with("beside", "web", required("podAffinity", term(zone, "db", ""))) +
				with("away", "web", required("podAntiAffinity", term(zone, "db", ""))) +
				with("alone", "none", required("podAffinity", term(zone, "nobody", ""))),
				want: map[string]string{"beside": "a-1", "away": "a-0|a-2", "alone": "!didn't match pod affinity rules"}},
			// The first of a group that wants to be together may go anywhere.
			{apply: with("group", "group", required("podAffinity", term(zone, "group", ""))), want: map[string]string{"group": "*"}},
			{apply: at("somebody", "a-0002", "nobody", ""), want: map[string]string{"alone": "a-0|a-2"}},
		}},
		{"anti-affinity", [][2]string{{"a", "{count: 2}"}}, []step{
			{apply: with("p1", "x", required("podAntiAffinity", term(host, "x", ""))) + with("p2", "x", required("podAntiAffinity", term(host, "x", ""))),
				want: map[string]string{"p1": "*", "p2": "*"}, check: apart("p1", "p2")},
			{apply: with("p3", "x", required("podAntiAffinity", term(host, "x", ""))) + with("plain", "x", ""),
				want: map[string]string{"p3": "!didn't match pod anti-affinity rules", "plain": "!didn't satisfy existing pods anti-affinity rules"}},
			{remove: []string{"Pod/p1", "Pod/p3"}, want: map[string]string{"plain": "*"}, check: apart("plain", "p2")},
		}},
		{"affinity-namespaces", [][2]string{{"a", "{count: 2}"}}, []step{
			{apply: `[{kind: Namespace, name: SCENARIO-other, labels: {team: other-SCENARIO}}]`, do: otherPod("affinity-namespaces-a-0001")},
			{apply: with("named", "x", required("podAffinity", term(host, "foreign", ", namespaces: [SCENARIO-other]"))) +
				with("selected", "x", required("podAffinity", term(host, "foreign", ", namespaceSelector: {matchLabels: {team: other-SCENARIO}}"))) +
				with("own", "x", required("podAffinity", term(host, "foreign", ""))) +
				with("unselected", "x", required("podAffinity", term(host, "foreign", ", namespaceSelector: {matchLabels: {team: nobody}}"))),
				want: map[string]string{"named": "a-1", "selected": "a-1", "own": "!didn't match pod affinity rules", "unselected": "!didn't match pod affinity rules"}},
		}},
		{"affinity-label-keys", [][2]string{{"a", "{count: 2}"}}, []step{
			{apply: `
- {kind: Pod, name: old, labels: {app: x, version: "1"}, spec: {nodeSelector: {kubernetes.io/hostname: SCENARIO-a-0000}}}
- {kind: Pod, name: new, labels: {app: x, version: "2"}, spec: {nodeSelector: {kubernetes.io/hostname: SCENARIO-a-0001}}}`, want: map[string]string{"old": "a-0", "new": "a-1"}},
			{apply: `
- {kind: Pod, name: match, labels: {app: x, version: "2"}, spec: {affinity: {` + required("podAffinity", term(host, "x", ", matchLabelKeys: [version]")) + `}}}
- {kind: Pod, name: mismatch, labels: {app: "y", version: "2"}, spec: {affinity: {` + required("podAntiAffinity", term(host, "x", ", matchLabelKeys: [version]")) + `}}}
- {kind: Pod, name: unlike, labels: {app: "y", version: "2"}, spec: {affinity: {` + required("podAffinity", term(host, "x", ", mismatchLabelKeys: [version]")) + `}}}`,
				want: map[string]string{"match": "a-1", "mismatch": "a-0", "unlike": "a-0"}},
		}},
		{"affinity-preferred", [][2]string{{"a", "{count: 2}"}}, []step{
			{apply: at("db", "a-0001", "db", ""), want: map[string]string{"db": "a-1"}},
			{apply: by("near", "affinity-only", "web", preferred("podAffinity", term(host, "db", ""))), want: map[string]string{"near": "a-1"}},
			{apply: by("far", "affinity-only", "web", preferred("podAntiAffinity", term(host, "db", ""))), want: map[string]string{"far": "a-0"}},
		}},
		// What others prefer counts for a pod that says nothing, unless the profile ignores it.
		{"affinity-of-others", [][2]string{{"a", "{count: 2}"}}, []step{
			{apply: at("likes", "a-0001", "likes", preferred("podAffinity", term(host, "liked", ""))) +
				at("filler", "a-0001", "filler", ""), want: map[string]string{"likes": "a-1", "filler": "a-1"}},
			{apply: by("counted", "affinity-only", "liked", ""), want: map[string]string{"counted": "a-1"}},
			{apply: by("ignored", "affinity-ignoring", "liked", ""), want: map[string]string{"ignored": "a-0"}},
		}},
		// A required term of a pod that is there draws others, with the weight of the profile: 1 by default, 0 here.
		{"affinity-hard-weight", [][2]string{{"a", "{count: 2}"}}, []step{
			{apply: at("first", "a-0001", "pull", "") + at("pulls", "a-0001", "other", required("podAffinity", term(host, "pull", ""))),
				want: map[string]string{"first": "a-1", "pulls": "a-1"}},
			{apply: by("drawn", "affinity-only", "pull", ""), want: map[string]string{"drawn": "a-1"}},
			{apply: repeated(8, `{kind: Pod, name: free%d, labels: {app: pull}, spec: {schedulerName: affinity-hard}}`), check: func(on map[string]string) string {
				for name, node := range on {
					if strings.HasPrefix(name, "free") && node == "a-0" {
						return ""
					}
				}
				return fmt.Sprintf("no pod is on a-0: %v", on)
			}},
		}},
	}
}
