// SPDX-License-Identifier: Apache-2.0

// Package thirdparty owns the test that runs plugins of another project, sigs.k8s.io/scheduler-plugins, in kumiki and
// in kube-scheduler on one local cluster: the same source, the same configuration, the same pods.
package thirdparty
