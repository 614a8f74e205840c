// SPDX-License-Identifier: Apache-2.0

// Package startup owns the proof that one configuration file, with the settings of kumiki in it, starts kube-scheduler
// 1.37.1 and kumiki alike: both become ready on a real API server and bind a pod of each profile.
package startup
