// SPDX-License-Identifier: Apache-2.0

// Package restart owns measurements of schedulers in a cluster full of bound pods: the time and cost of a start until
// the scheduler knows the cluster and binds the next pod, and the cost of node changes while pods wait. The cluster
// is a local one, or a simulated API server inside this program, which is filled in seconds.
package restart
