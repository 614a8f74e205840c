// SPDX-License-Identifier: Apache-2.0

// Package ask owns the way from the command line to the running scheduler: the lease names the holder's https
// endpoint and the certificate to check it against, and the questions of view's API go there with the credentials of
// the user's kubeconfig.
//
// Whoever may write the lease can send a user's bearer token elsewhere. In a cluster that is the scheduler itself and
// the administrators of kube-system, who can read any token anyway; client certificates never leave the user's
// machine.
package ask
