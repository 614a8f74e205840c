// SPDX-License-Identifier: Apache-2.0

// Package ask owns the connection of the command line to the running scheduler: the lease names the holder's https
// endpoint and the certificate to verify it with, and the requests of view's API go there with the credentials of the
// user's kubeconfig: directly if the address can be reached, else through a port that the API server forwards from the
// scheduler's pod. A scheduler without a lease is found by its pod.
//
// Rejected: the service proxy and the pod proxy of the API server. They drop the user's credentials, so that the
// scheduler could not authorize the user. Rejected: an aggregated API. It keeps the credentials, but an API server that
// cannot reach it fails discovery, and the scheduler of kubeadm listens on loopback. Rejected: an object by which a
// scheduler without leader election announces itself. The role system:kube-scheduler allows writing none.
//
// A writer of the lease can redirect a user's bearer token. In a cluster the writers are the scheduler itself and the
// administrators of kube-system, who can read any token anyway; client certificates never leave the user's machine.
package ask
