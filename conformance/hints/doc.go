// SPDX-License-Identifier: Apache-2.0

// Package hints owns the question what becomes of a waiting pod when something happens, put to the queueing hints
// of one upstream plugin and to those of the native one, in words that can be compared.
package hints
