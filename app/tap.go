// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/answers"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/host/framework"
)

// tap stands between the engine and plugins of kube-scheduler's framework: it notes their answers, or answers in their
// place.
type tap interface {
	engine.Answers
	Host() *answers.Host
	Plugin(of answers.Source, live answers.Plugin) answers.Plugin
	Reserver(profile string, live plugin.Deferrer) plugin.Deferrer
	Placements(profile string, live plugin.Placements) plugin.Placements
}

var (
	_ tap = (*answers.Log)(nil)
	_ tap = (*answers.Recorded)(nil)
)

// tap returns the recorded answers, or else a new log.
func (p Plugins) tap() tap {
	if p.recorded != nil {
		return p.recorded
	}
	log := answers.NewLog()
	log.SetHooks(p.hooks.Activated != nil)
	return log
}

// WithRecorded returns the plugins for a replay: what a recording describes takes the place of all plugins of
// kube-scheduler's framework that the program has. recorded, which may be nil, gives the answers.
func (p Plugins) WithRecorded(recorded *answers.Recorded) (Plugins, error) {
	p.listed = slices.DeleteFunc(slices.Clone(p.listed), func(c config.Custom) bool { return p.isHosted(c.Name) })
	p.hosted, p.recorded, p.hooks = nil, recorded, framework.Hooks{}
	var regs []framework.Registration
	if recorded != nil {
		for _, s := range recorded.Host().Sources {
			known := slices.ContainsFunc(regs, func(r framework.Registration) bool { return r.Name == s.Name })
			if s.Reserves || len(s.Points) == 0 || known {
				continue
			}
			points := make([]config.Point, len(s.Points))
			for i, at := range s.Points {
				if points[i] = config.Point(at); !slices.Contains(config.Points(), points[i]) {
					return Plugins{}, fmt.Errorf("what the recording describes: plugin %q extends %q, which is no "+
						"extension point", s.Name, at)
				}
			}
			regs = append(regs, framework.Recorded(s.Name, points))
		}
		if recorded.Host().Hooks {
			p.hooks.Activated = func(fwk.CycleState) map[string]*v1.Pod { return nil }
		}
	}
	p, err := p.WithFramework(regs...)
	if err != nil {
		return Plugins{}, fmt.Errorf("what the recording describes: %w", err)
	}
	return p, nil
}

// tapHosted puts the tap between the engine and the plugins of kube-scheduler's framework of a profile.
func (b *builder) tapHosted() {
	tapped := map[string]answers.Plugin{} // name -> plugin
	for _, name := range b.hosted.Plugins() {
		source := answers.Source{Profile: b.from.SchedulerName, Name: name}
		for _, at := range config.Points() {
			if b.hosted.Extends(name, at) {
				source.Points = append(source.Points, string(at))
			}
		}
		live := b.made[name].(answers.Plugin)
		source.Wakes = answers.WakesOf(live.Wakes())
		tapped[name] = b.tap.Plugin(source, live)
	}
	out := &b.out
	replaceTapped(out.Gates, tapped)
	replaceTapped(out.Wakers, tapped)
	// The host has the plugins themselves.
	out.Filters, out.Scorers = slices.Clone(out.Filters), slices.Clone(out.Scorers)
	out.Reservers = slices.Clone(out.Reservers)
	replaceTapped(out.Filters, tapped)
	for i := range out.Scorers {
		if pl := tapped[out.Scorers[i].Name()]; pl != nil {
			out.Scorers[i].Scorer = pl
		}
	}
	for i := range out.PostFilters {
		if pl := tapped[out.PostFilters[i].Name()]; pl != nil {
			out.PostFilters[i].PostFilter = pl
		}
	}
	for i, r := range out.Reservers {
		if live, is := r.(plugin.Deferrer); is && r.Name() == framework.ReserverName {
			out.Reservers[i] = b.tap.Reserver(b.from.SchedulerName, live)
		}
	}
	if out.Placements != nil {
		out.Placements = b.tap.Placements(b.from.SchedulerName, out.Placements)
	}
	if b.less != nil {
		if pl := tapped[b.less.Name()]; pl != nil {
			b.less = pl
		}
	}
}

// replaceTapped replaces the plugins in a list that have a tapped form.
func replaceTapped[P plugin.Plugin](list []P, tapped map[string]answers.Plugin) {
	for i := range list {
		if pl := tapped[list[i].Name()]; pl != nil {
			list[i] = any(pl).(P)
		}
	}
}
