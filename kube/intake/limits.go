// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"slices"
	"strconv"
	"strings"
	"unique"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// limitsOf is what a pod may use at most, as text that all pods with the same limits share.
func limitsOf(p *v1.Pod) unique.Handle[string] {
	limits := resourcehelper.PodLimits(p, resourcehelper.PodResourcesOptions{})
	if len(limits) == 0 {
		return unique.Handle[string]{}
	}
	parts := make([]string, 0, len(limits))
	for name, q := range limits { // order: sorted below
		parts = append(parts, string(name)+"="+strconv.FormatFloat(q.AsApproximateFloat64(), 'g', -1, 64))
	}
	slices.Sort(parts)
	return unique.Make(strings.Join(parts, ","))
}
