// SPDX-License-Identifier: Apache-2.0

// Package checker owns the judgement of a cluster from outside: it reads the API server and nothing else, and
// shares no code with the scheduler that it judges. Sums are exact: quantities are turned into big integers of
// billionths, so that an overflow on our side cannot hide one on the other.
//
// It checks that no node holds more than it offers, in any resource and in number of pods; that a pod's node is set
// once and never changes; that no pod was failed by a kubelet because it did not fit.
package checker
