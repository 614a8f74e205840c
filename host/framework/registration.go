// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
)

// Factory makes a plugin; it is upstream's type of factories (pkg/scheduler/framework/runtime, PluginFactory). args are
// those of pluginConfig, a *runtime.Unknown with the JSON, or nil if there are none.
type Factory = func(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error)

// Registration is how a plugin is made by name.
type Registration struct {
	Name    string
	Factory Factory
	// Type is any value of the plugin's type, which may be nil of a pointer type; it shows the extension points. If it
	// is nil, Check makes a plugin without a cluster to find them.
	Type fwk.Plugin
	// Undeclared says that the plugin can only be made as part of a scheduler. A profile that enables it at multiPoint
	// enables it at the points that it extends, as upstream does. Type is nil.
	Undeclared bool
	// CheckArgs returns what is wrong with arguments, so that errors in a file have a line; nil leaves it to Factory.
	CheckArgs func(args runtime.Object) error
}

// implements reports whether a plugin implements an interface of the framework.
func implements[I any](pl fwk.Plugin) bool { _, is := pl.(I); return is }

// point is an extension point of the framework.
type point struct {
	at         config.Point
	implements func(fwk.Plugin) bool
	hosted     bool
}

// points are the extension points that a plugin can implement, in the order of the cycle.
var points = []point{
	{config.PreEnqueue, implements[fwk.PreEnqueuePlugin], true},
	{config.QueueSort, implements[fwk.QueueSortPlugin], true},
	{config.PreFilter, implements[fwk.PreFilterPlugin], true},
	{config.Filter, implements[fwk.FilterPlugin], true},
	{config.PostFilter, implements[fwk.PostFilterPlugin], true},
	{config.PreScore, implements[fwk.PreScorePlugin], true},
	{config.Score, implements[fwk.ScorePlugin], true},
	{config.Reserve, implements[fwk.ReservePlugin], true},
	{config.Permit, implements[fwk.PermitPlugin], true},
	{config.PreBind, implements[fwk.PreBindPlugin], true},
	{config.Bind, implements[fwk.BindPlugin], true},
	{config.PostBind, implements[fwk.PostBindPlugin], true},
	{config.PlacementGenerate, implements[fwk.PlacementGeneratePlugin], true},
	{config.PlacementScore, implements[fwk.PlacementScorePlugin], true},
	{config.PodGroupPostFilter, implements[fwk.PodGroupPostFilterPlugin], false},
}

// pointsOf returns the extension points that a plugin implements, hosted or not.
func pointsOf(pl fwk.Plugin) []config.Point {
	if d, is := pl.(described); is {
		return d.points
	}
	var out []config.Point
	for _, p := range points {
		if p.implements(pl) {
			out = append(out, p.at)
		}
	}
	return out
}

// allPoints returns all extension points.
func allPoints() []config.Point {
	var out []config.Point
	for _, p := range points {
		out = append(out, p.at)
	}
	return out
}

// hosts reports whether plugins run at a point.
func hosts(at config.Point) bool {
	for _, p := range points {
		if p.at == at {
			return p.hosted
		}
	}
	return false
}

// Check returns the extension points of a registration, those that are not hosted among them. The error says what is
// wrong with the registration.
func (r Registration) Check() ([]config.Point, error) {
	if r.Factory == nil {
		return nil, errors.New("it has no factory")
	}
	if r.Undeclared {
		return allPoints(), nil
	}
	pl := r.Type
	if pl == nil {
		var err error
		if pl, err = NewHost(Env{}).Profile("").make(r, nil); err != nil {
			return nil, fmt.Errorf("%w; to find its extension points without a cluster, it is made without "+
				"arguments: if it cannot be, set Registration.Type", err)
		}
	}
	return pointsOf(pl), nil
}

// Arguments returns the arguments of a factory for the JSON of pluginConfig: what upstream passes to a plugin whose
// arguments are not registered in its scheme.
func Arguments(text json.RawMessage) runtime.Object {
	if len(text) == 0 {
		return nil
	}
	return &runtime.Unknown{Raw: text, ContentType: runtime.ContentTypeJSON}
}

// factoryPoint is the name of factories in messages and metrics.
const factoryPoint config.Point = "factory"

// made is what a factory returned.
type made struct {
	plugin  fwk.Plugin
	err     error
	panicks error // nil unless it panicked
}

// after returns a channel that receives once after a time; nil, which never receives, for 0.
func after(limit time.Duration) <-chan time.Time {
	if limit == 0 {
		return nil
	}
	return time.After(limit)
}

// call calls the factory. One that does not return for SlowCall is reported; after PluginTimeout nothing waits for it.
func (p *Profile) call(r Registration, args runtime.Object) (m made, late bool) {
	returned := make(chan made, 1)
	go func() {
		var m made
		m.panicks = guard(func() { m.plugin, m.err = r.Factory(p.host.env.context(), args, &handle{p}) })
		returned <- m
	}()
	limits := p.host.env.Limits
	slow, over := after(limits.SlowCall), after(limits.PluginTimeout)
	for {
		select {
		case m = <-returned:
			return m, false
		case <-over:
			return made{}, true
		case <-slow:
			p.host.report(Problem{r.Name, factoryPoint, fmt.Errorf("plugin %q: its factory has not returned for %v",
				r.Name, limits.SlowCall), Slow})
		}
	}
}

// make makes a plugin.
func (p *Profile) make(r Registration, args runtime.Object) (fwk.Plugin, error) {
	m, late := p.call(r, args)
	switch {
	case late:
		return nil, fmt.Errorf("plugin %q: its factory has not returned within pluginTimeout, %v", r.Name,
			p.host.env.Limits.PluginTimeout)
	case m.panicks != nil:
		return nil, fmt.Errorf("plugin %q: its factory: %w", r.Name, m.panicks)
	case m.err != nil:
		return nil, fmt.Errorf("plugin %q: its factory failed: %w", r.Name, m.err)
	case m.plugin == nil:
		return nil, fmt.Errorf("plugin %q: its factory returned no plugin", r.Name)
	}
	return m.plugin, nil
}
