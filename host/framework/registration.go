// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

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
	{config.QueueSort, implements[fwk.QueueSortPlugin], false},
	{config.PreFilter, implements[fwk.PreFilterPlugin], true},
	{config.Filter, implements[fwk.FilterPlugin], true},
	{config.PostFilter, implements[fwk.PostFilterPlugin], false},
	{config.PreScore, implements[fwk.PreScorePlugin], true},
	{config.Score, implements[fwk.ScorePlugin], true},
	{config.Reserve, implements[fwk.ReservePlugin], true},
	{config.Permit, implements[fwk.PermitPlugin], true},
	{config.PreBind, implements[fwk.PreBindPlugin], true},
	{config.Bind, implements[fwk.BindPlugin], true},
	{config.PostBind, implements[fwk.PostBindPlugin], true},
	{config.PlacementGenerate, implements[fwk.PlacementGeneratePlugin], false},
	{config.PlacementScore, implements[fwk.PlacementScorePlugin], false},
	{config.PodGroupPostFilter, implements[fwk.PodGroupPostFilterPlugin], false},
}

// pointsOf returns the extension points that a plugin implements, hosted or not.
func pointsOf(pl fwk.Plugin) []config.Point {
	var out []config.Point
	for _, p := range points {
		if p.implements(pl) {
			out = append(out, p.at)
		}
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

// make calls the factory.
func (p *Profile) make(r Registration, args runtime.Object) (pl fwk.Plugin, err error) {
	failed := guard(func() { pl, err = r.Factory(p.host.env.context(), args, &handle{p}) })
	switch {
	case failed != nil:
		return nil, fmt.Errorf("plugin %q: its factory: %w", r.Name, failed)
	case err != nil:
		return nil, fmt.Errorf("plugin %q: its factory failed: %w", r.Name, err)
	case pl == nil:
		return nil, fmt.Errorf("plugin %q: its factory returned no plugin", r.Name)
	}
	return pl, nil
}
