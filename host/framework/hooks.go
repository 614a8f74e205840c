// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
)

// Hooks add what only k8s.io/kubernetes has; module kubescheduler sets them. Each may be nil.
type Hooks struct {
	// Entity converts what Less receives to upstream's type of entities. What it is given has the method GetPodInfo.
	Entity func(fwk.QueuedEntityInfo) fwk.QueuedEntityInfo
	// Began is called with the CycleState of a new decision.
	Began func(fwk.CycleState)
	// Activated returns the pods that plugins asked through the CycleState to be tried at once, and forgets them. It is
	// called when Permit has accepted a pod or makes it wait, and after PostBind.
	Activated func(fwk.CycleState) map[string]*v1.Pod
}

// began calls the hook, after the informers of plugins show what the decision is about.
func (h *Host) began(d *decision) {
	if h.env.Await != nil && d.record.Full != nil {
		h.env.Await(d.record.Full)
	}
	if h.env.Hooks.Began != nil {
		h.env.Hooks.Began(d.state)
	}
}

// activate makes the pods be tried that plugins named in the CycleState of a flight.
func (f *flight) activate() {
	if take := f.p.host.env.Hooks.Activated; take != nil {
		if pods := take(f.d.state); len(pods) > 0 {
			f.p.host.activate(pods)
		}
	}
}

// Configure notes the configuration of the profile, for ConfigOf.
func (p *Profile) Configure(c config.Profile) { p.config = c }

// Extends reports whether a plugin of the profile implements an extension point, hosted or not.
func (p *Profile) Extends(name string, at config.Point) bool {
	i := slices.IndexFunc(p.plugins, func(h *hosted) bool { return h.name == name })
	return i >= 0 && slices.Contains(pointsOf(p.plugins[i].plugin), at)
}

// ConfigOf returns the configuration of the profile that a Handle of this package belongs to. While factories run, it
// is empty, as upstream's lists of plugins are.
func ConfigOf(h fwk.Handle) (c config.Profile, ok bool) {
	own, is := h.(*handle)
	if !is {
		return config.Profile{}, false
	}
	return own.p.config, true
}
