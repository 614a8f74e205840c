// SPDX-License-Identifier: Apache-2.0

// Package pki owns the certificates, service account keys and kubeconfig files
// of a local cluster. Everything is made with the standard library and written
// with mode 0600 below one directory.
//
// Rejected: one certificate for all (no user would differ from another, so
// nothing could test what role system:kube-scheduler may do), and tokens in a
// file (the API server reads them only at start).
package pki
