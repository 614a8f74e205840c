// SPDX-License-Identifier: Apache-2.0

package plugin

// IntersectNodes returns the names in both of two sets like those of FilterPlan.Nodes: a nil set means all nodes.
func IntersectNodes(a, b map[string]struct{}) map[string]struct{} {
	if a == nil {
		return b
	}
	both := map[string]struct{}{}
	for name := range a { // order: builds a set
		if _, ok := b[name]; ok {
			both[name] = struct{}{}
		}
	}
	return both
}
