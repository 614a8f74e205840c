// SPDX-License-Identifier: Apache-2.0

// Package kubetest owns the fake API server of the tests of kube and its packages, and their initial objects.
package kubetest
