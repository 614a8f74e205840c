// SPDX-License-Identifier: Apache-2.0

package ecosystem

// Kueue is the controller of sigs.k8s.io/kueue. It manages its certificates itself here, because without that it reads
// those of its metrics from a fixed path outside of the test's directory. Its visibility server listens on a fixed port
// and needs a service, so it is off.
var Kueue = Component{
	Name: "kueue", Package: "sigs.k8s.io/kueue/cmd/kueue", Module: "sigs.k8s.io/kueue",
	Kustomizations: []string{"config/default"},
	Namespace:      "kueue-system", ServiceAccount: "kueue-controller-manager",
	CertificateSecret: "kueue-webhook-server-cert",
	CertificateNames:  []string{"kueue-ca", "kueue-webhook-service.kueue-system.svc"},
	Config: `
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: kueue-system
leaderElection: {leaderElect: false}
internalCertManagement: {enable: true}
featureGates: {VisibilityOnDemand: false}
webhook: {host: 127.0.0.1, port: {{.WebhookPort}}, certDir: {{.CertDir}}}
health: {healthProbeBindAddress: "127.0.0.1:{{.HealthPort}}"}
metrics: {bindAddress: "0"}
integrations: {frameworks: [batch/job, pod]}
waitForPodsReady:
  timeout: 30s
  requeuingStrategy: {backoffBaseSeconds: 60}
`,
	Args: []string{"--config={{.ConfigFile}}", "--zap-log-level=2"}, Ready: "/readyz",
}
