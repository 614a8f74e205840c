// SPDX-License-Identifier: Apache-2.0

// Package devices owns the comparison of DynamicResources with upstream's, alone and beside the plugins that leave
// extended resources to it: what keeps a pod back, verdicts on each node, scores, which devices are reserved, what
// is written for them, what is freed when nothing fits, and hints. In a whole scheduling cycle other plugins often
// have the first word; here each is asked alone, about classes, slices and claims in every state.
package devices
