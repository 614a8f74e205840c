// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/answers"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins"
	"github.com/kumiki-scheduler/kumiki/host/devices"
	"github.com/kumiki-scheduler/kumiki/host/framework"

	configv1 "k8s.io/kube-scheduler/config/v1"
)

// Plugins are the plugins that the profiles of a program can enable: the default plugins and custom ones. The zero
// value has the default plugins alone.
type Plugins struct {
	custom map[string]plugin.Registration    // name -> plugin
	hosted map[string]framework.Registration // name -> plugin of kube-scheduler's framework
	env    framework.Env                     // of hosted plugins; see Hosted
	hooks  framework.Hooks                   // the same
	// recorded answers in place of hosted plugins, in a replay; else nil.
	recorded *answers.Recorded
	listed   []config.Custom // custom and hosted plugins, as the catalog has them
	catalog  config.Catalog
}

// NewPlugins returns the default plugins and custom ones. It is an error if two have one name, or if a custom plugin
// implements none of plugin.Gate, Less, Filter, Scorer, Reserver and Remedier.
//
// If a custom plugin rejects pods and is no plugin.Waker, each change in the cluster wakes these pods.
func NewPlugins(custom ...plugin.Registration) (Plugins, error) {
	p := Plugins{custom: map[string]plugin.Registration{}}
	for _, r := range custom {
		kind := r.Type
		if kind == nil {
			var err error
			if kind, err = r.New(nil); err != nil {
				return Plugins{}, fmt.Errorf("custom plugin %q, with its default arguments: %w", r.Name, err)
			}
		}
		if _, native := plugins.Lookup(r.Name); native {
			return Plugins{}, fmt.Errorf("custom plugin %q: the name belongs to kumiki; use another one", r.Name)
		}
		p.custom[r.Name] = r
		p.listed = append(p.listed, config.Custom{Name: r.Name, Points: extends(kind), DefaultArgs: r.DefaultArgs})
	}
	var err error
	if p.catalog, err = config.NewCatalog(p.listed...); err != nil {
		return Plugins{}, err
	}
	return p, nil
}

// WithFramework returns the same plugins and others that are written for kube-scheduler's framework. Profiles enable
// them by name, as kube-scheduler's do. It is an error if a name is taken, or if a plugin extends no extension point.
func (p Plugins) WithFramework(regs ...framework.Registration) (Plugins, error) {
	hosted := maps.Clone(p.hosted)
	if hosted == nil {
		hosted = map[string]framework.Registration{}
	}
	listed := slices.Clone(p.listed)
	for _, r := range regs {
		points, err := r.Check()
		if err != nil {
			return Plugins{}, fmt.Errorf("plugin %q of kube-scheduler's framework: %w", r.Name, err)
		}
		hosted[r.Name] = r
		one := config.Custom{Name: r.Name, Points: points, RawArgs: true, Undeclared: r.Undeclared,
			Framework: true}
		if r.CheckArgs != nil {
			one.CheckArgs = func(raw json.RawMessage) error { return r.CheckArgs(framework.Arguments(raw)) }
		}
		listed = append(listed, one)
	}
	catalog, err := config.NewCatalog(listed...)
	if err != nil {
		return Plugins{}, err
	}
	p.catalog = catalog.With(p.catalog.Features())
	p.hosted, p.listed = hosted, listed
	return p, nil
}

// WithFrameworkHooks returns the same plugins, with what a program adds to the CycleState of hosted plugins.
func (p Plugins) WithFrameworkHooks(h framework.Hooks) Plugins {
	p.hooks = h
	return p
}

// Hosts reports whether a profile of a configuration enables a plugin of kube-scheduler's framework.
func (p Plugins) Hosts(c config.Resolved) bool {
	for _, profile := range c.Profiles {
		for _, names := range profile.Enabled { // order: any match suffices
			if slices.ContainsFunc(names, p.isHosted) {
				return true
			}
		}
	}
	return false
}

func (p Plugins) isHosted(name string) bool {
	_, hosted := p.hosted[name]
	return hosted
}

// ReadConfig reads a configuration file whose profiles may enable the custom plugins.
func (p Plugins) ReadConfig(path string) (config.Resolved, error) { return p.catalog.Read(path) }

// ParseConfig reads the text of a configuration file. The error is a *config.Error.
func (p Plugins) ParseConfig(text []byte) (config.Resolved, error) { return p.catalog.Parse(text) }

// DefaultConfig returns the configuration without a file.
func (p Plugins) DefaultConfig() config.Resolved { return p.catalog.Default() }

// With returns the same plugins for other features: configurations are read, and plugins made, as kube-scheduler does
// with these gates.
func (p Plugins) With(f config.Features) Plugins {
	p.catalog = p.catalog.With(f)
	return p
}

// Schema returns the JSON schema (draft 7) of configuration files whose profiles may enable the custom plugins.
func (p Plugins) Schema() ([]byte, error) { return p.catalog.Schema() }

// Missing returns the plugins that a configuration enables and this program does not have, sorted.
func (p Plugins) Missing(wire *configv1.KubeSchedulerConfiguration) []string {
	return p.catalog.Missing(wire)
}

// has reports whether a plugin that a profile can enable is implemented.
func (p Plugins) has(name string) bool {
	_, native := plugins.Lookup(name)
	return native || p.isCustom(name) || name == devices.Name || name == config.DefaultPreemption
}

func (p Plugins) isCustom(name string) bool {
	_, custom := p.custom[name]
	return custom || p.isHosted(name)
}

// make makes a plugin of a profile.
func (p Plugins) make(name string, profile config.Profile, f config.Features) (plugin.Plugin, error) {
	r, custom := p.custom[name]
	if !custom {
		r, _ := plugins.Lookup(name)
		return r.New(arguments(name, profile, f))
	}
	pl, err := r.New(profile.Args.Custom[name])
	if err != nil {
		return nil, fmt.Errorf("plugin %q: %w", name, err)
	}
	if pl.Name() != name {
		return nil, fmt.Errorf("plugin %q calls itself %q", name, pl.Name())
	}
	return pl, checkKinds(pl)
}

// extends returns the extension points of a plugin, in the order of the cycle.
func extends(pl plugin.Plugin) []config.Point {
	var points []config.Point
	add := func(at config.Point, implements bool) {
		if implements {
			points = append(points, at)
		}
	}
	_, gates := pl.(plugin.Gate)
	_, sorts := pl.(plugin.Less)
	_, filters := pl.(plugin.Filter)
	_, remedies := pl.(plugin.Remedier)
	_, scores := pl.(plugin.Scorer)
	_, reserves := pl.(plugin.Reserver)
	add(config.PreEnqueue, gates)
	add(config.QueueSort, sorts)
	add(config.Filter, filters)
	add(config.PostFilter, remedies)
	add(config.Score, scores)
	add(config.Reserve, reserves)
	return points
}

// wakesOnAnyEvent registers a plugin that names no events for all of them (upstream: a plugin without
// EnqueueExtensions).
type wakesOnAnyEvent struct{ plugin.Plugin }

// Wakes returns the event that matches any event.
func (wakesOnAnyEvent) Wakes() []plugin.Wake {
	return []plugin.Wake{{Event: plugin.Event{Resource: plugin.Wildcard, Action: plugin.All}}}
}

// Kinds returns the kinds that the plugin declares. A wildcard names none.
func (w wakesOnAnyEvent) Kinds() []cluster.Kind { return plugin.KindsOf(w.Plugin) }
