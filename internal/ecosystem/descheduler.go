// SPDX-License-Identifier: Apache-2.0

package ecosystem

// Descheduler is sigs.k8s.io/descheduler. A test or a reader runs its program once for each round, with a policy and
// without an interval; it serves nothing then.
var Descheduler = Component{
	Name: "descheduler", Package: "sigs.k8s.io/descheduler/cmd/descheduler", Module: "sigs.k8s.io/descheduler",
	Manifests: []string{"kubernetes/base/rbac.yaml"},
	Namespace: "kube-system", ServiceAccount: "descheduler-sa",
	Args: []string{"--kubeconfig={{.Kubeconfig}}", "--policy-config-file={{.ConfigFile}}", "--descheduling-interval=10s", "--secure-port=0", "--v=1"},
}
