// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"

	configv1 "k8s.io/kube-scheduler/config/v1"
)

// Custom is a plugin that a program adds to the default plugins.
type Custom struct {
	Name string
	// Points are its extension points, in the order of the cycle.
	Points []Point
	// DefaultArgs returns its default arguments, a struct that encoding/json reads and writes. It is nil for a plugin
	// without arguments.
	DefaultArgs func() any
	// RawArgs says that the plugin decodes its arguments itself: they are the JSON of the file (json.RawMessage), and
	// DefaultArgs is nil.
	RawArgs bool
	// CheckArgs returns what is wrong with raw arguments, as a decoder of JSON says it; nil checks nothing.
	CheckArgs func(json.RawMessage) error
	// Undeclared says that only the plugin, once made, shows which of Points it extends; see Profile.Candidates. As
	// with upstream's registry, such a plugin's name may be empty.
	Undeclared bool
	// Framework says that it is written for kube-scheduler's framework.
	Framework bool
}

// Catalog is the plugins that a profile can enable: the default plugins and the custom ones of a program, and the
// features with which files are read. Its zero value has the default plugins alone, and the default features.
type Catalog struct {
	// Invariant: the names are unique, and none is that of a default plugin.
	custom   []Custom
	features *Features // nil for DefaultFeatures
}

// NewCatalog returns a catalog with custom plugins.
func NewCatalog(custom ...Custom) (Catalog, error) {
	var c Catalog
	for _, p := range custom {
		if err := c.check(p); err != nil {
			return Catalog{}, fmt.Errorf("custom plugin %q: %w", p.Name, err)
		}
		c.custom = append(c.custom, p)
	}
	return c, nil
}

// check returns what keeps a custom plugin out of the catalog.
func (c Catalog) check(p Custom) error {
	_, known := c.describe(p.Name)
	_, builtin := Catalog{}.describe(p.Name)
	switch {
	case p.Name == "" && !p.Undeclared || p.Name == all:
		return errors.New("it needs a name")
	case builtin || p.Name == Kumiki || slices.Contains(removed, p.Name):
		return errors.New("the name belongs to kumiki or to a plugin of kube-scheduler; use another one")
	case known:
		return errors.New("it is added twice")
	case len(p.Points) == 0:
		return errors.New("it extends no extension point")
	case p.DefaultArgs == nil:
		return nil
	}
	args := p.DefaultArgs()
	if args == nil || reflect.TypeOf(args).Kind() != reflect.Struct {
		return fmt.Errorf("its default arguments must be a struct, got %T", args)
	}
	if _, err := json.Marshal(args); err != nil {
		return fmt.Errorf("its default arguments: %w", err)
	}
	return nil
}

// Read reads a configuration file.
func (c Catalog) Read(path string) (Resolved, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Resolved{}, fmt.Errorf("reading the configuration: %w", err)
	}
	r, err := c.Parse(text)
	var e *Error
	if errors.As(err, &e) {
		e.File = path
	}
	return r, err
}

// Parse reads the text of a configuration file, YAML or JSON. Every problem that it finds is in the error, an *Error.
func (c Catalog) Parse(text []byte) (Resolved, error) {
	r := &report{catalog: c}
	wire, ok := r.decode(text)
	if !ok {
		return Resolved{}, r.err()
	}
	resolved := r.resolve(wire)
	return resolved, r.err()
}

// Plugins returns the plugins that a profile can enable: the default plugins in the order of the default profile, those
// that have no effect, those of kumiki that are in no default profile, then the custom ones.
func (c Catalog) Plugins() []string {
	names := slices.Concat(Plugins(), GatedPlugins(), OptionalPlugins())
	for _, p := range c.custom {
		names = append(names, p.Name)
	}
	return names
}

// Missing returns the plugins that a configuration enables and the catalog does not have, sorted.
func (c Catalog) Missing(wire *configv1.KubeSchedulerConfiguration) []string {
	var names []string
	for _, p := range wire.Profiles {
		if p.Plugins == nil {
			continue
		}
		for _, at := range append([]Point{MultiPoint}, points...) {
			for _, entry := range set(p.Plugins, at).Enabled {
				if _, known := c.describe(entry.Name); !known {
					names = append(names, entry.Name)
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// describe returns the extension points of a plugin; ok is false for an unknown one.
func (c Catalog) describe(name string) (d descriptor, ok bool) {
	if d, known := lookup(name); known {
		return d, true
	}
	if p, ok := c.find(name); ok {
		return descriptor{name: p.Name, points: p.Points}, true
	}
	return descriptor{}, false
}

// find returns a custom plugin.
func (c Catalog) find(name string) (p Custom, ok bool) {
	i := slices.IndexFunc(c.custom, func(p Custom) bool { return p.Name == name })
	if i < 0 {
		return Custom{}, false
	}
	return c.custom[i], true
}

// customArgs returns the arguments of the custom plugins that a profile enables, and checks those of the others.
func (r *report) customArgs(path string, in []configv1.PluginConfig, enabled map[Point][]string) map[string]any {
	var out map[string]any // plugin -> arguments
	for _, p := range r.catalog.custom {
		if p.DefaultArgs == nil && !p.RawArgs {
			continue
		}
		var args any
		if !p.RawArgs {
			args = p.DefaultArgs()
		}
		if i := slices.IndexFunc(in, func(pc configv1.PluginConfig) bool { return pc.Name == p.Name }); i >= 0 {
			args = r.decodeCustom(fmt.Sprintf("%s[%d].args", path, i), in[i].Args.Raw, args, p.CheckArgs)
		}
		if args == nil {
			continue
		}
		runs := slices.ContainsFunc(points, func(at Point) bool { return slices.Contains(enabled[at], p.Name) })
		if !runs {
			continue
		}
		if out == nil {
			out = map[string]any{}
		}
		out[p.Name] = args
	}
	return out
}

// decodeCustom decodes arguments strictly, or returns them as they are if there are no defaults. A field of the file
// replaces the whole field of the defaults.
func (r *report) decodeCustom(path string, raw []byte, defaults any, check func(json.RawMessage) error) any {
	if defaults == nil { // RawArgs
		if len(raw) == 0 {
			return nil
		}
		if check != nil {
			r.rawArgs(path, check(raw))
		}
		return json.RawMessage(slices.Clone(raw))
	}
	if len(raw) == 0 || !r.unmarshal(raw, path, reflect.New(reflect.TypeOf(defaults)).Interface()) {
		return defaults
	}
	args, err := override(defaults, raw)
	if err != nil {
		r.add(path, "%v", err)
	}
	return args
}

// What decoders say of fields.
var (
	unknownField = regexp.MustCompile(`unknown field "([^"]+)"`)
	wrongField   = regexp.MustCompile(`Go struct field [^.\s]+\.(\S+) of type`)
)

// rawArgs adds the error of a decoder that does not know where the arguments are in the file.
func (r *report) rawArgs(path string, err error) {
	if err == nil {
		return
	}
	if unknown := unknownField.FindAllStringSubmatch(err.Error(), -1); len(unknown) > 0 {
		for _, field := range unknown {
			r.addAt(path+"."+field[1], "unknown field")
		}
		return
	}
	if field := wrongField.FindStringSubmatch(err.Error()); field != nil {
		path += "." + field[1]
	}
	r.addAt(path, err.Error())
}

// override returns a struct of the type of defaults: its fields are those of a JSON object, and else the defaults.
func override(defaults any, object []byte) (any, error) {
	text, err := json.Marshal(defaults)
	if err != nil {
		return nil, err
	}
	var fields, given map[string]json.RawMessage // field -> value
	if err := errors.Join(json.Unmarshal(text, &fields), json.Unmarshal(object, &given)); err != nil {
		return nil, err
	}
	maps.Copy(fields, given)
	if text, err = json.Marshal(fields); err != nil {
		return nil, err
	}
	out := reflect.New(reflect.TypeOf(defaults))
	err = json.Unmarshal(text, out.Interface())
	return out.Elem().Interface(), err
}
