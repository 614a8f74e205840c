// SPDX-License-Identifier: Apache-2.0

package ecosystem

// Karpenter is sigs.k8s.io/karpenter with its provider kwok, which creates Node objects and nothing behind them; the
// local cluster keeps them Ready and runs their pods. Its manifests besides the resource definitions are a Helm chart,
// so it runs with the administrator's rights. It cannot be given an address: its health and metrics ports are
// those of all interfaces.
var Karpenter = Component{
	Name: "karpenter", Package: "sigs.k8s.io/karpenter/kwok", Module: "sigs.k8s.io/karpenter",
	Manifests: []string{"pkg/apis/crds/*.yaml", "kwok/apis/crds/*.yaml"},
	// Karpenter removes no node for twice the batch duration (10 s by default) after it planned to use it for a pod.
	Env: []string{"HEALTH_PROBE_PORT={{.HealthPort}}", "METRICS_PORT={{.MetricsPort}}", "DISABLE_LEADER_ELECTION=true",
		"BATCH_MAX_DURATION=5s"},
	Ready: "/readyz",
}
