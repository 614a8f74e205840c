// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// Settings are our own settings of the whole process, from pluginConfig under the name Kumiki. Profiles may omit
// them; two that set one must agree.
type Settings struct {
	// Seed is the key of the random choices: among equally good nodes, and of nodes if the search samples them.
	Seed uint64
	// InFlightBinds bounds the number of concurrent binds. Above 0.
	InFlightBinds int
	// Gangs defines which declarations of gangs count.
	Gangs Gangs
	// Cycle defines when units are tried.
	Cycle Cycle
	// SessionPeriod is the time from the end of a session to the start of the next; 0 unless Cycle is InSessions.
	SessionPeriod time.Duration
	// Hosted is for plugins that are written for kube-scheduler's framework.
	Hosted Hosted
	// Wire defines how binds and events are sent.
	Wire Wire
	// Instances is how several instances share the cluster.
	Instances Instances
}

// Wire is how binds and events are sent to the API server. Both ways send the same bytes.
type Wire string

// The values of Wire.
const (
	// Prepared sends requests that are prepared once per kind. It is the default.
	Prepared Wire = "Prepared"
	// TypedClients uses client-go's typed clients. It stays for one release.
	TypedClients Wire = "TypedClients"
)

// Wires returns the values of Wire.
func Wires() []Wire { return []Wire{Prepared, TypedClients} }

// Cycle is the way in which waiting units are tried.
type Cycle string

// The cycles.
const (
	// Continuous tries a unit as soon as an event may help it. It is the default.
	Continuous Cycle = "continuous"
	// InSessions tries all units periodically, against one snapshot of the cluster.
	InSessions Cycle = "sessions"
)

// Cycles returns the values of Cycle.
func Cycles() []Cycle { return []Cycle{Continuous, InSessions} }

// Fit defines when a node is full.
type Fit string

// The values of Fit.
const (
	// Resources compares the requests of pods with the allocatable amounts of nodes, including the number of pods. It
	// is the default.
	Resources Fit = "resources"
	// Slots allows one pod on each node, whatever it requests.
	Slots Fit = "slots"
)

// Fits returns the values of Fit.
func Fits() []Fit { return []Fit{Resources, Slots} }

// The defaults of Settings.
const (
	DefaultSeed          uint64 = 1
	DefaultInFlightBinds int    = 100

	DefaultSessionPeriod = 5 * time.Second
)

// The bounds of a session period.
const (
	shortestSessionPeriod = 100 * time.Millisecond
	longestSessionPeriod  = time.Hour
)

// Strategy is a search strategy for a node.
type Strategy string

// The strategies.
const (
	// All evaluates every node. It is the default unless percentageOfNodesToScore is above 0.
	All Strategy = "all"
	// Window is upstream's search: nodes in turn from where the last search stopped, until a share of them fit. The
	// share is percentageOfNodesToScore; 0 is upstream's own, which shrinks as clusters grow.
	Window Strategy = "window"
	// RandomSubset ranks a fixed number of the nodes that fit, drawn at random.
	RandomSubset Strategy = "randomSubset"
	// PowerOfTwo ranks two of the nodes that fit, drawn at random.
	PowerOfTwo Strategy = "powerOfTwo"
)

// Strategies returns the values of Strategy.
func Strategies() []Strategy { return []Strategy{All, Window, RandomSubset, PowerOfTwo} }

// Search is how a profile searches for a node.
type Search struct {
	Strategy Strategy
	// Percentage is upstream's percentageOfNodesToScore, 0 to 100, for Window; 0 is upstream's adaptive share.
	Percentage int32
	// Subset is the number of nodes that RandomSubset ranks; above 0 there, 0 elsewhere.
	Subset int
}

// KumikiArgs is the form of our settings in a file, as args of pluginConfig under the name Kumiki.
type KumikiArgs struct {
	Seed          *uint64     `json:"seed,omitempty"`
	InFlightBinds *int32      `json:"inFlightBinds,omitempty"`
	Strategy      *Strategy   `json:"strategy,omitempty"`
	Subset        *int32      `json:"subset,omitempty"`
	FitScoresReal bool        `json:"fitScoresReal,omitempty"`
	Gangs         *GangsArgs  `json:"gangs,omitempty"`
	Hosted        *HostedArgs `json:"hosted,omitempty"`

	Instances *InstancesArgs `json:"instances,omitempty"`
	// SyncPreemption is as in Profile.
	SyncPreemption bool            `json:"syncPreemption,omitempty"`
	Preemption     *PreemptionArgs `json:"preemption,omitempty"`

	Cycle         *Cycle           `json:"cycle,omitempty"`
	SessionPeriod *metav1.Duration `json:"sessionPeriod,omitempty"`
	Fit           *Fit             `json:"fit,omitempty"`
	Wire          *Wire            `json:"wire,omitempty"`
}

// settings reads our own settings: those of the process into out, those of each profile into its entry in resolved.
func (r *report) settings(profiles []configv1.KubeSchedulerProfile, out *Resolved) {
	var seed, binds said[uint64]
	var gangs said[Gangs]
	var cycle said[turn]
	var hosted said[Hosted]
	var wire said[Wire]
	var instances said[Instances]
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
		if args.Hosted != nil {
			out.Kumiki.Hosted = r.hosted(path+".hosted", args.Hosted)
			agree(r, &hosted, path+".hosted", out.Kumiki.Hosted)
		}
		if args.Wire != nil {
			out.Kumiki.Wire = r.wire(path+".wire", *args.Wire)
			agree(r, &wire, path+".wire", out.Kumiki.Wire)
		}
		if args.Instances != nil {
			out.Kumiki.Instances = r.instances(path+".instances", args.Instances)
			agree(r, &instances, path+".instances", out.Kumiki.Instances)
		}
		if args.Cycle != nil || args.SessionPeriod != nil {
			t := r.cycle(path, args)
			agree(r, &cycle, path+".cycle", t)
			out.Kumiki.Cycle, out.Kumiki.SessionPeriod = t.Cycle, t.period
		}
		out.Profiles[i].Fit = r.fit(path, args, out.Profiles[i])
		out.Profiles[i].FitScoresReal, out.Profiles[i].SyncPreemption = args.FitScoresReal, args.SyncPreemption
		out.Profiles[i].Preemption = r.preemption(path+".preemption", args.Preemption)
		out.Profiles[i].Search = r.search(path, args, out.Profiles[i].PercentageOfNodesToScore)
	}
	r.checkInstances(instances.path, out)
}

// kumikiArgs returns our settings in a profile, and the path where they are.
func (r *report) kumikiArgs(path string, list []configv1.PluginConfig) (args KumikiArgs, at string) {
	i := slices.IndexFunc(list, func(pc configv1.PluginConfig) bool { return pc.Name == Kumiki })
	at = fmt.Sprintf("%s[%d].args", path, i)
	if i >= 0 && len(list[i].Args.Raw) > 0 && !r.unmarshal(list[i].Args.Raw, at, &args) {
		return KumikiArgs{}, at
	}
	return args, at
}

// wire checks how binds and events are sent.
func (r *report) wire(path string, w Wire) Wire {
	if !slices.Contains(Wires(), w) {
		r.add(path, "must be one of %v, got %q", Wires(), w)
		return Prepared
	}
	return w
}

// said is a process setting in one profile.
type said[T any] struct {
	path  string // empty until a profile sets it
	value T
}

// agree adds a problem if two profiles contradict each other on a process setting.
func agree[T any](r *report, before *said[T], path string, value T) {
	if before.path != "" && !reflect.DeepEqual(before.value, value) {
		r.add(path, "must be the same as in %s (%v), because it holds for the whole process; got %v", before.path,
			before.value, value)
	}
	if before.path == "" {
		*before = said[T]{path, value}
	}
}

// search resolves how a profile searches for a node.
func (r *report) search(path string, args KumikiArgs, percentage int32) Search {
	out := Search{Strategy: All}
	switch {
	case args.Strategy != nil:
		out.Strategy = *args.Strategy
	case percentage != 0:
		out.Strategy = Window
	}
	if !slices.Contains(Strategies(), out.Strategy) {
		r.add(path+".strategy", "must be one of %v, got %q", Strategies(), out.Strategy)
		return out
	}
	switch subset := orDefault(args.Subset, 0); {
	case out.Strategy == RandomSubset && subset <= 0:
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

// turn is a cycle with its period.
type turn struct {
	Cycle
	period time.Duration // 0 unless the cycle is InSessions
}

func (t turn) String() string {
	if t.Cycle == InSessions {
		return fmt.Sprintf("%s with sessionPeriod %s", t.Cycle, t.period)
	}
	return string(t.Cycle)
}

// cycle resolves when units are tried.
func (r *report) cycle(path string, args KumikiArgs) turn {
	out := turn{Cycle: orDefault(args.Cycle, Continuous)}
	switch period := orDefault(args.SessionPeriod, metav1.Duration{Duration: DefaultSessionPeriod}).Duration; {
	case !slices.Contains(Cycles(), out.Cycle):
		r.add(path+".cycle", "must be one of %v, got %q", Cycles(), out.Cycle)
	case out.Cycle == InSessions && (period < shortestSessionPeriod || period > longestSessionPeriod):
		r.add(path+".sessionPeriod", "must be at least %v and at most %v, got %v", shortestSessionPeriod,
			longestSessionPeriod, period)
	case out.Cycle == InSessions:
		out.period = period
	case args.SessionPeriod != nil:
		r.add(path+".sessionPeriod", "only allowed with cycle %s, it is %s", InSessions, out.Cycle)
	}
	return out
}

// fit resolves when a node is full.
func (r *report) fit(path string, args KumikiArgs, p Profile) Fit {
	out := orDefault(args.Fit, Resources)
	switch {
	case !slices.Contains(Fits(), out):
		r.add(path+".fit", "must be one of %v, got %q", Fits(), out)
	case out == Slots && !p.Runs(Filter, NodeResourcesFit):
		r.add(path+".fit", "%s stands where %s filters, and this profile has switched that off", Slots,
			NodeResourcesFit)
	}
	return out
}
