// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"
)

// judgeOps reads the operations of a case without values, and what must hold between them.
func (r *reading) judgeOps(c *Case) {
	collects, since := false, 0 // since: line of the startCollectingMetrics that is not stopped yet
	profile := 0                // line of the startCollectingProfile that is not stopped yet
	for _, node := range c.ops {
		switch op := r.op(node).(type) {
		case *CreatePods:
			if op.CollectMetrics && since > 0 {
				r.mistake(node.Line, "createPods: metrics are collected already (line %d)", since)
			}
			collects = collects || op.CollectMetrics
		case *CreatePodSets:
			if op.Pods.CollectMetrics && since > 0 {
				r.mistake(node.Line, "createPodSets: metrics are collected already (line %d)", since)
			}
			collects = collects || op.Pods.CollectMetrics
		case *mix:
			if op.collects && since > 0 {
				r.mistake(node.Line, "createPodMix: metrics are collected already (line %d)", since)
			}
			collects = collects || op.collects
		case *StartCollectingMetrics:
			if since > 0 {
				r.mistake(node.Line, "startCollectingMetrics: metrics are collected already (line %d)", since)
			}
			since = node.Line
		case *StopCollectingMetrics:
			if since == 0 {
				r.mistake(node.Line, "stopCollectingMetrics: nothing is collected here")
			}
			collects, since = true, 0
		case *StartCollectingProfile:
			if profile > 0 {
				r.mistake(node.Line, "startCollectingProfile: a profile is collected already (line %d)", profile)
			}
			profile = node.Line
		case *StopCollectingProfile:
			if profile == 0 {
				r.mistake(node.Line, "stopCollectingProfile: no profile is collected here")
			}
			profile = 0
		}
	}
	if profile > 0 {
		r.mistake(profile, "startCollectingProfile: no stopCollectingProfile comes after it")
	}
	switch {
	case since > 0:
		r.mistake(since, "startCollectingMetrics: no stopCollectingMetrics comes after it")
	case !collects && len(c.ops) > 0:
		r.mistake(c.Line, "case %s: no operation collects metrics", c.Name)
	}
}

// Plan puts the parameters of a workload into the operations of its case, reads the templates and tries each of them.
func (c *Case) Plan(w *Workload) (Plan, error) {
	r := &reading{source: c.source, args: &arguments{workload: w, used: map[string]bool{}}}
	p := Plan{
		Name:            c.Name + "/" + w.Name,
		Labels:          slices.Concat(c.Labels, w.Labels),
		Gates:           map[string]bool{},
		Params:          map[string]any{},
		Threshold:       w.Threshold,
		TopicThresholds: w.TopicThresholds,
		Selector:        MetricSelector{Name: Throughput, Bucket: "Average"},
		Metrics:         c.Metrics,
	}
	for name, param := range w.Params {
		p.Params[name] = param.Value
	}
	maps.Copy(p.Gates, c.Gates)
	maps.Copy(p.Gates, w.Gates)
	for _, selector := range []*MetricSelector{c.Selector, w.Selector} {
		if selector != nil {
			p.Selector = *selector
		}
	}
	if f := c.schedulerConfig; f != nil {
		if _, text, ok := r.file(f.value); ok {
			p.SchedulerConfig = text
		}
	}
	if f := c.defaultPod; f != nil {
		p.DefaultPod = r.template(f.value, 1, kindPod, nil)
	}
	for _, node := range c.ops {
		switch op := r.op(node).(type) {
		case nil: // already reported
		case *mix:
			p.Ops = append(p.Ops, op.ops...)
		default:
			p.Ops = append(p.Ops, op)
		}
	}
	r.declareFeatures(&p)
	r.unused()
	if err := r.found.err(); err != nil {
		return Plan{}, err
	}
	return p, nil
}

// Plans are the plans of the workloads whose name (case/workload) matches, all for nil, and whose labels pass the filter
// as Enabled reads it, in the order of the file.
func (f *File) Plans(match *regexp.Regexp, labels string) ([]Plan, error) {
	var plans []Plan
	for _, c := range f.Cases {
		for _, w := range c.Workloads {
			if match != nil && !match.MatchString(c.Name+"/"+w.Name) || !Enabled(labels, slices.Concat(c.Labels, w.Labels)...) {
				continue
			}
			p, err := c.Plan(w)
			if err != nil {
				return nil, err
			}
			plans = append(plans, p)
		}
	}
	return plans, nil
}

// file reads what a node names.
func (r *reading) file(node *yaml.Node) (shown, text string, ok bool) {
	shown, content, err := r.source.read(node.Value)
	if err != nil {
		r.mistake(node.Line, "%v", err)
		return "", "", false
	}
	return shown, string(content), true
}

// template reads the template that a field names, and tries it for the first and the last of count objects. While the
// file is loaded, and when the field is missing, it is nil.
func (m *mapping) template(name string, count int, kind kind) *Template {
	var params map[string]any // as in Template
	if kind.parametric {
		params = m.templateParams()
	}
	f := m.get(name)
	if f == nil {
		if len(params) > 0 {
			m.in.mistake(m.get("templateParams").line, "%s: templateParams without %s", m.what, name)
		}
		return nil
	}
	if m.text(name) == "" {
		return nil
	}
	return m.in.template(f.value, count, kind, params)
}

func (m *mapping) needTemplate(name string, count int, kind kind) Template {
	m.need(name)
	if t := m.template(name, count, kind); t != nil {
		return *t
	}
	return Template{}
}

func (r *reading) template(node *yaml.Node, count int, kind kind, params map[string]any) *Template {
	if r.args == nil {
		return nil
	}
	shown, text, ok := r.file(node)
	if !ok {
		return nil
	}
	t := &Template{Path: shown, Text: text, Params: params}
	if wrong := t.try(count, kind); wrong != nil {
		wrong.What += " (named in " + (Mistake{Path: r.source.path, Line: node.Line}).place() + ")"
		r.found = append(r.found, *wrong)
	}
	return t
}
