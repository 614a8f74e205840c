// SPDX-License-Identifier: Apache-2.0

// Package randomscheduler owns the test that runs the plugin of examples/randomscheduler in kumiki and in
// kube-scheduler on one local cluster, and compares its draws with equal shares. It is part of make plugins (build tag
// plugins).
package randomscheduler
