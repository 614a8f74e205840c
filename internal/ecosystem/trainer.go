// SPDX-License-Identifier: Apache-2.0

package ecosystem

// Trainer is the controller of Kubeflow Trainer. It creates JobSets, so JobSet has to run beside it. Its kustomization
// with everything fetches JobSet's manifests from elsewhere, so its parts are named here.
var Trainer = Component{
	Name: "trainer", Package: "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager",
	Module:         "github.com/kubeflow/trainer/v2",
	Kustomizations: []string{"manifests/base/crds", "manifests/base/rbac", "manifests/base/webhook"},
	Namespace:      "kubeflow-system", ServiceAccount: "kubeflow-trainer-controller-manager",
	Config: `
apiVersion: config.trainer.kubeflow.org/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
certManagement: {enable: false}
webhook: {host: 127.0.0.1, port: {{.WebhookPort}}}
health: {healthProbeBindAddress: "127.0.0.1:{{.HealthPort}}"}
metrics: {bindAddress: "0"}
`,
	Args: []string{"--config={{.ConfigFile}}"}, Ready: "/readyz",
}
