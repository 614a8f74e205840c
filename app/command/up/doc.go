// SPDX-License-Identifier: Apache-2.0

// Package up owns `kumiki up`: a cluster with fake nodes on this machine, kumiki as its scheduler in this process, a
// workload, and a report on it. Like any user, it reads the state of pods from the API server and from the
// scheduler's own endpoint.
package up
