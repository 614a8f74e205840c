// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"

	configv1 "k8s.io/kube-scheduler/config/v1"
)

// Settings are our own that hold for the whole process, from pluginConfig under the name Kumiki. Profiles may leave
// them out; two that say one must agree.
type Settings struct {
	// Seed is the key of the draws: among equally good nodes, and of nodes where the search samples them.
	Seed uint64
	// InFlightBinds bounds how many binds are on their way to the API server at once. Above 0.
	InFlightBinds int
	// Gangs says which declarations of gangs count.
	Gangs Gangs
}

// The defaults of Settings.
const (
	DefaultSeed          uint64 = 1
	DefaultInFlightBinds int    = 100
)

// Strategy is a way to search for a node.
type Strategy string

// The strategies.
const (
	// All looks at every node. It is the default unless percentageOfNodesToScore is above 0.
	All Strategy = "all"
	// Window is upstream's search: nodes in turn from where the last search stopped, until a share of them fit. The share
	// is percentageOfNodesToScore; 0 is upstream's own, which shrinks as clusters grow.
	Window Strategy = "window"
	// RandomSubset ranks so many of the nodes that fit, drawn at random.
	RandomSubset Strategy = "randomSubset"
	// PowerOfTwo ranks two of the nodes that fit, drawn at random.
	PowerOfTwo Strategy = "powerOfTwo"
)

// Strategies lists the strategies.
func Strategies() []Strategy { return []Strategy{All, Window, RandomSubset, PowerOfTwo} }

// Search is how a profile looks for a node.
type Search struct {
	Strategy Strategy
	// Percentage is upstream's percentageOfNodesToScore, 0 to 100, for Window; 0 is upstream's adaptive share.
	Percentage int32
	// Subset is how many nodes RandomSubset ranks; above 0 there, 0 elsewhere.
	Subset int
}

// KumikiArgs is how our settings stand in a file, as args of pluginConfig under the name Kumiki.
type KumikiArgs struct {
	Seed          *uint64    `json:"seed,omitempty"`
	InFlightBinds *int32     `json:"inFlightBinds,omitempty"`
	Strategy      *Strategy  `json:"strategy,omitempty"`
	Subset        *int32     `json:"subset,omitempty"`
	FitScoresReal bool       `json:"fitScoresReal,omitempty"`
	Gangs         *GangsArgs `json:"gangs,omitempty"`
	// SyncPreemption is as in Profile.
	SyncPreemption bool `json:"syncPreemption,omitempty"`
}

// settings reads our own settings: those of the process into out, those of each profile into its place in resolved.
func (r *report) settings(profiles []configv1.KubeSchedulerProfile, out *Resolved) {
	var seed, binds said[uint64]
	var gangs said[Gangs]
	for i, p := range profiles {
		args, path := r.kumikiArgs(fmt.Sprintf("profiles[%d].pluginConfig", i), p.PluginConfig)
		if args.InFlightBinds != nil && *args.InFlightBinds <= 0 {
			r.add(path+".inFlightBinds", "must be above 0, got %d", *args.InFlightBinds)
		}
		if args.Seed != nil {
			agree(r, &seed, path+".seed", *args.Seed)
			out.Kumiki.Seed = *args.Seed
		}
		if args.InFlightBinds != nil {
			agree(r, &binds, path+".inFlightBinds", uint64(*args.InFlightBinds))
			out.Kumiki.InFlightBinds = int(*args.InFlightBinds)
		}
		if args.Gangs != nil {
			out.Kumiki.Gangs = r.gangs(path+".gangs", args.Gangs)
			agree(r, &gangs, path+".gangs", out.Kumiki.Gangs)
		}
		out.Profiles[i].FitScoresReal, out.Profiles[i].SyncPreemption = args.FitScoresReal, args.SyncPreemption
		out.Profiles[i].Search = r.search(path, args, out.Profiles[i].PercentageOfNodesToScore)
	}
}

// kumikiArgs finds our settings in a profile. The path is where they stand.
func (r *report) kumikiArgs(path string, list []configv1.PluginConfig) (args KumikiArgs, at string) {
	i := slices.IndexFunc(list, func(pc configv1.PluginConfig) bool { return pc.Name == Kumiki })
	at = fmt.Sprintf("%s[%d].args", path, i)
	if i >= 0 && len(list[i].Args.Raw) > 0 && !r.unmarshal(list[i].Args.Raw, at, &args) {
		return KumikiArgs{}, at
	}
	return args, at
}

// said is what a profile says about the process.
type said[T comparable] struct {
	path  string // empty while nobody has said anything
	value T
}

// agree adds a problem when two profiles contradict each other about the process.
func agree[T comparable](r *report, before *said[T], path string, value T) {
	if before.path != "" && before.value != value && mutant != seedPerProfile {
		r.add(path, "must be the same as in %s (%v), because it holds for the whole process; got %v", before.path, before.value, value)
	}
	if before.path == "" {
		*before = said[T]{path, value}
	}
}

// search resolves how a profile looks for a node.
func (r *report) search(path string, args KumikiArgs, percentage int32) Search {
	out := Search{Strategy: All}
	switch {
	case args.Strategy != nil:
		out.Strategy = *args.Strategy
	case percentage != 0 && mutant != shareIsNoWindow:
		out.Strategy = Window
	}
	if !slices.Contains(Strategies(), out.Strategy) {
		r.add(path+".strategy", "must be one of %v, got %q", Strategies(), out.Strategy)
		return out
	}
	switch subset := orDefault(args.Subset, 0); {
	case out.Strategy == RandomSubset && subset <= 0 && mutant != subsetUnbounded:
		r.add(path+".subset", "strategy %s needs a number of nodes above 0, got %d", RandomSubset, subset)
	case out.Strategy == RandomSubset:
		out.Subset = int(subset)
	case args.Subset != nil:
		r.add(path+".subset", "only allowed with strategy %s, it is %s", RandomSubset, out.Strategy)
	}
	if out.Strategy == Window {
		out.Percentage = percentage
	} else if percentage != 0 {
		r.warn(path+".strategy", "strategy %s wins over percentageOfNodesToScore: %d", out.Strategy, percentage)
	}
	return out
}
