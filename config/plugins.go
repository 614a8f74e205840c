// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"

	configv1 "k8s.io/kube-scheduler/config/v1"
)

// Point is an extension point, named as in a configuration file.
type Point string

// The extension points, in the order of the cycle, and MultiPoint, which stands for all that a plugin has.
const (
	PreEnqueue Point = "preEnqueue"
	QueueSort  Point = "queueSort"
	PreFilter  Point = "preFilter"
	Filter     Point = "filter"
	PostFilter Point = "postFilter"
	PreScore   Point = "preScore"
	Score      Point = "score"
	Reserve    Point = "reserve"
	Permit     Point = "permit"
	PreBind    Point = "preBind"
	Bind       Point = "bind"
	PostBind   Point = "postBind"

	MultiPoint        Point = "multiPoint"
	PlacementGenerate Point = "placementGenerate"
	PlacementScore    Point = "placementScore"
)

// points lists the extension points that plugins of this version can run at.
var points = []Point{
	PreEnqueue, QueueSort, PreFilter, Filter, PostFilter, PreScore, Score, Reserve, Permit, PreBind, Bind, PostBind,
}

// set returns the plugin set of a point.
func set(p *configv1.Plugins, at Point) *configv1.PluginSet {
	switch at {
	case PreEnqueue:
		return &p.PreEnqueue
	case QueueSort:
		return &p.QueueSort
	case PreFilter:
		return &p.PreFilter
	case Filter:
		return &p.Filter
	case PostFilter:
		return &p.PostFilter
	case PreScore:
		return &p.PreScore
	case Score:
		return &p.Score
	case Reserve:
		return &p.Reserve
	case Permit:
		return &p.Permit
	case PreBind:
		return &p.PreBind
	case Bind:
		return &p.Bind
	case PostBind:
		return &p.PostBind
	case MultiPoint:
		return &p.MultiPoint
	case PlacementGenerate:
		return &p.PlacementGenerate
	case PlacementScore:
		return &p.PlacementScore
	}
	panic("config: no extension point " + string(at))
}

// The plugins of this version.
const (
	SchedulingGates                 = "SchedulingGates"
	PrioritySort                    = "PrioritySort"
	NodeUnschedulable               = "NodeUnschedulable"
	NodeName                        = "NodeName"
	TaintToleration                 = "TaintToleration"
	NodeAffinity                    = "NodeAffinity"
	NodePorts                       = "NodePorts"
	NodeResourcesFit                = "NodeResourcesFit"
	NodeResourcesBalancedAllocation = "NodeResourcesBalancedAllocation"
	ImageLocality                   = "ImageLocality"
	DefaultBinder                   = "DefaultBinder"

	// Kumiki is the name of our own settings in pluginConfig. It is no plugin.
	Kumiki = "Kumiki"
)

// descriptor says where a plugin runs.
type descriptor struct {
	name   string
	points []Point
	weight int32 // in the default profile; 0 for plugins that do not score
}

// builtin lists the plugins of this version in the order of upstream's default profile
// (upstream: pkg/scheduler/apis/config/v1/default_plugins.go).
var builtin = []descriptor{
	{SchedulingGates, []Point{PreEnqueue}, 0},
	{PrioritySort, []Point{QueueSort}, 0},
	{NodeUnschedulable, []Point{Filter}, 0},
	{NodeName, []Point{Filter}, 0},
	{TaintToleration, []Point{Filter, PreScore, Score}, 3},
	{NodeAffinity, []Point{PreFilter, Filter, PreScore, Score}, 2},
	{NodePorts, []Point{PreFilter, Filter}, 0},
	{NodeResourcesFit, []Point{PreFilter, Filter, PreScore, Score}, 1},
	{NodeResourcesBalancedAllocation, []Point{PreScore, Score}, 1},
	{ImageLocality, []Point{Score}, 1},
	{DefaultBinder, []Point{Bind}, 0},
}

// notBuilt are upstream's plugins of 1.36 that this version does not have, sorted.
var notBuilt = []string{
	"DefaultPreemption", "DynamicResources", "GangScheduling", "InterPodAffinity", "NodeDeclaredFeatures",
	"NodeVolumeLimits", "PodGroupPodsCount", "PodTopologySpread", "TopologyPlacementGenerator", "VolumeBinding",
	"VolumeRestrictions", "VolumeZone",
}

// removed are plugins that upstream's v1 refuses (upstream: invalidPluginsByVersion), sorted.
var removed = []string{"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"}

// Plugins lists the plugins of this version, in the order of the default profile.
func Plugins() []string {
	names := make([]string, len(builtin))
	for i, d := range builtin {
		names[i] = d.name
	}
	return names
}

func describe(name string) (descriptor, bool) {
	i := slices.IndexFunc(builtin, func(d descriptor) bool { return d.name == name })
	if i < 0 {
		return descriptor{}, false
	}
	return builtin[i], true
}

func (d descriptor) runsAt(at Point) bool { return slices.Contains(d.points, at) }
