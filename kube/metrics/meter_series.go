// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"k8s.io/component-base/metrics"

	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// profileSeries are the metrics of one profile that each decision counts in, looked up once.
type profileSeries struct {
	profile string
	points  [plugin.Points]metrics.ObserverMetric // point -> durations of those that went well; nil before the first
	plugins []pluginSeries
	next    int // where to look first: plugins work in the same order again and again
}

// pluginSeries are the metrics of a plugin at a point.
type pluginSeries struct {
	at   plugin.Point
	name string
	runs metrics.CounterMetric // nil at points where upstream does not count
	took metrics.ObserverMetric
}

func (s *profileSeries) point(m *Metrics, at plugin.Point, status string) metrics.ObserverMetric {
	if status != statusSuccess {
		return m.extensionPoint.WithLabelValues(at.String(), status, s.profile)
	}
	if s.points[at] == nil {
		s.points[at] = m.extensionPoint.WithLabelValues(at.String(), status, s.profile)
	}
	return s.points[at]
}

func (s *profileSeries) plugin(m *Metrics, at plugin.Point, name string) *pluginSeries {
	for range s.plugins {
		if s.next == len(s.plugins) {
			s.next = 0
		}
		of := &s.plugins[s.next]
		s.next++
		if of.at == at && of.name == name {
			return of
		}
	}
	of := pluginSeries{at: at, name: name, took: m.pluginDuration.WithLabelValues(name, at.String(), statusSuccess)}
	switch at {
	case plugin.AtPreFilter, plugin.AtFilter, plugin.AtPreScore, plugin.AtScore:
		of.runs = m.evaluations.WithLabelValues(name, at.String(), s.profile)
	}
	s.plugins = append(s.plugins, of)
	s.next = len(s.plugins)
	return &s.plugins[s.next-1]
}
