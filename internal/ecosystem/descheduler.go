// SPDX-License-Identifier: Apache-2.0

package ecosystem

// Descheduler is sigs.k8s.io/descheduler. It has no Args: tests and readers run its program once for each round, with a
// policy and without an interval.
var Descheduler = Component{
	Name: "descheduler", Package: "sigs.k8s.io/descheduler/cmd/descheduler", Module: "sigs.k8s.io/descheduler",
	Manifests: []string{"kubernetes/base/rbac.yaml"},
	Namespace: "kube-system", ServiceAccount: "descheduler-sa",
}
