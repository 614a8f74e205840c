// SPDX-License-Identifier: Apache-2.0

package ecosystem

// Ray is KubeRay's operator as docs/tasks/ray.md recommends it: with the PodGroups of Volcano.
var Ray = kubeRay("volcano")

// kubeRay is the operator of github.com/ray-project/kuberay. Its batch scheduler, volcano or scheduler-plugins, decides
// which PodGroups it creates and which schedulerName its pods have. Its validating webhook is off by default.
func kubeRay(batchScheduler string) Component {
	return Component{
		Name: "ray", Package: "github.com/ray-project/kuberay/ray-operator",
		Module:         "github.com/ray-project/kuberay/ray-operator",
		Kustomizations: []string{"config/crd", "config/rbac"},
		Namespace:      "ray-system", ServiceAccount: "kuberay-operator",
		// The kustomization has no rights to PodGroups; the chart adds those of the batch scheduler that is set.
		Objects: `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: kuberay-podgroups}
rules:
- apiGroups: [scheduling.volcano.sh]
  resources: [podgroups]
  verbs: [create, delete, get, list, update, watch]
- apiGroups: [scheduling.x-k8s.io]
  resources: [podgroups]
  verbs: [create, get, list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kuberay-podgroups}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kuberay-podgroups}
subjects:
- {kind: ServiceAccount, name: kuberay-operator, namespace: ray-system}
`,
		Args: []string{"--batch-scheduler=" + batchScheduler, "--enable-leader-election=false", "--metrics-addr=0",
			"--health-probe-bind-address=127.0.0.1:{{.HealthPort}}"},
		Ready: "/readyz",
	}
}
