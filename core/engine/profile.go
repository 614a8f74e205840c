// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins"
)

// DefaultProfile is the default profile under a scheduler name: every native plugin at every point it serves.
func DefaultProfile(name string) Profile {
	p := Profile{Name: name}
	plugins.EachDefault(p.Add)
	return p
}

// Add enables a plugin at every point it serves but the queue's order, which all profiles share.
func (p *Profile) Add(pl plugin.Plugin, weight int64) {
	if g, ok := pl.(plugin.Gate); ok {
		p.Gates = append(p.Gates, g)
	}
	if f, ok := pl.(plugin.Filter); ok {
		p.Filters = append(p.Filters, f)
	}
	if sc, ok := pl.(plugin.Scorer); ok {
		p.Scorers = append(p.Scorers, place.Scorer{Scorer: sc, Weight: weight})
	}
	if w, ok := pl.(plugin.Waker); ok {
		p.Wakers = append(p.Wakers, w)
	}
	if r, ok := pl.(plugin.Reserver); ok {
		p.Reservers = append(p.Reservers, r)
	}
	if r, ok := pl.(plugin.Remedier); ok {
		p.Remediers = append(p.Remediers, r)
	}
}
