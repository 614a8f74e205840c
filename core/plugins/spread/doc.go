// SPDX-License-Identifier: Apache-2.0

// Package spread owns PodTopologySpread: pods that match a selector are spread over the values of a node label.
package spread
