// SPDX-License-Identifier: Apache-2.0

// Package up owns `kumiki up`: a cluster with fake nodes on this machine, kumiki as its scheduler in this process, a
// workload, and the report of what became of it. What it says of pods it learns as any user would, from the API server
// and from the scheduler's own endpoint.
package up
