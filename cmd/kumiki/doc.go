// SPDX-License-Identifier: Apache-2.0

// Command kumiki owns the entry of the process; package app/command is the command line. Started under the name
// kube-scheduler it is the scheduler with kube-scheduler's flags; as kubectl-kumiki it is a plugin of kubectl.
package main
