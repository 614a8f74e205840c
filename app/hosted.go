// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"slices"

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
	case config.Filter:
		b.out.Filters = append(b.out.Filters, pl.(plugin.Filter))
	case config.Score:
		sc := place.Scorer{Scorer: pl.(plugin.Scorer), Weight: b.from.Weights[name]}
		b.out.Scorers = append(b.out.Scorers, sc)
	}
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
	if r := b.hosted.Reserver(); r != nil {
		b.out.Reservers = append(b.out.Reservers, r)
	}
	b.out.Foreign = b.hosted.Foreign(nil)
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

// postBind calls PostBind of plugins after each bind, in a goroutine of its own. It ends with the calls of the plugins,
// whose context is that of the scheduler.
func postBind(host *framework.Host) kube.Observer {
	return func(ev engine.Event, _ []engine.Effect) {
		if call := host.PostBind(ev); call != nil {
			go call()
		}
	}
}

// environment returns what plugins of kube-scheduler's framework receive in this process, and how to start it.
func (s *Scheduler) environment(ctx context.Context, cfg *rest.Config, clients *kube.Clients) framework.Env {
	log := klog.FromContext(ctx).WithName("framework")
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clients.Events.EventsV1()})
	env := framework.Env{
		Context: ctx, Client: clients.Watches, Config: cfg,
		Informers: informers.NewSharedInformerFactory(clients.Watches, 0),
		Recorder:  broadcaster.NewRecorder(scheme.Scheme, s.opts.Config.Profiles[0].SchedulerName),
		Post: func(ev engine.Event) {
			if s.inner != nil { // else a factory calls: there is nothing to tell yet
				s.inner.Loop.Answer(ev)
			}
		},
		Report: func(p framework.Problem) {
			log.Error(p.Err, "Plugin failed", "plugin", p.Plugin, "extensionPoint", p.Point)
		},
	}
	s.startHosted = func(ctx context.Context) {
		broadcaster.StartStructuredLogging(0)
		if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
			log.Error(err, "Events of plugins are not recorded")
		}
		env.Informers.StartWithContext(ctx)
		env.Informers.WaitForCacheSyncWithContext(ctx)
	}
	return env
}
