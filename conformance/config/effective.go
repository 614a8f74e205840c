// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	ours "github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/conformance/release"
)

// Effective is the effective configuration of a file, in a form that both sides can be converted to.
type Effective struct {
	// Process is what holds for all profiles: field -> value in JSON's terms.
	Process  map[string]any
	Profiles []Profile
}

// Profile is one profile with every default filled in.
type Profile struct {
	Name string
	// Percentage of nodes to score, for this profile or for all.
	Percentage int32
	// Plugins: extension point -> plugins in the order in which they run.
	Plugins map[string][]Plugin
	// Args: plugin -> arguments in JSON's terms, of the plugins that run and take some.
	Args map[string]any
}

// Plugin is a plugin at an extension point; the weight is that of its score, 0 at other points.
type Plugin struct {
	Name   string
	Weight int64
}

// process is what a configuration says for all profiles: field -> value in JSON's terms. The global percentage is left
// to the profiles.
func process(c any) (map[string]any, error) {
	value, err := plain(c)
	if err != nil {
		return nil, err
	}
	out, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("a configuration is a %T", value)
	}
	delete(out, "profiles")
	delete(out, "percentageOfNodesToScore")
	return out, nil
}

// Kumiki asks package config. Its effective configuration is read from what it would write as a file.
func Kumiki(text []byte) (Answer, ours.Resolved) {
	resolved, err := release.Catalog().Parse(text)
	if err != nil {
		a := Answer{Text: err.Error()}
		var e *ours.Error
		if !errors.As(err, &e) {
			panic(fmt.Sprintf("an error of package config without problems: %v", err))
		}
		for _, p := range e.Problems {
			a.Paths = append(a.Paths, p.Path)
			a.Problems = append(a.Problems, p.Path+": "+p.Message)
		}
		slices.Sort(a.Paths)
		a.Paths = slices.Compact(a.Paths)
		return a, resolved
	}
	return Answer{Effective: read(resolved)}, resolved
}

// read brings our configuration to the common form.
func read(c ours.Resolved) *Effective {
	wire, err := c.Wire()
	if err != nil {
		panic(fmt.Sprintf("writing an accepted configuration: %v", err))
	}
	out := &Effective{}
	if out.Process, err = process(wire); err != nil {
		panic(fmt.Sprintf("reading our own configuration: %v", err))
	}
	for i, p := range c.Profiles {
		made := Profile{Name: p.SchedulerName, Percentage: p.PercentageOfNodesToScore, Plugins: map[string][]Plugin{}, Args: map[string]any{}}
		for point, names := range p.Enabled { // order: a map is filled
			for _, name := range names {
				entry := Plugin{Name: name}
				if point == ours.Score {
					entry.Weight = p.Weights[name]
				}
				made.Plugins[string(point)] = append(made.Plugins[string(point)], entry)
			}
		}
		for _, pc := range wire.Profiles[i].PluginConfig {
			if made.Args[pc.Name], err = plain(json.RawMessage(pc.Args.Raw)); err != nil {
				panic(fmt.Sprintf("our own arguments of %s: %v", pc.Name, err))
			}
		}
		out.Profiles = append(out.Profiles, made)
	}
	return out
}

// plain is a value in JSON's terms, without kind and version.
func plain(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	if m, ok := v.(map[string]any); ok {
		delete(m, "kind")
		delete(m, "apiVersion")
	}
	return v, nil
}

// Differences lists where two effective configurations differ, as "field: upstream, ours". Arguments of plugins that do
// not run in upstream are not compared: there are none there.
func Differences(upstream, kumiki *Effective) []string {
	var out []string
	var diff func(path string, a, b any)
	diff = func(path string, a, b any) {
		x, isObject := a.(object)
		y, both := b.(object)
		switch {
		case isObject && both:
			names := append(slices.Collect(maps.Keys(x)), slices.Collect(maps.Keys(y))...)
			slices.Sort(names)
			for _, name := range slices.Compact(names) {
				diff(path+"."+name, x[name], y[name])
			}
		case !reflect.DeepEqual(a, b):
			out = append(out, fmt.Sprintf("%s: %s, %s", strings.TrimPrefix(path, "."), asJSON(a), asJSON(b)))
		}
	}
	diff("", upstream.Process, kumiki.Process)
	if len(upstream.Profiles) != len(kumiki.Profiles) {
		return append(out, fmt.Sprintf("profiles: %d, %d", len(upstream.Profiles), len(kumiki.Profiles)))
	}
	for i, a := range upstream.Profiles {
		b, path := kumiki.Profiles[i], fmt.Sprintf("profiles[%d].", i)
		diff(path+"schedulerName", a.Name, b.Name)
		diff(path+"percentageOfNodesToScore", a.Percentage, b.Percentage)
		for _, point := range ours.Points() {
			diff(path+"plugins."+string(point), a.Plugins[string(point)], b.Plugins[string(point)])
		}
		for _, name := range slices.Sorted(maps.Keys(a.Args)) {
			diff(path+"args."+name, a.Args[name], b.Args[name])
		}
	}
	return out
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
