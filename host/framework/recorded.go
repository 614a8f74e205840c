// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
)

// Recorded returns the registration of a plugin that is known by its name and extension points alone, for a replay. It
// is resolved as the plugin itself, and must not be called.
func Recorded(name string, points []config.Point) Registration {
	pl := described{name: name, points: points}
	return Registration{Name: name, Type: pl,
		Factory: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return pl, nil }}
}

// described is a plugin of which only the name and the extension points are known. The interfaces are nil.
type described struct {
	name   string
	points []config.Point

	fwk.PreEnqueuePlugin
	fwk.QueueSortPlugin
	fwk.PreFilterPlugin
	fwk.FilterPlugin
	fwk.PostFilterPlugin
	fwk.PreScorePlugin
	fwk.ScorePlugin
	fwk.ReservePlugin
	fwk.PermitPlugin
	fwk.PreBindPlugin
	fwk.BindPlugin
	fwk.PostBindPlugin
	fwk.PlacementGeneratePlugin
	fwk.PlacementScorePlugin
}

var _ fwk.Plugin = described{}

// Name returns the name.
func (d described) Name() string { return d.name }

// Plugins returns the names of the plugins of the profile, in the order in which they were made.
func (p *Profile) Plugins() []string {
	names := make([]string, len(p.plugins))
	for i, h := range p.plugins {
		names[i] = h.name
	}
	return names
}
