// SPDX-License-Identifier: Apache-2.0

// Package command owns the command line: the scheduler itself, the local cluster with a demo workload, and the
// queries to a running scheduler. A program with custom plugins calls Main with them, and has all commands; see
// examples/plugin. Started under the name kube-scheduler it is the scheduler with kube-scheduler's flags; as
// kubectl-kumiki it is a plugin of kubectl.
package command
