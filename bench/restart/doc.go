// SPDX-License-Identifier: Apache-2.0

// Package restart owns measurements of schedulers in a cluster full of bound pods: how long a start takes until the
// scheduler knows the cluster and binds the next pod, at what cost, and what it costs that nodes change while pods
// wait. The cluster is a local one, or a stand-in for the API server inside this program, which is filled in seconds.
package restart
