// SPDX-License-Identifier: Apache-2.0

package ecosystem

// LeaderWorkerSet is the controller of sigs.k8s.io/lws. It creates PodGroups of Volcano.
var LeaderWorkerSet = Component{
	Name: "lws", Package: "sigs.k8s.io/lws/cmd", Module: "sigs.k8s.io/lws",
	Kustomizations: []string{"config/default"},
	Namespace:      "lws-system", ServiceAccount: "lws-controller-manager",
	// The kustomization has no rights to PodGroups; the chart adds them if gangSchedulingManagement is set.
	Objects: `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: lws-volcano}
rules:
- apiGroups: [scheduling.volcano.sh]
  resources: [podgroups]
  verbs: [create, get, list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: lws-volcano}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: lws-volcano}
subjects:
- {kind: ServiceAccount, name: lws-controller-manager, namespace: lws-system}
`,
	Config: `
apiVersion: config.lws.x-k8s.io/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
gangSchedulingManagement: {schedulerProvider: volcano}
webhook: {host: 127.0.0.1, port: {{.WebhookPort}}, certDir: {{.CertDir}}}
health: {healthProbeBindAddress: "127.0.0.1:{{.HealthPort}}"}
metrics: {bindAddress: "0"}
`,
	Args: []string{"--config={{.ConfigFile}}"}, Ready: "/readyz",
}
