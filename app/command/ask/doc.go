// SPDX-License-Identifier: Apache-2.0

// Package ask owns the connection of the command line to the running scheduler: the lease names the holder's https
// endpoint and the certificate to verify it with, and the requests of view's API go there with the credentials of the
// user's kubeconfig.
//
// A writer of the lease can redirect a user's bearer token. In a cluster the writers are the scheduler itself and the
// administrators of kube-system, who can read any token anyway; client certificates never leave the user's machine.
package ask
