// SPDX-License-Identifier: Apache-2.0

package nodematch

import v1 "k8s.io/api/core/v1"

// tolerates reports whether t covers taint. An empty effect covers all effects and an empty key all keys; with operator
// Equal the value must then still be the same (upstream: k8s.io/api/core/v1, Toleration.ToleratesTaint).
func tolerates(t *v1.Toleration, taint *v1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect {
		return false
	}
	if t.Key != taint.Key && t.Key != "" {
		return false
	}
	switch t.Operator {
	case "", v1.TolerationOpEqual:
		return t.Value == taint.Value
	case v1.TolerationOpExists:
		return true
	}
	return false
}

// Tolerated reports whether one of the tolerations tolerates the taint.
func Tolerated(tolerations []v1.Toleration, taint *v1.Taint) bool {
	for i := range tolerations {
		if tolerates(&tolerations[i], taint) {
			return true
		}
	}
	return false
}

// Repelled reports whether one of the taints keeps a pod with these tolerations off the node.
func Repelled(tolerations []v1.Toleration, taints []v1.Taint) bool {
	for i := range taints {
		t := &taints[i]
		repels := t.Effect == v1.TaintEffectNoSchedule || t.Effect == v1.TaintEffectNoExecute
		if repels && !Tolerated(tolerations, t) {
			return true
		}
	}
	return false
}
