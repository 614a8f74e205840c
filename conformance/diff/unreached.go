// SPDX-License-Identifier: Apache-2.0

package diff

import "strings"

// Cannot is a group of cells that coverage does not ask for.
type Cannot struct {
	// Plugin; Field and Verdict may end in *, and several are parted by |.
	Plugin, Field, Verdict string
	Why                    string
}

// Unreached is the whole list.
var Unreached = []Cannot{
	{"TaintToleration", "everything", "unresolvable|scores differ", "a toleration of everything leaves no taint to reject or to rank by"},

	{"NodeAffinity", "nodeSelector|required*", "score fails", "only preferred terms are read by the score"},
	{"NodeAffinity", "preferred*", "skips score", "a pod with preferred terms is scored"},
	{"NodeAffinity", "nodeSelector|required In|required NotIn|required Exists|required DoesNotExist|required Gt|required Lt|required malformed|preferred*|args*",
		"rejects pod", "only matchFields that leave no name reject a pod before its nodes"},

	{"NodeResourcesFit", "resource of a device class", "scores equal", "nodes differ in the devices that they have free"},

	{"VolumeRestrictions", "claim missing", "unschedulable|passes", "a missing claim rejects the pod before its nodes"},
	{"VolumeRestrictions", "GCE*|AWS*|ISCSI|RBD", "rejects pod", "only a claim that is missing rejects the pod before its nodes"},
	{"VolumeRestrictions", "ReadWriteOncePod", "rejects pod", "the same"},
	{"NodeVolumeLimits", "*", "fails", "only a claim that another pod of the node has and does not own fails; what the pending pod has does not matter"},
	{"VolumeBinding", "claim missing|claim lost|claim going away", "unresolvable|fails|passes", "such a claim rejects the pod before its nodes"},
	{"VolumeBinding", "claim bound|volume with*|in-tree volume|selected node|class with capacities|class with topologies|class without provisioner|selector|volume mode|ephemeral volume",
		"fails", "a missing class, a missing volume or an illegal selector fails, which these need not come with"},
	{"VolumeBinding", "class that waits|class without provisioner|class with*", "rejects pod", "a claim that may wait does not; only a second claim decides"},
	{"VolumeBinding", "volume promised", "fails", "the same as for a claim that binds at once"},
	{"VolumeBinding", "class that waits", "fails", "a class that is there does not fail"},
	{"VolumeBinding", "volume with illegal affinity", "rejects pod", "only a second claim rejects the pod before its nodes"},
	{"VolumeBinding", "volume with illegal affinity", "passes", "an affinity that cannot be read holds the pod off every node"},
	{"VolumeBinding", "volume promised", "unresolvable|passes", "a claim with a volume that it is not bound to counts as one that binds at once"},
	{"VolumeBinding", "class that binds at once", "unresolvable|passes", "such a claim rejects the pod before its nodes; only a second claim of another kind decides"},
	{"VolumeBinding", "class missing", "unresolvable|fails|passes", "a missing class rejects the pod before its nodes, unless another plugin does"},
	{"VolumeZone", "claim missing", "*", "VolumeRestrictions and VolumeBinding come first"},
	{"VolumeZone", "zone label|beta zone label|region label|several zones|class that waits", "rejects pod",
		"a volume or class that is missing rejects the pod, where VolumeBinding has not done so before"},
	{"VolumeZone", "class that waits", "unresolvable", "a claim without a volume says nothing of zones; only a second claim decides"},

	{"PodTopologySpread", "ScheduleAnyway|both|selector that does not convert|100 constraints", "skips score", "a pod with a soft constraint is scored"},
	{"PodTopologySpread", "key that nobody has", "scores differ|skips score", "nodes without the key are not scored, or the pod is not scored for this constraint"},
	{"PodTopologySpread", "selector that does not convert", "scores*", "the cycle fails before, unless the filter is off"},
	{"PodTopologySpread", "selector that does not convert", "unschedulable|unresolvable|passes", "the same"},
	{"PodTopologySpread", "no selector", "unschedulable", "a constraint that counts nobody is never violated; only a second one decides"},
	{"PodTopologySpread", "key that nobody has", "unschedulable", "nodes without the key are unresolvable; only a second constraint decides"},
	{"PodTopologySpread", "100 constraints", "*", "selectors that do not convert are among so many draws, and keys that few nodes have"},
	{"PodTopologySpread", "system defaults", "fails|unschedulable|unresolvable", "they are preferences"},
	{"PodTopologySpread", "list of defaults", "fails", "their selectors are those of services and controllers"},

	{"InterPodAffinity", "selector that does not convert", "unschedulable|unresolvable|passes|scores*|skips score", "it rejects the pod before its nodes, unless the filter is off"},
	{"InterPodAffinity", "no topology key", "scores equal", "a term without a key adds nothing; only a second term is scored"},
	{"InterPodAffinity", "pods with*|terminating pods|args*", "rejects pod", "only a term of the pod itself that does not convert rejects it"},

	{"DynamicResources", "claim missing|claim going away", "rejects pod|fails|unresolvable|passes|scores differ", "the pod waits at its gate"},
	{"DynamicResources", "claim of a template|claim allocated|claim in full use|several requests|one device|several devices|all devices|unknown mode|selectors|admin access|tolerations|capacity|class*|constraint|extended resource",
		"scores differ", "only prioritized lists are scored"},
	{"DynamicResources", "claim in full use|several requests|one device|several devices|all devices|unknown mode|selectors|admin access|tolerations|capacity|class*|prioritized list|constraint|extended resource",
		"gates", "a claim that is missing or goes away holds the pod, not what a claim asks for"},
	{"DynamicResources", "claim allocated", "gates", "the same"},
	{"DynamicResources", "claim in full use", "rejects pod|fails", "such a claim is in use on its node"},
	{"DynamicResources", "unknown mode", "unresolvable|passes", "the allocator fails on it"},
	{"DynamicResources", "class with a broken selector", "passes", "its selector fails on every device"},
	{"DynamicResources", "class with a broken selector", "unresolvable|rejects pod", "where it does not fail, another claim decides"},
	{"DynamicResources", "unknown mode|claim allocated", "rejects pod", "only another claim that cannot be had rejects the pod"},
	{"DynamicResources", "class missing", "fails|unresolvable|passes", "it rejects the pod before its nodes"},
	{"DynamicResources", "extended resource", "rejects pod|fails", "a node that cannot have it is unresolvable"},
	{"DynamicResources", "claim allocated", "fails", "only a selector of an allocation that cannot be read fails"},
}

// why is the reason why a cell is not asked for.
func why(c cell) (reason string, cannot bool) {
	for _, u := range Unreached {
		if u.Plugin == c.plugin && matches(u.Field, c.field) && matches(u.Verdict, c.verdict) {
			return u.Why, true
		}
	}
	return "", false
}

func matches(pattern, s string) bool {
	for p := range strings.SplitSeq(pattern, "|") {
		if p == "*" {
			return true
		}
		if head, any := strings.CutSuffix(p, "*"); p == s || any && strings.HasPrefix(s, head) {
			return true
		}
	}
	return false
}
