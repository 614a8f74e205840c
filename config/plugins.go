// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"

	configv1 "k8s.io/kube-scheduler/config/v1"
)

// Point is an extension point, named as in a configuration file.
type Point string

// The extension points, in the order of the cycle, and MultiPoint, which means all points of a plugin.
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

	MultiPoint         Point = "multiPoint"
	PlacementGenerate  Point = "placementGenerate"
	PlacementScore     Point = "placementScore"
	PodGroupPostFilter Point = "podGroupPostFilter"
)

// points are the extension points, in the order of the cycle; those of pod groups are last.
var points = []Point{
	PreEnqueue, QueueSort, PreFilter, Filter, PostFilter, PreScore, Score, Reserve, Permit, PreBind, Bind, PostBind,
	PlacementGenerate, PlacementScore, PodGroupPostFilter,
}

// Points returns the extension points, in the order of the cycle; those of pod groups are last.
func Points() []Point { return slices.Clone(points) }

// OfPodGroups reports whether plugins run at a point for native pod groups alone.
func (at Point) OfPodGroups() bool {
	return at == PlacementGenerate || at == PlacementScore || at == PodGroupPostFilter
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
	case PodGroupPostFilter:
		return &p.PodGroupPostFilter
	}
	panic("config: no extension point " + string(at))
}

// The plugins of kube-scheduler 1.37.1's default profile.
const (
	SchedulingGates                 = "SchedulingGates"
	PrioritySort                    = "PrioritySort"
	NodeUnschedulable               = "NodeUnschedulable"
	NodeName                        = "NodeName"
	TaintToleration                 = "TaintToleration"
	NodeAffinity                    = "NodeAffinity"
	NodePorts                       = "NodePorts"
	NodeResourcesFit                = "NodeResourcesFit"
	VolumeRestrictions              = "VolumeRestrictions"
	NodeVolumeLimits                = "NodeVolumeLimits"
	VolumeBinding                   = "VolumeBinding"
	VolumeZone                      = "VolumeZone"
	PodTopologySpread               = "PodTopologySpread"
	InterPodAffinity                = "InterPodAffinity"
	DynamicResources                = "DynamicResources"
	DefaultPreemption               = "DefaultPreemption"
	NodeResourcesBalancedAllocation = "NodeResourcesBalancedAllocation"
	ImageLocality                   = "ImageLocality"
	DefaultBinder                   = "DefaultBinder"
	NodeDeclaredFeatures            = "NodeDeclaredFeatures"

	// The plugins that join the default profile with a feature gate.
	DeferredPodScheduling      = "DeferredPodScheduling"
	GangScheduling             = "GangScheduling"
	TopologyPlacementGenerator = "TopologyPlacementGenerator"
	PodGroupPodsCount          = "PodGroupPodsCount"

	// Kumiki is the name of our own settings in pluginConfig. It is not a plugin.
	Kumiki = "Kumiki"
)

// descriptor is the extension points of a plugin.
type descriptor struct {
	name   string
	points []Point
	weight int32 // in the default profile; 0 if it has none
	// without says what decides instead of a plugin that has no effect here; empty for all others. A profile may name
	// it, and with a feature it is in the default profile.
	without string
}

// builtin are the plugins of upstream's default profile, in its order, with all features on
// (upstream: pkg/scheduler/apis/config/v1/default_plugins.go).
var builtin = []descriptor{
	{SchedulingGates, []Point{PreEnqueue}, 0, ""},
	{PrioritySort, []Point{QueueSort}, 0, ""},
	{NodeName, []Point{PreFilter, Filter}, 0, ""},
	{NodeUnschedulable, []Point{PreFilter, Filter}, 0, ""},
	{TaintToleration, []Point{PreFilter, Filter, PreScore, Score}, 3, ""},
	{NodeAffinity, []Point{PreFilter, Filter, PreScore, Score}, 2, ""},
	{NodePorts, []Point{PreFilter, Filter}, 0, ""},
	{DeferredPodScheduling, []Point{PreFilter, Filter, Permit}, 0, notBuilt},
	{NodeResourcesFit, []Point{PreFilter, Filter, PreScore, Score, PlacementScore}, 1, ""},
	{VolumeRestrictions, []Point{PreFilter, Filter}, 0, ""},
	{NodeVolumeLimits, []Point{PreFilter, Filter}, 0, ""},
	{VolumeBinding, []Point{PreFilter, Filter, PreScore, Score, Reserve, PreBind}, 0, ""},
	{VolumeZone, []Point{PreFilter, Filter}, 0, ""},
	{PodTopologySpread, []Point{PreFilter, Filter, PreScore, Score}, 2, ""},
	{InterPodAffinity, []Point{PreFilter, Filter, PreScore, Score}, 2, ""},
	{DynamicResources, []Point{
		PreEnqueue, PreFilter, Filter, PostFilter, Score, Reserve, PreBind, PodGroupPostFilter,
	}, 2, ""},
	{DefaultPreemption, []Point{PreEnqueue, PostFilter, PodGroupPostFilter}, 0, ""},
	{NodeResourcesBalancedAllocation, []Point{PreScore, Score}, 1, ""},
	{ImageLocality, []Point{Score}, 1, ""},
	{DefaultBinder, []Point{Bind}, 0, ""},
	{NodeDeclaredFeatures, []Point{PreFilter, Filter}, 0, ""},
	{GangScheduling, []Point{PreEnqueue, Permit}, 0, gangsDecide},
	{TopologyPlacementGenerator, []Point{PlacementGenerate}, 0, gangsDecide},
	{PodGroupPodsCount, []Point{PlacementScore}, 1, gangsDecide},
}

const gangsDecide = "the engine places gangs; gangs in the arguments of Kumiki decide which"

const notBuilt = "not built in this version"

// removed are plugins that upstream's v1 rejects (upstream: invalidPluginsByVersion), sorted.
var removed = []string{"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"}

// elsewhere are plugins of other projects whose task needs no plugin here: name -> the setting to use instead.
var elsewhere = map[string]string{
	"Coscheduling": `set gangs: {sigs: "On"} in the arguments of Kumiki; kumiki then reads the pod groups of ` +
		"scheduler-plugins without a plugin",
}

// Plugins returns the plugins of the default profile with the default features, in its order.
func Plugins() []string {
	var names []string
	for _, d := range builtin {
		if d.without == "" {
			names = append(names, d.name)
		}
	}
	return names
}

// GatedPlugins returns the other plugins that a feature adds to the default profile, in its order. They have no effect.
func GatedPlugins() []string {
	var names []string
	for _, d := range builtin {
		if d.without != "" {
			names = append(names, d.name)
		}
	}
	return names
}

// Without returns what decides instead of a plugin that a profile may name and that has no effect; empty for any
// other plugin.
func Without(plugin string) string {
	d, _ := Catalog{}.describe(plugin)
	return d.without
}

func (d descriptor) runsAt(at Point) bool { return slices.Contains(d.points, at) }

// PluginsAt returns the plugins of kumiki that a profile can enable at a point: the default ones, in the order of the
// default profile, then those that are in no default profile.
func PluginsAt(at Point) []string {
	var names []string
	for _, d := range slices.Concat(builtin, optional) {
		if at == MultiPoint || d.runsAt(at) {
			names = append(names, d.name)
		}
	}
	return names
}
