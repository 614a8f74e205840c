// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"reflect"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/plugins/resources"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/recording"
	"github.com/kumiki-scheduler/kumiki/record"
)

// engineSetup describes an engine in a recording. Its names belong to the file format and not to the code: plugins
// have their names in configurations, strategies the names given here.
type engineSetup struct {
	Seed       uint64      `json:"seed"`
	Order      string      `json:"order,omitempty"`
	Backoff    record.Time `json:"backoff"`
	MaxBackoff record.Time `json:"maxBackoff"`
	Flush      record.Time `json:"unschedulableTimeout"`
	ClassBytes int         `json:"classBytes"`
	HoldAfter  record.Time `json:"holdAfter"`
	HoldFor    record.Time `json:"holdFor"`
	Backfill   bool        `json:"backfill,omitempty"`
	ScaleUp    record.Time `json:"scaleUp,omitempty"`
	Pause      record.Time `json:"scaleUpPause,omitempty"`
	Period     record.Time `json:"sessionPeriod,omitempty"`
	// Style names a model of another scheduler, which the engine had once: such an engine is left out of comparisons.
	Style    string         `json:"style,omitempty"`
	Plain    bool           `json:"slowTwin,omitempty"` // without the cache of negative results
	Profiles []profileSetup `json:"profiles"`
}

// profileSetup names the plugins of a profile by extension point, in order.
type profileSetup struct {
	Name       string           `json:"name"`
	Gates      []string         `json:"gates,omitempty"`
	Filters    []string         `json:"filters,omitempty"`
	Scorers    []scorerSetup    `json:"scorers,omitempty"`
	Wakers     []string         `json:"wakers,omitempty"`
	Reservers  []string         `json:"reservers,omitempty"`
	Remediers  []string         `json:"remediers,omitempty"`
	Preemption *preemptionSetup `json:"preemption,omitempty"`
	Strategy   string           `json:"strategy"`
	Percentage int32            `json:"percentage,omitempty"`
	Subset     int              `json:"subset,omitempty"`
	Foreign    *foreignSetup    `json:"foreign,omitempty"`
}

type scorerSetup struct {
	Name   string `json:"name"`
	Weight int64  `json:"weight"`
}

type preemptionSetup struct {
	LimitPercentage int32       `json:"limitPercentage,omitempty"`
	LimitAbsolute   int32       `json:"limitAbsolute,omitempty"`
	Limited         bool        `json:"limited,omitempty"`
	PodsOnly        bool        `json:"podsOnly,omitempty"`
	Sync            bool        `json:"sync,omitempty"`
	Strict          bool        `json:"strict,omitempty"`
	VictimTimeout   record.Time `json:"victimTimeout,omitempty"`
	After           record.Time `json:"after,omitempty"`
	Runs            int         `json:"runs,omitempty"`
}

// foreignSetup describes foreign code. These answers are the same for all pods; all others are in the effects of a
// recording.
type foreignSetup struct {
	Takes    bool   `json:"takes,omitempty"`
	Preempts bool   `json:"preempts,omitempty"`
	Binder   string `json:"binder,omitempty"`
}

var strategyNames = map[place.Strategy]string{place.AllNodes: "all", place.FixedWindow: "window", place.RandomSubset: "subset", place.PowerOfTwo: "two"}

// setupOf describes an engine.
func setupOf(e *engine.Engine) engineSetup {
	cfg := engine.ConfigOf(e)
	s := engineSetup{
		Seed: cfg.Seed, Backoff: cfg.InitialBackoff, MaxBackoff: cfg.MaxBackoff, Flush: cfg.UnschedulableTimeout, ClassBytes: cfg.ClassBytes,
		HoldAfter: cfg.Hold.After, HoldFor: cfg.Hold.For, Backfill: cfg.Hold.Backfill, Period: cfg.SessionPeriod, Plain: engine.IsPlain(e),
		ScaleUp: cfg.ScaleUp.For, Pause: cfg.ScaleUp.Pause,
	}
	if cfg.Less != nil {
		s.Order = cfg.Less.Name()
	}
	for _, p := range cfg.Profiles {
		s.Profiles = append(s.Profiles, profileSetupOf(p))
	}
	return s
}

func profileSetupOf(p engine.Profile) profileSetup {
	s := profileSetup{
		Name: p.Name, Gates: namesOf(p.Gates), Filters: namesOf(p.Filters), Wakers: namesOf(p.Wakers), Reservers: namesOf(p.Reservers),
		Remediers: namesOf(p.Remediers), Strategy: strategyNames[p.Search.Strategy], Percentage: p.Search.Percentage, Subset: p.Search.Subset,
	}
	for _, sc := range p.Scorers {
		s.Scorers = append(s.Scorers, scorerSetup{sc.Name(), sc.Weight})
	}
	if how := p.Preemption; how != nil {
		s.Preemption = &preemptionSetup{
			PodsOnly: how.PodsOnly, Sync: how.Sync, Strict: how.Strict, VictimTimeout: how.VictimTimeout,
			After: how.After, Runs: how.Runs,
		}
		if how.Limit != nil {
			s.Preemption.Limited, s.Preemption.LimitPercentage, s.Preemption.LimitAbsolute = true, how.Limit.MinPercentage, how.Limit.MinAbsolute
		}
	}
	if f := p.Foreign; f != nil {
		s.Foreign = &foreignSetup{Takes: f.Takes(nil), Binder: f.Binder(nil)}
		if _, binds := f.(bindsAll); !binds { // which has no method for it
			s.Foreign.Preempts = f.Preempts(nil)
		}
	}
	return s
}

func namesOf[P plugin.Plugin](plugins []P) (list []string) {
	for _, p := range plugins {
		list = append(list, p.Name())
	}
	return list
}

// recordedPlugins are the plugins that recordings name, with default arguments.
func recordedPlugins() map[string]plugin.Plugin { // name -> plugin
	known := map[string]plugin.Plugin{}
	for _, enabled := range plugins.DefaultProfile() {
		reg, _ := plugins.Lookup(enabled.Name)
		p, err := reg.New(nil)
		if err != nil {
			panic(err)
		}
		known[p.Name()] = p
	}
	for _, p := range []plugin.Plugin{lock{}, claimGate{}, resources.NodeSlots{}, bomb{"boom"}} {
		known[p.Name()] = p
	}
	return known
}

// pluginsOf finds plugins by name at the extension point P.
func pluginsOf[P plugin.Plugin](known map[string]plugin.Plugin, list []string) (found []P, err error) {
	for _, name := range list {
		p, is := known[name].(P)
		if !is {
			return nil, fmt.Errorf("no plugin %q at the extension point %v", name, reflect.TypeFor[P]())
		}
		found = append(found, p)
	}
	return found, nil
}

// config makes the configuration that s describes. foreign answers in place of its foreign code.
func (s *engineSetup) config(foreign *recordedForeign) (engine.Config, error) {
	known := recordedPlugins()
	cfg := engine.Config{
		Seed: s.Seed, InitialBackoff: s.Backoff, MaxBackoff: s.MaxBackoff, UnschedulableTimeout: s.Flush, ClassBytes: s.ClassBytes,
		Hold: &engine.Hold{After: s.HoldAfter, For: s.HoldFor, Backfill: s.Backfill}, SessionPeriod: s.Period,
		ScaleUp: engine.ScaleUp{For: s.ScaleUp, Pause: s.Pause},
	}
	switch s.Order {
	case "":
	case basic.PrioritySort{}.Name():
		cfg.Less = basic.PrioritySort{}
	default:
		return cfg, fmt.Errorf("no order %q", s.Order)
	}
	for i := range s.Profiles {
		p, err := s.Profiles[i].profile(known, foreign)
		if err != nil {
			return cfg, err
		}
		cfg.Profiles = append(cfg.Profiles, p)
	}
	return cfg, nil
}

// engine makes the engine that s describes.
func (s *engineSetup) engine(foreign *recordedForeign) (*engine.Engine, error) {
	cfg, err := s.config(foreign)
	if err != nil {
		return nil, err
	}
	e := engine.New(cfg)
	if s.Plain {
		e = engine.Plain(e)
	}
	return e, nil
}

func (s *profileSetup) profile(known map[string]plugin.Plugin, foreign *recordedForeign) (p engine.Profile, err error) {
	p = engine.Profile{Name: s.Name, Search: place.Search{Percentage: s.Percentage, Subset: s.Subset}}
	for strategy, name := range strategyNames {
		if name == s.Strategy {
			p.Search.Strategy = strategy
		}
	}
	if p.Gates, err = pluginsOf[plugin.Gate](known, s.Gates); err != nil {
		return p, err
	}
	if p.Filters, err = pluginsOf[plugin.Filter](known, s.Filters); err != nil {
		return p, err
	}
	if p.Wakers, err = pluginsOf[plugin.Waker](known, s.Wakers); err != nil {
		return p, err
	}
	if p.Reservers, err = pluginsOf[plugin.Reserver](known, s.Reservers); err != nil {
		return p, err
	}
	if p.Remediers, err = pluginsOf[plugin.Remedier](known, s.Remediers); err != nil {
		return p, err
	}
	for _, sc := range s.Scorers {
		found, err := pluginsOf[plugin.Scorer](known, []string{sc.Name})
		if err != nil {
			return p, err
		}
		p.Scorers = append(p.Scorers, place.Scorer{Scorer: found[0], Weight: sc.Weight})
	}
	if how := s.Preemption; how != nil {
		p.Preemption = &preempt.Config{
			PodsOnly: how.PodsOnly, Sync: how.Sync, Strict: how.Strict, VictimTimeout: how.VictimTimeout,
			After: how.After, Runs: how.Runs,
		}
		if how.Limited {
			p.Preemption.Limit = &preempt.Limit{MinPercentage: how.LimitPercentage, MinAbsolute: how.LimitAbsolute}
		}
	}
	if s.Foreign != nil {
		foreign.setup = *s.Foreign
		p.Foreign = foreign
	}
	return p, nil
}

// recordedForeign answers in place of foreign code, from a recording, and keeps the questions.
type recordedForeign struct {
	setup foreignSetup
	recording.Foreign
	asked []string
}

// Takes is the answer of the setup.
func (f *recordedForeign) Takes(*cluster.Pod) bool { return f.setup.Takes }

// Preempts is the answer of the setup.
func (f *recordedForeign) Preempts(*cluster.Pod) bool { return f.setup.Preempts }

// Binder is the answer of the setup.
func (f *recordedForeign) Binder(*cluster.Pod) string { return f.setup.Binder }

// Filter keeps the question.
func (f *recordedForeign) Filter(p *cluster.Pod, nodes []string) (map[string]place.ForeignRejection, error) {
	f.asked = append(f.asked, fmt.Sprintf("filter %s: %v", p.Key(), nodes))
	return f.Foreign.Filter(p, nodes)
}

// Score keeps the question.
func (f *recordedForeign) Score(p *cluster.Pod, nodes []string) []place.ForeignScore {
	f.asked = append(f.asked, fmt.Sprintf("score %s: %v", p.Key(), nodes))
	return f.Foreign.Score(p, nodes)
}

// Preempt keeps the question with the pods of each node.
func (f *recordedForeign) Preempt(p *cluster.Pod, of []place.ForeignVictims, on func(string) ([]record.PodRef, bool)) ([]place.ForeignVictims, error) {
	line := "preempt " + p.Key() + ":"
	for _, v := range of {
		pods, _ := on(v.Node)
		line += fmt.Sprintf(" %s %v of %v, %d violations;", v.Node, named(v.Pods), named(pods), v.PDBViolations)
	}
	f.asked = append(f.asked, line)
	return f.Foreign.Preempt(p, of, on)
}
