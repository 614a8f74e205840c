// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Registry is what metrics are registered with.
type Registry interface {
	Register(metrics.Registerable) error
}

// New makes metrics and registers them. A name that is taken panics: it is a mistake of the program.
func New(reg Registry) *Metrics {
	m := &Metrics{}
	m.upstream()
	m.upstreamUncounted()
	m.own()
	for _, c := range m.all {
		if err := reg.Register(c); err != nil {
			panic(err)
		}
	}
	return m
}

// Process are the metrics that /metrics of this process serves, made once.
var Process = sync.OnceValue(func() *Metrics { return New(processRegistry{}) })

type processRegistry struct{}

// Register adds to the registry behind /metrics.
func (processRegistry) Register(c metrics.Registerable) error { return legacyregistry.Register(c) }
