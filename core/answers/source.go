// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Plugin is what a host of plugins of kube-scheduler's framework makes of one plugin. It is used only at the extension
// points at which the profile enables the plugin.
type Plugin interface {
	plugin.Gate
	plugin.EntityLess
	plugin.Filter
	plugin.PostFilter
	plugin.Skipper
	plugin.Waker
	plugin.Sharing
}

// Host describes the plugins of a configuration whose answers are recorded. A recording begins with it.
type Host struct {
	// Sources are the plugins, and what reserves for all plugins of a profile. Sections name them by index.
	Sources []Source `json:"sources"`
	// Hooks is set if the program adds to what plugins share in a decision, so that each profile with plugins reserves.
	Hooks bool `json:"hooks,omitempty"`
}

// Source is a plugin in a profile, or what reserves for all plugins of the profile.
type Source struct {
	Profile string `json:"profile"`
	Name    string `json:"name"`
	// Reserves is set for what reserves for all plugins. The other fields are empty then.
	Reserves bool `json:"reserves,omitempty"`
	// Places is set for what proposes and scores placements of pod groups for all plugins. The other fields are empty
	// then.
	Places bool `json:"places,omitempty"`
	// Points are the extension points that the plugin extends.
	Points []string `json:"points,omitempty"`
	// Wakes are the events that wake pods that the plugin rejected.
	Wakes []Wake `json:"wakes,omitempty"`
}

// Wake is an event that wakes pods.
type Wake struct {
	Event plugin.Event `json:"event"`
	// Hint is set if the plugin is asked whether the event helps a pod, Alike if once for all pods of a spec.
	Hint  bool `json:"hint,omitempty"`
	Alike bool `json:"alike,omitempty"`
}

// WakesOf returns the description of events.
func WakesOf(list []plugin.Wake) []Wake {
	out := make([]Wake, len(list))
	for i, w := range list {
		out[i] = Wake{Event: w.Event, Hint: w.Hint != nil, Alike: w.Alike}
	}
	return out
}

// point is an extension point at which answers are noted.
type point uint8

// The points. Their numbers are written into recordings.
const (
	atPreEnqueue point = 1 + iota
	atQueueSort
	atHint
	atPreFilter
	atFilter
	atPostFilter
	atPreScore
	atScore
	atReserve
	atPermit
	atRejecters
	atPlacements
	atPlacementScore
	pointBits = 4 // of a tag
)

var pointNames = [1 << pointBits]string{atPreEnqueue: "preEnqueue", atQueueSort: "queueSort",
	atHint: "a hint of an event", atPreFilter: "preFilter", atFilter: "filter", atPostFilter: "postFilter",
	atPreScore: "preScore", atScore: "score", atReserve: "reserve", atPermit: "permit",
	atRejecters: "permit, who may reject a waiting pod", atPlacements: "placementGenerate",
	atPlacementScore: "placementScore"}

// String returns the name of the point in a configuration.
func (p point) String() string { return pointNames[p] }

// tag names a section: the index of a source, and a point.
type tag uint64

func tagOf(source int, at point) tag { return tag(source)<<pointBits | tag(at) }

func (t tag) point() point { return point(t & (1<<pointBits - 1)) }
func (t tag) source() int  { return int(t >> pointBits) }
