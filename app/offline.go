// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/intake"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Snapshot lists a cluster, regardless of its scheduler, and returns the events from which an engine with the
// configuration builds its state. It only reads.
func (p Plugins) Snapshot(ctx context.Context, client kubernetes.Interface, objects dynamic.Interface,
	c config.Resolved) ([]engine.Event, error) {
	made, err := p.EngineConfig(c)
	if err != nil {
		return nil, fmt.Errorf("resolving the configuration: %w", err)
	}
	return intake.Snapshot(ctx, client, objects, newInbox(ctx, c, p.Kinds(c, made), p.Hosts(c)))
}

// Offline makes an engine with the state that events describe. It calls no extenders. Pods with a scheduler name that
// the configuration does not have are judged by its first profile; others lists those names.
func (p Plugins) Offline(c config.Resolved, events []engine.Event, now time.Time) (e *engine.Engine,
	others []string, err error) {
	known := map[string]bool{} // scheduler name -> there is a profile of it
	for _, profile := range c.Profiles {
		known[profile.SchedulerName] = true
	}
	c.Profiles = slices.Clone(c.Profiles)
	for _, ev := range events {
		set, isPod := ev.(engine.PodSet)
		if !isPod || set.Pod.NodeName != "" || known[set.Pod.Spec.SchedulerName] {
			continue
		}
		name := set.Pod.Spec.SchedulerName
		known[name] = true
		others = append(others, name)
		alias := c.Profiles[0]
		alias.SchedulerName = name
		c.Profiles = append(c.Profiles, alias)
	}
	cfg, err := p.EngineConfig(c)
	if err != nil {
		return nil, nil, fmt.Errorf("resolving the configuration: %w", err)
	}
	e = engine.New(cfg)
	e.Step(engine.Tick{Now: record.Time(now.UnixNano())})
	for _, ev := range events {
		e.Step(ev)
	}
	return e, others, nil
}
