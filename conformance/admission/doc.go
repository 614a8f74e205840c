// SPDX-License-Identifier: Apache-2.0

// Package admission owns the comparison of the local cluster's kubelet admission
// with upstream's own (pkg/kubelet/lifecycle, the predicate admit handler), over
// generated nodes, running pods and arriving pods: same verdict, same reason,
// same message. All of it is tests.
package admission
