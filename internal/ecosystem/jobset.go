// SPDX-License-Identifier: Apache-2.0

package ecosystem

// JobSet is the controller of sigs.k8s.io/jobset.
var JobSet = Component{
	Name: "jobset", Package: "sigs.k8s.io/jobset", Module: "sigs.k8s.io/jobset",
	Kustomizations: []string{"config/default"},
	Namespace:      "jobset-system", ServiceAccount: "jobset-controller-manager",
	Config: `
apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
webhook: {host: 127.0.0.1, port: {{.WebhookPort}}, certDir: {{.CertDir}}}
health: {healthProbeBindAddress: "127.0.0.1:{{.HealthPort}}"}
metrics: {bindAddress: "0"}
`,
	Args: []string{"--config={{.ConfigFile}}"}, Ready: "/readyz",
}
