// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/host/extender"
	"github.com/kumiki-scheduler/kumiki/host/framework"
	"github.com/kumiki-scheduler/kumiki/kube"
	"github.com/kumiki-scheduler/kumiki/kube/effects"
	"github.com/kumiki-scheduler/kumiki/record"
)

// host enables a plugin of kube-scheduler's framework at one point. PreFilter and Filter are one interface of kumiki,
// as are PreScore and Score; all points from Reserve on are one Reserver.
func (b *builder) host(point config.Point, name string) error {
	pl, err := b.plugin(name)
	if err != nil {
		return err
	}
	if err := b.hosted.Enable(name, point); err != nil {
		return err
	}
	switch point {
	case config.PreEnqueue:
		b.out.Gates = append(b.out.Gates, pl.(plugin.Gate))
	case config.QueueSort:
		b.less = pl.(plugin.Less)
	case config.Filter:
		b.out.Filters = append(b.out.Filters, pl.(plugin.Filter))
	case config.PostFilter:
		b.out.PostFilters = append(b.out.PostFilters, engine.PostFilter{
			PostFilter: pl.(plugin.PostFilter), After: b.askedBefore(name)})
	case config.Score:
		sc := place.Scorer{Scorer: pl.(plugin.Scorer), Weight: b.from.Weights[name]}
		b.out.Scorers = append(b.out.Scorers, sc)
	}
	return nil
}

// afterEvictions stands for a PostFilter after DefaultPreemption, until all plugins before that are known.
const afterEvictions = -1

// askedBefore returns how many Remediers come before a PostFilter.
func (b *builder) askedBefore(name string) int {
	order := b.from.Enabled[config.PostFilter]
	if i := slices.Index(order, config.DefaultPreemption); i >= 0 && i < slices.Index(order, name) {
		return afterEvictions
	}
	return len(b.out.Remediers)
}

// settleCandidates makes the candidates of all points, and removes each from the points that it does not extend, and
// from those where nothing runs without pod groups.
func (b *builder) settleCandidates() error {
	defer func() { b.hosted.Configure(b.from) }()
	if len(b.from.Candidates) == 0 {
		return nil
	}
	enabled := maps.Clone(b.from.Enabled)
	for _, point := range config.Points() {
		for _, name := range b.from.Candidates[point] {
			if _, err := b.plugin(name); err != nil {
				return err
			}
			idle := point.OfPodGroups() && !b.features.GenericWorkload
			if idle || !b.hosted.Extends(name, point) {
				enabled[point] = slices.DeleteFunc(slices.Clone(enabled[point]), func(other string) bool {
					return other == name
				})
			}
		}
	}
	if names := enabled[config.QueueSort]; len(names) != 1 {
		return fmt.Errorf("%s: exactly one plugin must sort the queue, got %d: %s", config.QueueSort, len(names),
			strings.Join(names, ", "))
	}
	if len(enabled[config.Bind]) == 0 {
		return fmt.Errorf("%s: at least one plugin must bind", config.Bind)
	}
	b.from.Enabled = enabled
	return nil
}

// finishHosted adds the plugins that are enabled at PreFilter and not at Filter, and at PreScore and not at Score,
// after all others, and what the profile's plugins do after a decision.
func (b *builder) finishHosted() {
	if b.hosted.Empty() {
		return
	}
	at := func(point config.Point, name string) bool { return slices.Contains(b.from.Enabled[point], name) }
	for _, name := range b.from.Enabled[config.PreFilter] {
		if b.plugins.isHosted(name) && !at(config.Filter, name) {
			b.out.Filters = append(b.out.Filters, b.made[name].(plugin.Filter))
		}
	}
	for _, name := range b.from.Enabled[config.PreScore] {
		if b.plugins.isHosted(name) && !at(config.Score, name) {
			b.out.Scorers = append(b.out.Scorers, place.Scorer{Scorer: b.made[name].(plugin.Scorer), Weight: 1})
		}
	}
	b.hosted.RunFilters(b.out.Filters)
	b.hosted.RunScorers(b.out.Scorers)
	b.hosted.RunReservers(b.out.Reservers)
	for i := range b.out.PostFilters {
		if f := &b.out.PostFilters[i]; f.After == afterEvictions {
			f.After = len(b.out.Remediers) + 1
		}
	}
	if r := b.hosted.Reserver(); r != nil {
		b.out.Reservers = append(b.out.Reservers, r)
	}
	b.out.Placements = b.hosted.Placements()
	b.out.Foreign = b.hosted.Foreign(nil)
	b.tapHosted()
}

// withExtenders adds extenders to a profile of the engine.
func withExtenders(p *engine.Profile, extenders place.Foreign) {
	if hosted, is := p.Foreign.(framework.Binder); is {
		p.Foreign = hosted.Over(extenders)
		return
	}
	p.Foreign = extenders
}

// bindVia lets extenders and plugins of kube-scheduler's framework bind; extenders may be nil.
func bindVia(host *framework.Host, extenders *extender.Extenders) effects.BindVia {
	return func(ctx context.Context, via string, pod record.PodRef, node string) error {
		if via == framework.Via {
			extends, err := host.Bind(ctx, pod, node)
			switch {
			case !errors.Is(err, framework.ErrNative):
				return err
			case !extends:
				return effects.ErrUseAPI
			}
		}
		err := extenders.Bind(ctx, pod, node)
		if errors.Is(err, extender.ErrNotBound) {
			return effects.ErrUseAPI
		}
		return err
	}
}

// observe lets plugins follow events: PostBind is called after each bind, in a goroutine of its own. It ends with the
// calls of the plugins, whose context is that of the scheduler.
func observe(host *framework.Host) kube.Observer {
	return func(ev engine.Event, _ []engine.Effect) {
		if call := host.Observe(ev); call != nil {
			go call()
		}
	}
}

// environment returns what plugins of kube-scheduler's framework receive in this process, and how to start it.
func (s *Scheduler) environment(ctx context.Context, cfg *rest.Config, clients *kube.Clients) framework.Env {
	log := klog.FromContext(ctx).WithName("framework")
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clients.Events.EventsV1()})
	follow := newFollower()
	env := framework.Env{
		Await:   follow.await,
		Context: ctx, Client: clients.Watches, Config: cfg,
		Informers: informers.NewSharedInformerFactory(clients.Watches, 0),
		Recorder:  broadcaster.NewRecorder(scheme.Scheme, s.opts.Config.Profiles[0].SchedulerName),
		Post: func(ev engine.Event) {
			if s.inner != nil { // else a factory calls: there is nothing to tell yet
				s.inner.Loop.Answer(ev)
			}
		},
		Report: func(p framework.Problem) {
			log.Error(p.Err, "Plugin failed", "plugin", p.Plugin, "extensionPoint", p.Point, "kind", p.Kind)
			s.counts().PluginFailures.WithLabelValues(p.Plugin, string(p.Point), string(p.Kind)).Inc()
		},
		Nominate: func(pod record.PodRef, node string) { s.inner.Executor.Patcher.NominateNow(pod, node) },
		Limits:   s.opts.Config.Kumiki.Hosted,
	}
	s.startHosted = func(ctx context.Context) func() {
		if s.host != nil {
			go s.host.Watch(ctx)
			if err := s.host.WatchOthers(ctx, clients.Dynamic); err != nil {
				log.Error(err, "Resources for whose events plugins have registered are not watched")
			}
		}
		broadcaster.StartStructuredLogging(0)
		if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
			log.Error(err, "Events of plugins are not recorded")
		}
		env.Informers.StartWithContext(ctx)
		follow.start(ctx, env.Informers)
		return broadcaster.Shutdown
	}
	return env
}
