// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/pflag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	_ "k8s.io/component-base/logs/json/register" // brings flags; kube-scheduler's main has it
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// Flag is a flag of kube-scheduler.
type Flag struct {
	Section   string `json:"section"`
	Name      string `json:"name"`
	Shorthand string `json:"shorthand,omitempty"`
	Type      string `json:"type"`
	Default   string `json:"default"`
	// Bare is the value that the flag has when none follows it.
	Bare string `json:"bare,omitempty"`
	// Deprecated is what the flag's parser warns with. Flags of the section "deprecated" have none: upstream only
	// says so in their help.
	Deprecated string `json:"deprecated,omitempty"`
	Hidden     bool   `json:"hidden,omitempty"`
}

// Stage is how a gate is from a version on.
type Stage struct {
	Since   string `json:"since"`
	Stage   string `json:"stage"` // as upstream writes it; GA is empty there
	Default bool   `json:"default,omitempty"`
	Locked  bool   `json:"locked,omitempty"`
	// MinCompatibility is the least --min-compatibility-version from which this stage counts.
	MinCompatibility string `json:"minCompatibility,omitempty"`
}

// Gate is a feature gate that kube-scheduler knows, with its history: --emulated-version goes back in it.
type Gate struct {
	Name   string   `json:"name"`
	Stages []Stage  `json:"stages"`
	Needs  []string `json:"needs,omitempty"` // gates without which it cannot be on
}

// Flags lists the flags of upstream's command, by section in the order of its help, then by name.
func Flags() []Flag {
	c := app.NewSchedulerCommand()
	o := options.NewOptions() // the command does not tell its sections
	var out []Flag
	listed := map[string]bool{} // flag -> listed
	add := func(section string, f *pflag.Flag) {
		listed[f.Name] = true
		out = append(out, Flag{section, f.Name, f.Shorthand, f.Value.Type(), f.DefValue, f.NoOptDefVal, f.Deprecated, f.Hidden})
	}
	for _, section := range o.Flags.Order {
		o.Flags.FlagSets[section].VisitAll(func(f *pflag.Flag) { add(section, c.Flags().Lookup(f.Name)) })
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !listed[f.Name] {
			add("global", f)
		}
	})
	return out
}

// Gates lists the gates that upstream's command knows, by name.
func Gates() []Gate {
	known := options.NewOptions().ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent).(featuregate.MutableVersionedFeatureGate)
	needs := known.Dependencies()
	all := known.GetAllVersioned()
	var out []Gate
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name == "AllAlpha" || name == "AllBeta" {
			continue // every feature gate of component-base has them
		}
		g := Gate{Name: string(name)}
		for _, spec := range all[name] {
			s := Stage{Since: spec.Version.String(), Stage: string(spec.PreRelease), Default: spec.Default, Locked: spec.LockToDefault}
			if spec.MinCompatibilityVersion != nil {
				s.MinCompatibility = spec.MinCompatibilityVersion.String()
			}
			g.Stages = append(g.Stages, s)
		}
		for _, need := range needs[name] {
			g.Needs = append(g.Needs, string(need))
		}
		out = append(out, g)
	}
	return out
}

// lines writes a list as JSON with one entry a line, so that a change of one entry is a change of one line.
func lines[T any](list []T) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("[\n")
	for i, entry := range list {
		line, err := json.Marshal(entry)
		if err != nil {
			return nil, fmt.Errorf("writing entry %d: %w", i, err)
		}
		out.Write(line)
		if i < len(list)-1 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
	}
	out.WriteString("]\n")
	return out.Bytes(), nil
}
