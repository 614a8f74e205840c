// SPDX-License-Identifier: Apache-2.0

// Package profile owns the test that `kumiki profile` works on an unmodified kube-scheduler: the recorded cycles are
// compared with the number of pods, and with what kube-scheduler measures itself.
package profile
