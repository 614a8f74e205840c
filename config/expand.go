// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"

	configv1 "k8s.io/kube-scheduler/config/v1"
)

// all disables every plugin of a point.
const all = "*"

// plugins expands the plugin sets of a profile: the plugins at each point, and their weights where plugins score.
func (r *report) plugins(path string, custom *configv1.Plugins) (enabled map[Point][]string, scores,
	placementScores map[string]int64) {
	if custom == nil {
		custom = &configv1.Plugins{}
	}
	before := len(r.problems)
	for _, at := range append([]Point{MultiPoint}, points...) {
		r.checkSet(path+"."+string(at), at, set(custom, at))
	}
	if len(r.problems) > before {
		return nil, nil, nil
	}
	multi := r.catalog.Features().mergeDefaults(custom.MultiPoint)
	enabled = map[Point][]string{}
	for _, at := range points {
		if names := r.catalog.expand(at, multi, set(custom, at)); len(names) > 0 {
			enabled[at] = names
		}
	}
	r.checkEnabled(path, enabled, r.catalog.candidates(enabled, custom))
	return enabled, weights(enabled[Score], custom.Score.Enabled, multi),
		weights(enabled[PlacementScore], custom.PlacementScore.Enabled, multi)
}

// checkSet checks the names and weights of one set.
func (r *report) checkSet(path string, at Point, s *configv1.PluginSet) {
	seen := map[string]bool{}
	for i, p := range s.Enabled {
		here := fmt.Sprintf("%s.enabled[%d]", path, i)
		d, known := r.catalog.describe(p.Name)
		switch {
		case !known:
			r.add(here+".name", "%s", r.catalog.unknown(p.Name))
		case at != MultiPoint && !d.runsAt(at):
			r.add(here+".name", "plugin %q does not extend %s; it extends %s", p.Name, at, pointList(d.points))
		case seen[p.Name]:
			r.add(here+".name", "plugin %q is enabled twice", p.Name)
		}
		seen[p.Name] = true
		if d.without != "" {
			r.warn(here+".name", "plugin %q has no effect: %s", p.Name, d.without)
		}
		if p.Weight != nil && *p.Weight < 0 {
			r.add(here+".weight", "must not be negative, got %d", *p.Weight)
		} else if p.Weight != nil && *p.Weight > 0 && known && !d.runsAt(Score) && !d.runsAt(PlacementScore) {
			r.warn(here+".weight", "plugin %q does not score, its weight has no effect", p.Name)
		}
	}
	for i, p := range s.Disabled {
		// A name of upstream may be disabled here; an unknown name is more likely a typing error.
		if _, known := r.catalog.describe(p.Name); !known && p.Name != all && !slices.Contains(removed, p.Name) {
			r.warn(fmt.Sprintf("%s.disabled[%d].name", path, i), "there is no plugin %q to disable", p.Name)
		}
	}
}

// unknown returns what is wrong with a name.
func (c Catalog) unknown(name string) string {
	var why string
	switch {
	case name == "":
		why = "a plugin name is required"
	case slices.Contains(removed, name):
		why = fmt.Sprintf("plugin %q was removed from Kubernetes", name)
	case elsewhere[name] != "":
		return fmt.Sprintf("unknown plugin %q: %s", name, elsewhere[name])
	default:
		why = fmt.Sprintf("unknown plugin %q", name)
		if near := c.nearest(name); near != "" {
			why += fmt.Sprintf(", did you mean %q?", near)
		}
	}
	return why + "; available: " + strings.Join(c.Plugins(), ", ")
}

// nearest returns the plugin whose name differs only in letter case, or has the same start.
func (c Catalog) nearest(name string) string {
	for _, known := range c.Plugins() {
		if strings.EqualFold(known, name) {
			return known
		}
	}
	for _, known := range c.Plugins() {
		if len(name) >= 6 && strings.HasPrefix(strings.ToLower(known), strings.ToLower(name[:6])) {
			return known
		}
	}
	return ""
}

func pointList(list []Point) string {
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = string(p)
	}
	return strings.Join(names, ", ")
}

// mergeDefaults applies a custom multiPoint set to the default profile: a disabled default is removed, a default that
// is enabled again keeps its position with the new weight, and the rest is appended (upstream: mergePluginSet in
// pkg/scheduler/apis/config/v1/default_plugins.go).
func (f Features) mergeDefaults(custom configv1.PluginSet) []configv1.Plugin {
	off := func(name string) bool {
		return slices.ContainsFunc(custom.Disabled, func(p configv1.Plugin) bool {
			return p.Name == all || p.Name == name
		})
	}
	var out []configv1.Plugin
	for _, d := range builtin {
		if off(d.name) || !f.inDefaultProfile(d.name) {
			continue
		}
		weight := d.weight
		out = append(out, configv1.Plugin{Name: d.name, Weight: &weight})
	}
	for _, p := range custom.Enabled {
		i := slices.IndexFunc(out, func(have configv1.Plugin) bool { return have.Name == p.Name })
		if i >= 0 {
			out[i] = p
			continue
		}
		out = append(out, p)
	}
	return out
}

// expand returns the plugins of one point: first those in both sets, in the order of the point's own set, then the
// rest of multiPoint, then the rest of the own set (upstream: expandMultiPointPlugins in
// pkg/scheduler/framework/runtime/framework.go).
func (c Catalog) expand(at Point, multi []configv1.Plugin, own *configv1.PluginSet) []string {
	disabled := func(name string) bool {
		return slices.ContainsFunc(own.Disabled, func(p configv1.Plugin) bool { return p.Name == name })
	}
	var viaMulti []string
	if !disabled(all) {
		for _, p := range multi {
			if d, _ := c.describe(p.Name); d.runsAt(at) && !disabled(p.Name) {
				viaMulti = append(viaMulti, p.Name)
			}
		}
	}
	var both, rest []string
	for _, p := range own.Enabled {
		if slices.Contains(viaMulti, p.Name) {
			both = append(both, p.Name)
		} else {
			rest = append(rest, p.Name)
		}
	}
	viaMulti = slices.DeleteFunc(viaMulti, func(name string) bool { return slices.Contains(both, name) })
	return slices.Concat(both, viaMulti, rest)
}

// candidates returns the plugins with undeclared points that are enabled by multiPoint alone; see Profile.Candidates.
func (c Catalog) candidates(enabled map[Point][]string, custom *configv1.Plugins) map[Point][]string {
	if custom == nil {
		return nil // only a profile's own multiPoint enables custom plugins
	}
	var out map[Point][]string // point -> plugin names
	for _, at := range points {
		for _, name := range enabled[at] {
			p, _ := c.find(name)
			named := slices.ContainsFunc(set(custom, at).Enabled, func(e configv1.Plugin) bool {
				return e.Name == name
			})
			if !p.Undeclared || named {
				continue
			}
			if out == nil {
				out = map[Point][]string{}
			}
			out[at] = append(out[at], name)
		}
	}
	return out
}

// checkEnabled checks the expanded lists. Candidates for sorting the queue are checked once they are made.
func (r *report) checkEnabled(path string, enabled, candidates map[Point][]string) {
	all, open := len(enabled[QueueSort]), len(candidates[QueueSort])
	if certain := all - open; certain > 1 || all == 0 {
		r.add(path+"."+string(QueueSort), "exactly one plugin must sort the queue, got %d", certain)
	}
	if len(enabled[Bind]) == 0 {
		r.add(path+"."+string(Bind), "at least one plugin must bind")
	}
	for _, d := range builtin {
		r.checkPair(path, d, PreFilter, Filter, enabled)
		r.checkPair(path, d, PreScore, Score, enabled)
		r.checkReserve(path, d, enabled)
	}
}

// preparesNothing are the plugins whose PreFilter reads only bound pods whose resize is deferred (upstream: gate
// InPlacePodVerticalScalingSchedulerPreemption).
var preparesNothing = []string{NodeName, NodeUnschedulable, TaintToleration}

// checkPair warns of a plugin that is enabled at one of two points that are one function here.
func (r *report) checkPair(path string, d descriptor, pre, main Point, enabled map[Point][]string) {
	if d.without != "" || !d.runsAt(pre) || !d.runsAt(main) ||
		pre == PreFilter && slices.Contains(preparesNothing, d.name) {
		return
	}
	preOn, mainOn := slices.Contains(enabled[pre], d.name), slices.Contains(enabled[main], d.name)
	switch {
	case mainOn && !preOn:
		r.warn(path+"."+string(pre), "plugin %q runs at %s, so it prepares at %s too", d.name, main, pre)
	case preOn && !mainOn:
		r.warn(path+"."+string(main), "plugin %q is off at %s, so what it prepares at %s has no effect", d.name, main,
			pre)
	}
}

// checkReserve warns of a plugin that is enabled at only one of reserve and preBind, which are one function here.
func (r *report) checkReserve(path string, d descriptor, enabled map[Point][]string) {
	if !d.runsAt(Reserve) || !d.runsAt(PreBind) {
		return
	}
	reserves, writes := slices.Contains(enabled[Reserve], d.name), slices.Contains(enabled[PreBind], d.name)
	switch {
	case reserves && !writes:
		r.warn(path+"."+string(PreBind), "plugin %q reserves, so it writes what it reserved at %s too", d.name, PreBind)
	case writes && !reserves:
		r.warn(path+"."+string(Reserve), "plugin %q is off at %s, so it has nothing to write at %s", d.name, Reserve,
			PreBind)
	}
}

// weights takes a plugin's weight from the set of the point, then from multiPoint; 0 or none is 1. Weights have 32
// bits in the file, so total scores of 64 bits cannot overflow.
func weights(enabled []string, score, multi []configv1.Plugin) map[string]int64 {
	sources := slices.Concat(score, multi)
	out := map[string]int64{} // plugin -> weight
	for _, name := range enabled {
		var weight int64
		for _, p := range sources {
			if p.Name == name {
				weight = int64(orDefault(p.Weight, 0))
				break
			}
		}
		out[name] = max(weight, 1)
	}
	return out
}
