// SPDX-License-Identifier: Apache-2.0

// Package basic owns the default plugins that decide by the pod and one node alone (name, ports, taints, selectors and
// affinity of nodes, declared features, images), and those that do not look at nodes (scheduling gates, queue order).
package basic
