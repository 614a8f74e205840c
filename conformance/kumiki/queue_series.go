// SPDX-License-Identifier: Apache-2.0

package kumiki

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	componentmetrics "k8s.io/component-base/metrics"

	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/queue"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	corequeue "github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
	"github.com/kumiki-scheduler/kumiki/record"
)

// counted is the tally of a queue, with the metrics that are compared.
type counted struct {
	*metrics.Tally
	meter    *metrics.Meter
	compared map[string]prometheus.Collector // name -> metric
}

func newCounted() counted {
	reg := &comparedRegistry{componentmetrics.NewKubeRegistry(), map[string]prometheus.Collector{}}
	meter := metrics.NewMeter()
	return counted{metrics.NewTally(metrics.New(reg), meter, time.Now()), meter, reg.metrics}
}

// comparedRegistry remembers the metrics that are compared.
type comparedRegistry struct {
	componentmetrics.KubeRegistry
	metrics map[string]prometheus.Collector // name -> metric
}

// Register implements metrics.KubeRegistry.
func (r *comparedRegistry) Register(m componentmetrics.Registerable) error {
	switch m.FQName() {
	case queue.UnschedulablePods, queue.PendingPods, queue.QueuedEntities, queue.IncomingPods, queue.IncomingEntities:
		r.metrics[m.FQName()] = m
	}
	return r.KubeRegistry.Register(m)
}

// count counts the moves since the last call as a step of the engine does: those of an event, with its decisions.
func (w *waiting) count(ev engine.Event, decisions ...engine.Effect) {
	var effects []engine.Effect
	for _, m := range w.q.TakeMoves() {
		effects = append(effects, engine.Moved{Move: m})
	}
	w.tally.Step(ev, append(effects, decisions...), time.Now())
}

// decided is the decision of an attempt that ended with a rejection, or with an error.
func decided(u *corequeue.Unit, why queue.Rejection) engine.Decided {
	d := record.Decision{Pod: u.Pod().Ref(), Profile: oracle.SchedulerName, Attempt: u.Attempts,
		Verdict: record.AttemptFailed}
	if d.Plugins = slices.Concat(why.Plugins, why.Pending); len(d.Plugins) > 0 {
		d.Verdict = record.DoesNotFit
	}
	return engine.Decided{Decision: d}
}

// Series implements queue.Queue.
func (w *waiting) Series() queue.Series {
	s := queue.Series{}
	for name, m := range w.tally.compared { // order: each stands apart
		s.Add(name, m)
	}
	return s
}
