// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/host/extender"
	"github.com/kumiki-scheduler/kumiki/host/framework"
	"github.com/kumiki-scheduler/kumiki/kube/effects"
	"github.com/kumiki-scheduler/kumiki/kube/intake"
)

func newInbox(ctx context.Context, c config.Resolved, kinds []cluster.Kind, full bool) *intake.Inbox {
	log := klog.FromContext(ctx)
	in := intake.NewInbox(func(object string, problem any) {
		log.Error(nil, "Object could not be read and is left as it was", "object", object, "problem", problem)
	}, kinds...)
	if full {
		in.KeepObjects()
	}
	in.ReadGangs(GangRules(c))
	return in
}

// extend adds the extenders of a configuration to the decisions of all profiles, and returns how foreign code binds,
// and what extenders are sent. Only with extenders does the inbox keep the newest whole objects.
func extend(ctx context.Context, extenders []configv1.Extender, inbox *intake.Inbox, host *framework.Host,
	to *engine.Config) (effects.BindVia, extender.Objects, error) {
	if len(extenders) == 0 {
		return bindVia(host, nil), nil, nil
	}
	objects := inbox.KeepFull()
	all, err := withExtendersOf(ctx, extenders, objects, to)
	if err != nil {
		return nil, nil, err
	}
	return bindVia(host, all), objects, nil
}

// withExtendersOf adds extenders, with connections of their own, to the decisions of all profiles; it returns nil if
// there are none.
func withExtendersOf(ctx context.Context, extenders []configv1.Extender, objects extender.Objects,
	to *engine.Config) (*extender.Extenders, error) {
	if len(extenders) == 0 {
		return nil, nil
	}
	log := klog.FromContext(ctx).WithName("extender")
	all, err := extender.New(ctx, extenders, objects, func(i extender.Ignored) {
		log.Error(i.Err, "Extender ignored", "extender", i.Extender, "verb", i.Verb, "pod",
			klog.KRef(i.Pod.Namespace, i.Pod.Name))
	})
	if err != nil {
		return nil, err
	}
	for i := range to.Profiles {
		withExtenders(&to.Profiles[i], all)
	}
	return all, nil
}
