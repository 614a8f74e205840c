// SPDX-License-Identifier: Apache-2.0

package effects

import (
	componentmetrics "k8s.io/component-base/metrics"

	"github.com/kumiki-scheduler/kumiki/kube/metrics"
)

// counted is a set of metrics of a test's own.
func counted() (*metrics.Metrics, componentmetrics.KubeRegistry) {
	reg := componentmetrics.NewKubeRegistry()
	return metrics.New(reg), reg
}
