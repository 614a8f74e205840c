// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/resources"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
)

// Description is how each profile of a configuration decides.
type Description struct {
	Profiles []ProfileDescription `json:"profiles"`
}

// ProfileDescription is about one profile.
type ProfileDescription struct {
	SchedulerName string `json:"schedulerName"`
	// Search is the strategy in words.
	Search string `json:"search"`
	// Fit is what makes a node full, in words.
	Fit string `json:"fit"`
	// Preemption is how many nodes are searched for victims, in words.
	Preemption string              `json:"preemption"`
	Plugins    []PluginDescription `json:"plugins"`
	// Extenders are the extenders that take part in the profile's decisions.
	Extenders []ExtenderDescription `json:"extenders,omitempty"`
}

// PluginDescription is about one plugin of a profile; they are in the order of the default profile, custom ones last.
type PluginDescription struct {
	Name   string         `json:"name"`
	Points []config.Point `json:"points"`
	Weight int64          `json:"weight,omitempty"` // of its score
	// Acting is false for a plugin that can be configured but is not implemented; Why is the reason.
	Acting bool   `json:"acting"`
	Why    string `json:"why,omitempty"`
	// Filter and Score report whether the plugin's result for a node is cached while the node stays the same; nil if
	// the plugin does neither.
	Filter *FastPath `json:"filter,omitempty"`
	Score  *FastPath `json:"score,omitempty"`
}

// FastPath reports whether a plugin uses cached results of earlier decisions.
type FastPath struct {
	On bool `json:"on"`
	// OffBy is the plugin that disabled it, which may be the plugin itself; Why is the reason, and Pods for which
	// pods. Groups: pods outside of the fast path are evaluated by groups of nodes, as long as there are few of them.
	Groups bool   `json:"groups,omitempty"`
	OffBy  string `json:"offBy,omitempty"`
	Why    string `json:"why,omitempty"`
	Pods   string `json:"pods,omitempty"`
}

// ExtenderDescription is about an extender.
type ExtenderDescription struct {
	URL   string   `json:"url"`
	Verbs []string `json:"verbs"`
	// Pods are the pods that leave the fast path because of it, and Why is the reason.
	Pods string `json:"pods"`
	Why  string `json:"why"`
}

// perDecision has the plugins that are evaluated again for each decision, with the reason and the pods: plugin ->
// text. They skip other pods.
var perDecision = map[string]struct{ pods, why string }{
	config.InterPodAffinity: {"pods with affinity to pods, and pods that such pods mean",
		"counts pods on other nodes"},
	config.PodTopologySpread: {"pods with spread constraints, of their own or by default",
		"counts pods on other nodes"},
	config.VolumeRestrictions: {"pods with volumes", "looks at who else uses a claim"},
	config.NodeVolumeLimits:   {"pods with volumes", "looks at claims, volumes and attachments"},
	config.VolumeBinding:      {"pods with claims", "looks at claims, volumes and storage classes"},
	config.VolumeZone:         {"pods with claims", "looks at claims and volumes"},
	config.DynamicResources: {"pods with resource claims, or extended resources that devices back",
		"asks the allocator of devices node by node"},
}

// Describe returns how the profiles of a configuration decide, without starting anything.
func (p Plugins) Describe(c config.Resolved) (Description, error) {
	made, err := p.EngineConfig(c)
	if err != nil {
		return Description{}, err
	}
	var out Description
	for i, profile := range c.Profiles {
		d := ProfileDescription{SchedulerName: profile.SchedulerName, Search: searchText(profile.Search),
			Fit: fitText(profile.Fit), Preemption: preemptionText(made.Profiles[i].Preemption),
			Plugins: p.describeProfile(profile, made.Profiles[i])}
		for _, e := range c.Extenders {
			d.Extenders = append(d.Extenders, describeExtender(e))
		}
		out.Profiles = append(out.Profiles, d)
	}
	return out, nil
}

// describeProfile describes the plugins that a profile enables.
func (p Plugins) describeProfile(profile config.Profile, made engine.Profile) []PluginDescription {
	var out []PluginDescription
	filters, scores := fastFilters(made), fastScores(made)
	for _, name := range p.catalog.Plugins() {
		points := pointsOf(profile, name)
		if len(points) == 0 {
			continue
		}
		about := PluginDescription{Name: name, Points: points, Weight: profile.Weights[name], Acting: p.has(name),
			Filter: filters[name], Score: scores[name]}
		if !about.Acting {
			about.Why = config.Without(name)
		}
		if name == config.NodeResourcesFit && profile.Fit == config.Slots {
			out = append(out, PluginDescription{Name: resources.NodeSlotsName,
				Points: []config.Point{config.Filter}, Acting: true, Filter: filters[resources.NodeSlotsName]})
			about.Points = slices.DeleteFunc(points, func(at config.Point) bool {
				return at == config.PreFilter || at == config.Filter
			})
		}
		if len(about.Points) > 0 {
			out = append(out, about)
		}
	}
	return out
}

func pointsOf(p config.Profile, name string) []config.Point {
	var points []config.Point
	for _, at := range config.Points() {
		if p.Runs(at, name) {
			points = append(points, at)
		}
	}
	return points
}

// fastFilters returns for each filter whether its verdicts are cached: plugin -> answer. All filters after the first
// one that is evaluated again are too, because a rejection is attributed to the first filter that rejects.
func fastFilters(p engine.Profile) map[string]*FastPath {
	out := map[string]*FastPath{}
	first := ""
	for _, f := range p.Filters {
		name := f.Name()
		uncached := !plugin.ReadsOf(f).Cached()
		switch {
		case uncached:
			_, groups := f.(plugin.GroupScorer) // a plugin that scores by groups filters by groups
			out[name] = off(name, groups)
		case first != "":
			out[name] = &FastPath{OffBy: first, Why: "comes after " + first +
				", which is asked anew for each decision", Pods: "pods that it does not skip"}
		default:
			out[name] = &FastPath{On: true}
		}
		if uncached && first == "" {
			first = name
		}
	}
	return out
}

// fastScores returns for each scorer whether its raw scores are cached: plugin -> answer.
func fastScores(p engine.Profile) map[string]*FastPath {
	out := map[string]*FastPath{}
	for _, s := range p.Scorers {
		_, uncached := s.Scorer.(plugin.UncachedScorer)
		if uncached || !s.Reads().Cached() {
			_, groups := s.Scorer.(plugin.GroupScorer)
			out[s.Name()] = off(s.Name(), groups)
		} else {
			out[s.Name()] = &FastPath{On: true}
		}
	}
	return out
}

func off(name string, groups bool) *FastPath {
	reason, known := perDecision[name]
	if !known {
		reason.pods, reason.why = "pods that it does not skip", "may read more than the node and the pod"
	}
	return &FastPath{OffBy: name, Groups: groups, Why: reason.why, Pods: reason.pods}
}

func describeExtender(e configv1.Extender) ExtenderDescription {
	out := ExtenderDescription{URL: e.URLPrefix, Pods: "all pods"}
	for _, verb := range []struct{ name, path string }{
		{"filter", e.FilterVerb}, {"prioritize", e.PrioritizeVerb}, {"preempt", e.PreemptVerb}, {"bind", e.BindVerb},
	} {
		if verb.path != "" {
			out.Verbs = append(out.Verbs, verb.name)
		}
	}
	if len(e.ManagedResources) > 0 {
		names := make([]string, len(e.ManagedResources))
		for i, r := range e.ManagedResources {
			names[i] = r.Name
		}
		slices.Sort(names)
		out.Pods = "pods that ask for " + strings.Join(names, " or ")
	}
	if out.Why = "is sent the name of every node that fits"; e.FilterVerb == "" && e.PrioritizeVerb == "" {
		out.Pods, out.Why = "no pods", "takes no part in the choice of a node"
	}
	return out
}

func preemptionText(c *preempt.Config) string {
	if c == nil {
		return "off: no pod is evicted"
	}
	out := "all: the smallest loss on any node"
	if l := c.Limit; l != nil {
		out = fmt.Sprintf("the smallest loss on the first nodes found, %d%% of those where evictions may help and "+
			"at least %d", l.MinPercentage, l.MinAbsolute)
	}
	if c.Sync {
		out += "; a pod may be tried again before its victims are deleted"
	}
	if c.Strict {
		out += "; never against a disruption budget"
	}
	if c.After > 0 {
		out += fmt.Sprintf("; not before a pod or gang has waited %v for new nodes", time.Duration(c.After))
	}
	if c.PodsOnly {
		out += "; not for gangs"
	}
	return out
}

func searchText(s config.Search) string {
	switch s.Strategy {
	case config.Window:
		if s.Percentage == 0 {
			return "window: nodes in turn, until the share of them fits that kube-scheduler's own formula gives"
		}
		return fmt.Sprintf("window: nodes in turn, until %d%% of them fit", s.Percentage)
	case config.RandomSubset:
		return fmt.Sprintf("randomSubset: the best of %d random nodes that fit", s.Subset)
	case config.PowerOfTwo:
		return "powerOfTwo: the better of two random nodes that fit"
	}
	return "all: the best of all nodes that fit"
}

func fitText(f config.Fit) string {
	if f == config.Slots {
		return "slots: each node takes one pod, whatever it asks for"
	}
	return "resources: what pods ask for, and how many pods a node takes"
}
