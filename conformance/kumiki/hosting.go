// SPDX-License-Identifier: Apache-2.0

package kumiki

import (
	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/conformance/release"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/host/framework"
)

// Hosting is which plugins of profiles are those of kube-scheduler's framework.
type Hosting struct {
	Plugins []framework.Registration
	// As returns the name in the configuration file of a plugin of a scenario; nil keeps names. A plugin of another
	// name is disabled at the extension points of pod groups.
	As func(plugin string) string
	// Env is what plugins receive from the process.
	Env framework.Env
}

func (h Hosting) name(plugin string) string {
	if h.As == nil {
		return plugin
	}
	return h.As(plugin)
}

// Config is Config for a profile with these plugins, and their host.
func (h Hosting) Config(p *scenario.Profile) (engine.Config, *framework.Host, error) {
	text, err := h.file(p)
	if err != nil {
		return engine.Config{}, nil, err
	}
	plugins, err := app.Plugins{}.WithFramework(h.Plugins...)
	if err != nil {
		return engine.Config{}, nil, err
	}
	plugins = plugins.With(release.Features())
	resolved, err := plugins.ParseConfig(text)
	if err != nil {
		return engine.Config{}, nil, err
	}
	return plugins.Hosted(resolved, h.Env)
}
