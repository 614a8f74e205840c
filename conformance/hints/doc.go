// SPDX-License-Identifier: Apache-2.0

// Package hints owns the comparison of queueing hints: the effect of an event on a waiting pod, by one upstream
// plugin and by the native one, in comparable terms.
package hints
