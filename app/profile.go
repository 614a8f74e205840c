// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/plugins/packing"
	"github.com/kumiki-scheduler/kumiki/core/plugins/podaffinity"
	"github.com/kumiki-scheduler/kumiki/core/plugins/resources"
	"github.com/kumiki-scheduler/kumiki/core/plugins/spread"
	"github.com/kumiki-scheduler/kumiki/core/plugins/volumes"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/host/devices"
	"github.com/kumiki-scheduler/kumiki/host/framework"
	"github.com/kumiki-scheduler/kumiki/kube/intake"
	"github.com/kumiki-scheduler/kumiki/record"
)

// EngineConfig converts a configuration without custom plugins; see Plugins.EngineConfig.
func EngineConfig(c config.Resolved) (engine.Config, error) { return Plugins{}.EngineConfig(c) }

// EngineConfig converts a configuration to that of the engine, with plugins in the order in which they run. It leaves
// out extenders, which need connections.
func (p Plugins) EngineConfig(c config.Resolved) (engine.Config, error) {
	out, _, err := p.engineConfig(c)
	return out, err
}

// Hosted is EngineConfig, with what plugins of kube-scheduler's framework receive from the process and the host that
// runs them.
func (p Plugins) Hosted(c config.Resolved, env framework.Env) (engine.Config, *framework.Host, error) {
	p.env = env
	return p.engineConfig(c)
}

// engineConfig returns the configuration of the engine, and the host of the plugins of kube-scheduler's framework.
func (p Plugins) engineConfig(c config.Resolved) (engine.Config, *framework.Host, error) {
	out := engine.Config{
		Seed:           c.Kumiki.Seed,
		InitialBackoff: record.Time(c.PodInitialBackoff),
		MaxBackoff:     record.Time(c.PodMaxBackoff),
		SessionPeriod:  record.Time(c.Kumiki.SessionPeriod),
		Hold:           holdOf(c.Kumiki.Gangs.Hold),
		ScaleUp:        scaleUpOf(c.Kumiki.Gangs.ScaleUp),
	}
	tap := p.tap()
	inventory := devices.NewInventory(DeviceFeatures(c.Features))
	migration := intake.NewMigration(klog.Background())
	p.env.Hooks = p.hooks
	host := framework.NewHost(p.env)
	for _, profile := range c.Profiles {
		b := builder{from: profile, features: c.Features, plugins: p, inventory: inventory, migration: migration,
			made: map[string]plugin.Plugin{}, hosted: host.Profile(profile.SchedulerName), tap: tap}
		if err := b.build(); err != nil {
			return engine.Config{}, nil, fmt.Errorf("profile %q: %w", profile.SchedulerName, err)
		}
		out.Profiles = append(out.Profiles, b.out)
		if out.Less == nil { // the same in all profiles, or the configuration would not be valid
			out.Less = b.less
		}
	}
	out.Nominator = host.Nominator()
	if len(tap.Host().Sources) > 0 {
		out.Answers = tap
	}
	if p.recorded != nil {
		out.Nominator = nil // the plugins that would read nominations are not there
	}
	return out, host, nil
}

func holdOf(h config.Hold) *engine.Hold {
	return &engine.Hold{After: record.Time(h.After), For: record.Time(h.For), Backfill: h.Backfill == config.On}
}

func scaleUpOf(s config.ScaleUp) engine.ScaleUp {
	return engine.ScaleUp{For: record.Time(s.For), Pause: record.Time(s.Pause)}
}

// builder makes the plugins of one profile, each once.
type builder struct {
	from      config.Profile
	features  config.Features
	plugins   Plugins
	inventory *devices.Inventory // shared by the profiles
	migration plugin.Migration   // the same
	out       engine.Profile
	less      plugin.Less
	made      map[string]plugin.Plugin // name -> the one instance
	hosted    *framework.Profile
	tap       tap
}

func (b *builder) build() error {
	b.out = engine.Profile{Name: b.from.SchedulerName, Search: searchBy(b.from.Search)}
	if err := b.settleCandidates(); err != nil {
		return err
	}
	// In the order of the cycle, so that Wakers have an order too.
	for _, point := range config.Points() {
		for _, name := range b.from.Enabled[point] {
			switch {
			case point == config.Bind && name == config.DefaultBinder:
				b.hosted.BindNatively()
				continue
			case b.plugins.isHosted(name):
				if err := b.host(point, name); err != nil {
					return fmt.Errorf("%s: %w", point, err)
				}
				continue
			case !b.plugins.has(name):
				continue // see Describe
			case isIdle(b.features, point, name):
				continue
			case name == config.DefaultPreemption:
				b.out.Preemption = preemption(b.from)
				continue
			case b.from.Fit == config.Slots && name == config.NodeResourcesFit && point == config.Filter:
				name = resources.NodeSlotsName
			}
			pl, err := b.plugin(name)
			if err == nil && b.plugins.isCustom(name) && !slices.Contains(extends(pl), point) {
				err = fmt.Errorf("plugin %q: what was made of its arguments, %T, does not extend this point", name, pl)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", point, err)
			}
			b.enable(point, pl)
		}
	}
	b.finishHosted()
	return nil
}

// isIdle reports whether a plugin does nothing at a point, because a feature is off. A file can name it all the same.
func isIdle(f config.Features, point config.Point, name string) bool {
	switch name {
	case config.NodeDeclaredFeatures:
		return !f.NodeDeclaredFeatures
	case config.VolumeBinding:
		return point == config.Score && !f.StorageCapacityScoring
	case devices.Name:
		return point == config.Score && !f.DRAPrioritizedList
	}
	return false
}

// plugin returns a plugin, made at its first use.
func (b *builder) plugin(name string) (plugin.Plugin, error) {
	if pl := b.made[name]; pl != nil {
		return pl, nil
	}
	pl, err := b.make(name)
	if err != nil {
		return nil, err
	}
	b.made[name] = pl
	if w, wakes := pl.(plugin.Waker); wakes {
		b.out.Wakers = append(b.out.Wakers, w)
	} else if b.plugins.isCustom(name) {
		b.out.Wakers = append(b.out.Wakers, wakesOnAnyEvent{pl})
	}
	return pl, nil
}

func (b *builder) make(name string) (plugin.Plugin, error) {
	if name == devices.Name {
		return devices.New(deviceArguments(b.from.Args.DynamicResources), b.inventory)
	}
	if r, hosted := b.plugins.hosted[name]; hosted {
		raw, _ := b.from.Args.Custom[name].(json.RawMessage)
		return b.hosted.Add(r, framework.Arguments(raw))
	}
	pl, err := b.plugins.make(name, b.from, b.features)
	if asks, ok := pl.(plugin.Migrating); ok && err == nil {
		return asks.WithMigration(b.migration), nil
	}
	if scores, ok := pl.(plugin.CountingDevices); ok && err == nil {
		return scores.WithDevices(devices.NewCounter(b.inventory)), nil
	}
	return pl, err
}

// preemption returns how a profile evicts pods for others; nil if it does not. DefaultPreemption is part of the
// engine. Its gate keeps a pod waiting until its evictions are executed; a profile that omits it at preEnqueue does
// not wait. A profile that omits it at podGroupPostFilter evicts no pods for gangs.
func preemption(p config.Profile) *preempt.Config {
	if !p.Runs(config.PostFilter, config.DefaultPreemption) {
		return nil
	}
	out := &preempt.Config{
		PodsOnly:      !p.Runs(config.PodGroupPostFilter, config.DefaultPreemption),
		Sync:          p.SyncPreemption || !p.Runs(config.PreEnqueue, config.DefaultPreemption),
		Strict:        p.Preemption.Budgets == config.Strict,
		VictimTimeout: record.Time(p.Preemption.VictimTimeout),
		After:         record.Time(p.Preemption.After),
	}
	if a := p.Args.DefaultPreemption; *a.MinCandidateNodesPercentage < 100 {
		out.Limit = &preempt.Limit{MinPercentage: *a.MinCandidateNodesPercentage,
			MinAbsolute: *a.MinCandidateNodesAbsolute}
	}
	return out
}

// enable registers a plugin at one point. PreFilter, PreScore and PreBind are part of the points that they prepare or
// finish; the loop is the binder.
func (b *builder) enable(point config.Point, pl plugin.Plugin) {
	out := &b.out
	switch point {
	case config.PreEnqueue:
		out.Gates = append(out.Gates, pl.(plugin.Gate))
	case config.QueueSort:
		b.less = pl.(plugin.Less)
	case config.Filter:
		out.Filters = append(out.Filters, pl.(plugin.Filter))
	case config.PostFilter:
		out.Remediers = append(out.Remediers, pl.(plugin.Remedier))
	case config.Score:
		out.Scorers = append(out.Scorers, place.Scorer{Scorer: pl.(plugin.Scorer), Weight: b.from.Weights[pl.Name()]})
	case config.Reserve:
		out.Reservers = append(out.Reservers, pl.(plugin.Reserver))
	}
}

// strategies: a strategy of the file -> that of the search.
var strategies = map[config.Strategy]place.Strategy{
	config.All: place.AllNodes, config.Window: place.FixedWindow, config.RandomSubset: place.RandomSubset,
	config.PowerOfTwo: place.PowerOfTwo,
}

func searchBy(s config.Search) place.Search {
	by, known := strategies[s.Strategy]
	if !known {
		panic(fmt.Sprintf("app: search strategy %q", s.Strategy))
	}
	return place.Search{Strategy: by, Percentage: s.Percentage, Subset: s.Subset}
}

// arguments converts a plugin's arguments from the form in the file to the plugin's.
func arguments(name string, p config.Profile, f config.Features) any {
	a := p.Args
	switch name {
	case basic.NodeAffinityName:
		return basic.NodeAffinityArgs{AddedAffinity: a.NodeAffinity.AddedAffinity}
	case resources.NodeResourcesFitName:
		fit := fitArguments(a.NodeResourcesFit)
		fit.ScoreReal = p.FitScoresReal
		return fit
	case resources.NodeResourcesBalancedAllocationName:
		return resources.BalancedArgs{Resources: weighted(a.NodeResourcesBalancedAllocation.Resources)}
	case packing.BestFitName:
		args := a.NodeResourcesBestFit
		return packing.BestFitArgs{Norm: packing.Norm(args.Norm), Resources: packed(args.Resources),
			DemandWeights: args.DemandWeights}
	case packing.DotProductName:
		return packing.DotProductArgs{Resources: packed(a.NodeResourcesDotProduct.Resources)}
	case packing.FragmentationName:
		return packing.FragmentationArgs{Resources: packed(a.NodeResourcesFragmentation.Resources)}
	case volumes.NodeVolumeLimitsName:
		return volumes.NodeVolumeLimitsArgs{NeedDrivers: f.VolumeLimitScaling}
	case volumes.VolumeBindingName:
		return volumes.VolumeBindingArgs{
			BindTimeout: record.Time(*a.VolumeBinding.BindTimeoutSeconds) * record.Second,
			Shape:       shapeOf(a.VolumeBinding.Shape),
		}
	case spread.PodTopologySpreadName:
		args := a.PodTopologySpread
		return spread.PodTopologySpreadArgs{DefaultConstraints: args.DefaultConstraints,
			System: args.DefaultingType == configv1.SystemDefaulting}
	case podaffinity.InterPodAffinityName:
		return podaffinity.InterPodAffinityArgs{
			HardPodAffinityWeight:              *a.InterPodAffinity.HardPodAffinityWeight,
			IgnorePreferredTermsOfExistingPods: a.InterPodAffinity.IgnorePreferredTermsOfExistingPods,
		}
	}
	return nil
}

func deviceArguments(a configv1.DynamicResourcesArgs) devices.Args {
	out := devices.Args{FilterTimeout: a.FilterTimeout.Duration}
	if a.BindingTimeout != nil { // otherwise no bind waits
		out.BindingTimeout = a.BindingTimeout.Duration
	}
	return out
}

// DeviceFeatures converts features to those of DynamicResources.
func DeviceFeatures(f config.Features) devices.Features {
	out := devices.DefaultFeatures()
	out.TaintRules = f.DRADeviceTaintRules
	a := &out.Allocator
	a.AdminAccess, a.ConsumableCapacity, a.DeviceTaints = f.DRAAdminAccess, f.DRAConsumableCapacity, f.DRADeviceTaints
	a.FractionalCapacityRange = f.DRAFractionalCapacityRange
	a.PartitionableDevices, a.PrioritizedList = f.DRAPartitionableDevices, f.DRAPrioritizedList
	a.DeviceBindingAndStatus = f.WaitForDevices()
	return out
}

func fitArguments(a configv1.NodeResourcesFitArgs) resources.FitArgs {
	out := resources.DefaultFitArgs()
	out.IgnoredResources, out.IgnoredResourceGroups = a.IgnoredResources, a.IgnoredResourceGroups
	if s := a.ScoringStrategy; s != nil {
		out.Strategy = resources.Strategy(s.Type)
		out.Resources = weighted(s.Resources)
		if s.RequestedToCapacityRatio != nil {
			out.Shape = shapeOf(s.RequestedToCapacityRatio.Shape)
		}
	}
	return out
}

func shapeOf(points []configv1.UtilizationShapePoint) []plugin.ShapePoint {
	var out []plugin.ShapePoint
	for _, point := range points {
		out = append(out, plugin.ShapePoint{Utilization: int64(point.Utilization), Score: int64(point.Score)})
	}
	return out
}

func packed(list []configv1.ResourceSpec) []packing.Resource {
	out := make([]packing.Resource, len(list))
	for i, r := range list {
		out[i] = packing.Resource{Name: v1.ResourceName(r.Name), Weight: r.Weight}
	}
	return out
}

func weighted(list []configv1.ResourceSpec) []resources.WeightedResource {
	out := make([]resources.WeightedResource, len(list))
	for i, r := range list {
		out[i] = resources.WeightedResource{Name: v1.ResourceName(r.Name), Weight: r.Weight}
	}
	return out
}
